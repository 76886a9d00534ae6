//! Two sessions and the data between them, in random and in fixed order; and a session with a hostile peer.

mod goodbye;
mod lanes;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use eyas_relay::destination::Destination;
use proptest::prelude::*;

use super::*;
use crate::frame::{ProtocolViolation, TunnelFrame, encode};
use eyas::race::target::TargetHost;

const NOW: Duration = Duration::from_secs(1);

fn limits() -> SessionLimits {
    SessionLimits {
        channels: 4,
        lanes: 2,
        first_window: 40,
        window: 160,
        growth: 200,
        send_buffer: 60,
        ..SessionLimits::default()
    }
}

fn connect_purpose() -> ChannelPurpose {
    ChannelPurpose::Connect(Destination::new(TargetHost::parse("a.test").expect("a name"), 80))
}

/// All streams of a pair.
const LANES: [TunnelLane; 3] = [TunnelLane::FIRST, TunnelLane(1), TunnelLane(2)];

/// One end, with the data that it has written and read on each channel.
struct Endpoint {
    session: TunnelSession,
    open: Vec<u32>,
    written: BTreeMap<u32, Vec<u8>>,
    read: BTreeMap<u32, Vec<u8>>,
    /// The result with which reading ended.
    ended: BTreeMap<u32, ReadResult>,
    /// The data in transit to the other end, on each stream.
    wires: BTreeMap<TunnelLane, VecDeque<u8>>,
}

impl Endpoint {
    fn new(side: SessionSide) -> Self {
        Self {
            session: TunnelSession::new(side, limits(), NOW),
            open: Vec::new(),
            written: BTreeMap::new(),
            read: BTreeMap::new(),
            ended: BTreeMap::new(),
            wires: BTreeMap::new(),
        }
    }

    fn send(&mut self) {
        for lane in LANES {
            let mut out = BytesMut::new();
            self.session.poll_transmit(lane, &mut out);
            self.wires.entry(lane).or_default().extend(&out);
            let is_ready = self.session.ready_lanes().any(|ready| ready == lane);
            assert!(!is_ready, "everything was sent");
        }
    }

    fn events(&mut self) {
        while let Some(event) = self.session.poll_event() {
            if let SessionEvent::Requested(id, purpose) = event {
                assert_eq!(purpose, connect_purpose());
                self.session.accept(id, 0);
                self.open.push(id);
            }
        }
    }

    /// Reads at most this many bytes of a channel.
    fn read(&mut self, id: u32, most: usize) -> ReadResult {
        let mut piece = vec![0; most];
        let read = self.session.read(id, &mut piece);
        match read {
            ReadResult::Bytes(length) => {
                assert!(!self.ended.contains_key(&id), "nothing follows the end");
                self.read.entry(id).or_default().extend(&piece[..length]);
            }
            ReadResult::End | ReadResult::Gone => {
                self.ended.entry(id).or_insert(read);
            }
            ReadResult::Wait => {}
        }
        read
    }

    fn write(&mut self, id: u32, bytes: &[u8]) {
        if let Some(accepted) = self.session.write(id, bytes) {
            self.written.entry(id).or_default().extend(&bytes[..accepted]);
        }
    }
}

fn deliver(from: &mut Endpoint, to: &mut Endpoint, lane: TunnelLane, most: usize) -> usize {
    let wire = from.wires.entry(lane).or_default();
    let length = wire.len().min(most);
    let piece: Vec<u8> = wire.drain(..length).collect();
    to.session.handle_bytes(NOW, lane, &piece);
    to.events();
    assert_eq!(to.session.end(), None);
    length
}

#[derive(Clone, Debug)]
enum Action {
    Open,
    Write(usize, Vec<u8>),
    Read(usize, usize),
    Finish(usize),
    Release(usize),
    Send,
    Deliver(usize, usize),
}

fn action() -> impl Strategy<Value = (bool, Action)> {
    let action = prop_oneof![
        1 => Just(Action::Open),
        6 => (0..8_usize, prop::collection::vec(any::<u8>(), 1..100)).prop_map(|(c, b)| Action::Write(c, b)),
        6 => (0..8_usize, 1..90_usize).prop_map(|(c, n)| Action::Read(c, n)),
        1 => (0..8_usize).prop_map(Action::Finish),
        1 => (0..16_usize).prop_map(Action::Release),
        6 => Just(Action::Send),
        8 => (0..3_usize, 1..120_usize).prop_map(|(l, n)| Action::Deliver(l, n)),
    ];
    (any::<bool>(), action)
}

struct Pair {
    endpoints: [Endpoint; 2],
    /// Channels that were released early, so that they may be reset.
    released: Vec<u32>,
}

impl Pair {
    fn new() -> Self {
        let endpoints = [Endpoint::new(SessionSide::Client), Endpoint::new(SessionSide::Server)];
        let mut pair = Self { endpoints, released: Vec::new() };
        for who in [0, 1] {
            pair.perform(who, Action::Send);
            pair.perform(who, Action::Deliver(0, usize::MAX));
        }
        for endpoint in &mut pair.endpoints {
            assert!(endpoint.session.add_lane(LANES[1]) && endpoint.session.add_lane(LANES[2]));
            assert!(
                !endpoint.session.add_lane(LANES[2]) && !endpoint.session.add_lane(TunnelLane(3))
            );
        }
        for who in [0, 1] {
            pair.perform(who, Action::Send);
            (1..3).for_each(|lane| pair.perform(who, Action::Deliver(lane, usize::MAX)));
        }
        pair
    }

    fn perform(&mut self, who: usize, action: Action) {
        let [client, server] = &mut self.endpoints;
        let (own, other) = if who == 0 { (client, server) } else { (server, client) };
        let channel = |own: &Endpoint, index: usize| own.open.get(index).copied();
        match action {
            Action::Open => {
                if let Some(id) = own.session.open(connect_purpose()) {
                    own.open.push(id);
                }
            }
            Action::Write(index, bytes) => {
                if let Some(id) = channel(own, index) {
                    own.write(id, &bytes);
                }
            }
            Action::Read(index, most) => {
                if let Some(id) = channel(own, index) {
                    own.read(id, most);
                }
            }
            Action::Finish(index) => {
                if let Some(id) = channel(own, index) {
                    own.session.finish(id);
                }
            }
            Action::Release(index) => {
                if let Some(id) = channel(own, index) {
                    self.released.push(id);
                    own.session.release(id);
                }
            }
            Action::Send => own.send(),
            Action::Deliver(lane, most) => {
                deliver(own, other, LANES[lane], most);
            }
        }
        own.events();
    }

    /// Finishes every channel, and delivers and reads until nothing moves.
    fn settle(&mut self) {
        for endpoint in &mut self.endpoints {
            for id in endpoint.open.clone() {
                endpoint.session.finish(id);
            }
        }
        // Every turn but the last moves a byte or an end; requested channels may be opened late.
        for _ in 0..10_000 {
            let mut moved = 0;
            for who in [0, 1] {
                let [client, server] = &mut self.endpoints;
                let (own, other) = if who == 0 { (client, server) } else { (server, client) };
                own.send();
                moved +=
                    LANES.map(|lane| deliver(own, other, lane, usize::MAX)).iter().sum::<usize>();
                for id in other.open.clone() {
                    other.session.finish(id);
                    while let ReadResult::Bytes(_) = other.read(id, 64) {
                        moved += 1;
                    }
                }
            }
            if moved == 0 {
                return;
            }
        }
        panic!("it never settles");
    }

    fn check(&self) {
        for (own, other) in [(0, 1), (1, 0)] {
            let (own, other) = (&self.endpoints[own], &self.endpoints[other]);
            for id in &own.open {
                let none = Vec::new();
                let written = own.written.get(id).unwrap_or(&none);
                let read = other.read.get(id).unwrap_or(&none);
                assert!(
                    written.starts_with(read),
                    "channel {id}: a byte was lost, repeated or mixed"
                );
                if let ChannelAnswer::Refused(why, _) = own.session.answer(*id) {
                    assert_eq!((why, read.len()), (RefuseReason::TooMany, 0));
                } else if !self.released.contains(id) {
                    assert_eq!(
                        other.ended.get(id),
                        Some(&ReadResult::End),
                        "channel {id} ends cleanly"
                    );
                    assert_eq!(read.len(), written.len(), "channel {id} is complete");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_interleaving_loses_repeats_or_mixes_a_byte(actions in prop::collection::vec(action(), 0..200)) {
        let mut pair = Pair::new();
        for (server, action) in actions {
            pair.perform(usize::from(server), action);
        }
        pair.settle();
        pair.check();
        for endpoint in &mut pair.endpoints {
            for id in endpoint.open.clone() {
                endpoint.session.release(id);
            }
        }
        pair.settle();
        for endpoint in &pair.endpoints {
            prop_assert_eq!(endpoint.session.channels(), 0, "channels that are over are removed");
            prop_assert_eq!(endpoint.session.budget, limits().growth);
        }
    }

    //= hostile tunnel
    //# arbitrary frames
    //= bound: `MAX_PAYLOAD`
    #[test]
    fn arbitrary_bytes_of_the_peer_never_panic(
        hello in any::<bool>(),
        pieces in prop::collection::vec(prop_oneof![
            prop::collection::vec(any::<u8>(), 1..40),
            (0..13_u8, 0..9_u32, prop::collection::vec(any::<u8>(), 0..12)).prop_map(
                |(kind, channel, payload)| {
                    let length = payload.len() as u16;
                    let head = [&[kind][..], &channel.to_be_bytes(), &length.to_be_bytes()].concat();
                    [head, payload].concat()
                }),
        ], 1..60),
    ) {
        let mut session = TunnelSession::new(SessionSide::Server, limits(), NOW);
        let mut out = BytesMut::new();
        if hello {
            encode(0, &TunnelFrame::Hello { version: VERSION, window: 9 }, &mut out);
            session.handle_bytes(NOW, TunnelLane::FIRST, &out);
        }
        let own = session.open(connect_purpose());
        for piece in pieces {
            session.handle_bytes(NOW, TunnelLane::FIRST, &piece);
            while let Some(event) = session.poll_event() {
                if let SessionEvent::Requested(id, _) = event {
                    session.accept(id, 0);
                    session.write(id, b"hello");
                }
            }
            out.clear();
            session.poll_transmit(TunnelLane::FIRST, &mut out);
            prop_assert!(session.channels() <= 1 + limits().channels);
            prop_assert!(session.buffered() <= 9 * 160 + frame::HEADER + frame::MAX_PAYLOAD + 40);
        }
        if let Some(own) = own {
            session.release(own);
        }
    }
}

/// A session whose other end is played by the test.
struct ScriptedPeer {
    session: TunnelSession,
}

impl ScriptedPeer {
    fn new(side: SessionSide) -> Self {
        let mut one = Self { session: TunnelSession::new(side, limits(), NOW) };
        one.sends(0, &TunnelFrame::Hello { version: VERSION, window: 100 });
        one
    }

    /// Has the other end send a frame on the first stream.
    fn sends(&mut self, channel: u32, frame: &TunnelFrame) {
        self.sends_on(TunnelLane::FIRST, channel, frame);
    }

    fn sends_on(&mut self, lane: TunnelLane, channel: u32, frame: &TunnelFrame) {
        let mut wire = BytesMut::new();
        encode(channel, frame, &mut wire);
        self.session.handle_bytes(NOW, lane, &wire);
    }

    /// Returns the frames for the other end on the first stream.
    fn receives(&mut self) -> Vec<(u32, TunnelFrame)> {
        let mut wire = BytesMut::new();
        self.session.poll_transmit(TunnelLane::FIRST, &mut wire);
        std::iter::from_fn(|| frame::decode(&mut wire).expect("frames")).collect()
    }
}

//= hostile tunnel
//# an unread channel
//= bound: `window`, `growth`, `send_buffer`
#[test]
fn an_unread_channel_blocks_only_itself() {
    let mut pair = Pair::new();
    let mut ids = Vec::new();
    for _ in 0..2 {
        pair.perform(0, Action::Open);
        ids.push(pair.endpoints[0].open[ids.len()]);
    }
    for _ in 0..50 {
        for index in 0..2 {
            pair.perform(0, Action::Write(index, vec![7; 30]));
        }
        pair.perform(0, Action::Send);
        (0..3).for_each(|lane| pair.perform(0, Action::Deliver(lane, usize::MAX)));
        while let ReadResult::Bytes(_) = pair.endpoints[1].read(ids[1], 100) {}
        pair.perform(1, Action::Send);
        (0..3).for_each(|lane| pair.perform(1, Action::Deliver(lane, usize::MAX)));
    }
    let [client, server] = &pair.endpoints;
    assert_eq!(client.written[&ids[0]].len(), 40 + 60, "its window, and what waits to be sent");
    assert!(server.read[&ids[1]].len() > 1000, "{}", server.read[&ids[1]].len());
}

#[test]
fn a_protocol_error_ends_the_session_and_is_reported() {
    let data = |length| TunnelFrame::Data(Bytes::from(vec![0; length]));
    let broken: [(&str, Vec<(u32, TunnelFrame)>); 8] = [
        ("data without credit", vec![(1, TunnelFrame::Open(connect_purpose())), (1, data(41))]),
        (
            "data after the end",
            vec![(1, TunnelFrame::Open(connect_purpose())), (1, TunnelFrame::Finish), (1, data(1))],
        ),
        ("never opened", vec![(5, data(1))]),
        ("an invalid number", vec![(2, TunnelFrame::Open(connect_purpose()))]),
        (
            "an answer without a request",
            vec![(1, TunnelFrame::Open(connect_purpose())), (1, TunnelFrame::Accept(0))],
        ),
        ("an answer without a request", vec![(0, TunnelFrame::Pong(1))]),
        ("a second HELLO", vec![(0, TunnelFrame::Hello { version: 1, window: 1 })]),
        ("a frame of the session on a channel", vec![(1, TunnelFrame::Ping(1))]),
    ];
    for (expected, frames) in broken {
        let mut peer = ScriptedPeer::new(SessionSide::Server);
        for (channel, frame) in frames {
            peer.sends(channel, &frame);
        }
        let Some(SessionEnd::Violation(ProtocolViolation(reason))) = peer.session.end().cloned()
        else {
            panic!("{expected}")
        };
        assert!(reason.contains(expected), "{reason}, not {expected}");
        let received = peer.receives();
        assert!(received.contains(&(0, TunnelFrame::Goodbye(reason.to_owned()))), "{received:?}");
    }
}

//= hostile tunnel
//# endless channels
//= bound: `channels`, `lanes`
#[test]
fn too_many_channels_are_refused_and_then_end_the_session() {
    let mut peer = ScriptedPeer::new(SessionSide::Server);
    for id in 0..8 {
        peer.sends(2 * id + 1, &TunnelFrame::Open(connect_purpose()));
    }
    assert_eq!(peer.session.channels(), 4);
    let received = peer.receives();
    let refused = |id| (id, TunnelFrame::Refuse(RefuseReason::TooMany, String::new()));
    assert_eq!(received[1..], [refused(9), refused(11), refused(13), refused(15)]);
    for id in 8..12 {
        peer.sends(2 * id + 1, &TunnelFrame::Open(connect_purpose()));
    }
    assert_eq!(peer.session.end(), None);
    peer.sends(25, &TunnelFrame::Open(connect_purpose()));
    assert!(
        matches!(peer.session.end(), Some(SessionEnd::Violation(_))),
        "{:?}",
        peer.session.end()
    );
}

#[test]
fn resetting_channels_does_not_raise_the_limit() {
    let mut peer = ScriptedPeer::new(SessionSide::Server);
    for id in 0..40 {
        peer.sends(2 * id + 1, &TunnelFrame::Open(connect_purpose()));
        peer.sends(2 * id + 1, &TunnelFrame::Reset);
    }
    assert_eq!(peer.session.end(), None);
    let received = peer.receives();
    assert!(
        received.iter().all(|(_, frame)| !matches!(frame, TunnelFrame::Refuse(..))),
        "{received:?}"
    );
}

//= hostile tunnel
//# an end that becomes silent
//= bound: `silence`
#[test]
fn a_silent_peer_is_pinged_and_then_given_up() {
    let limits = limits();
    let mut session = TunnelSession::new(SessionSide::Client, limits.clone(), NOW);
    assert_eq!(session.next_timeout(), Some(NOW + limits.keepalive));
    session.handle_timeout(NOW + limits.keepalive);
    let mut wire = BytesMut::new();
    session.poll_transmit(TunnelLane::FIRST, &mut wire);
    let frames: Vec<_> = std::iter::from_fn(|| frame::decode(&mut wire).expect("frames")).collect();
    assert_eq!(frames.last(), Some(&(0, TunnelFrame::Ping(1))));
    assert_eq!(session.next_timeout(), Some(NOW + limits.silence));
    let id = session.open(connect_purpose()).expect("a channel");
    session.handle_timeout(NOW + limits.silence);
    assert_eq!(session.end(), Some(&SessionEnd::Silent(limits.silence)));
    assert_eq!(session.poll_event(), Some(SessionEvent::Changed(id)));
    assert_eq!((session.read(id, &mut [0]), session.write(id, b"x")), (ReadResult::Gone, None));
    assert_eq!(session.next_timeout(), None);
}

#[test]
fn an_end_that_was_suspended_asks_before_it_gives_up() {
    let limits = limits();
    let mut session = TunnelSession::new(SessionSide::Client, limits.clone(), NOW);
    let late = NOW + 10 * limits.silence;
    session.handle_timeout(late);
    assert_eq!(session.end(), None);
    let due = late + limits.silence - limits.keepalive;
    assert_eq!(session.next_timeout(), Some(due));
    session.handle_timeout(due);
    assert_eq!(session.end(), Some(&SessionEnd::Silent(limits.silence)));
}

#[test]
fn another_version_is_reported() {
    let mut session = TunnelSession::new(SessionSide::Client, limits(), NOW);
    let mut wire = BytesMut::new();
    encode(0, &TunnelFrame::Hello { version: 9, window: 1 }, &mut wire);
    session.handle_bytes(NOW, TunnelLane::FIRST, &wire);
    assert_eq!(session.end(), Some(&SessionEnd::Version(9)));
}

#[test]
fn a_refusal_has_a_reason_and_a_reset_is_reported() {
    let mut pair = Pair::new();
    let [client, server] = &mut pair.endpoints;
    let id = client.session.open(connect_purpose()).expect("a channel");
    let lane = client.session.lane_of(id).expect("a stream");
    client.send();
    let to_server: Vec<u8> = client.wires[&lane].iter().copied().collect();
    server.session.handle_bytes(NOW, lane, &to_server);
    assert_eq!(server.session.poll_event(), Some(SessionEvent::Requested(id, connect_purpose())));
    server.session.refuse(id, RefuseReason::NotAllowed, "permit-open".to_owned());
    server.session.release(id);
    server.send();
    assert_eq!(server.session.channels(), 0);
    let to_client: Vec<u8> = server.wires[&lane].iter().copied().collect();
    client.session.handle_bytes(NOW, lane, &to_client);
    let refused = ChannelAnswer::Refused(RefuseReason::NotAllowed, "permit-open".to_owned());
    assert_eq!(client.session.answer(id), refused);
    client.session.release(id);
    assert_eq!(client.session.channels(), 0);
}
