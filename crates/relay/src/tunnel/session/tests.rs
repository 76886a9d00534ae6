//! Two sessions and the data between them, in random and in fixed order; and a session with a hostile peer.

mod goodbye;
mod lanes;

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use proptest::prelude::*;

use super::*;
use crate::handshake::Destination;
use crate::tunnel::frame::{Broken, Frame, encode};
use eyas::race::target::Host;

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

fn somewhere() -> Purpose {
    Purpose::Connect(Destination { host: Host::parse("a.test").expect("a name"), port: 80 })
}

/// All streams of a pair.
const LANES: [Lane; 3] = [Lane::FIRST, Lane(1), Lane(2)];

/// One end, with the data that it has written and read on each channel.
struct Party {
    session: Session,
    open: Vec<u32>,
    wrote: BTreeMap<u32, Vec<u8>>,
    read: BTreeMap<u32, Vec<u8>>,
    /// The result with which reading ended.
    ended: BTreeMap<u32, Read>,
    /// The data in transit to the other end, on each stream.
    wires: BTreeMap<Lane, VecDeque<u8>>,
}

impl Party {
    fn new(side: Side) -> Self {
        Self {
            session: Session::new(side, limits(), NOW),
            open: Vec::new(),
            wrote: BTreeMap::new(),
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
            if let Event::Requested(id, purpose) = event {
                assert_eq!(purpose, somewhere());
                self.session.accept(id, 0);
                self.open.push(id);
            }
        }
    }

    /// Reads at most this many bytes of a channel.
    fn read(&mut self, id: u32, most: usize) -> Read {
        let mut piece = vec![0; most];
        let read = self.session.read(id, &mut piece);
        match read {
            Read::Bytes(length) => {
                assert!(!self.ended.contains_key(&id), "nothing follows the end");
                self.read.entry(id).or_default().extend(&piece[..length]);
            }
            Read::End | Read::Gone => {
                self.ended.entry(id).or_insert(read);
            }
            Read::Wait => {}
        }
        read
    }

    fn write(&mut self, id: u32, bytes: &[u8]) {
        if let Some(accepted) = self.session.write(id, bytes) {
            self.wrote.entry(id).or_default().extend(&bytes[..accepted]);
        }
    }
}

fn deliver(from: &mut Party, to: &mut Party, lane: Lane, most: usize) -> usize {
    let wire = from.wires.entry(lane).or_default();
    let length = wire.len().min(most);
    let piece: Vec<u8> = wire.drain(..length).collect();
    to.session.handle_bytes(NOW, lane, &piece);
    to.events();
    assert_eq!(to.session.end(), None);
    length
}

#[derive(Clone, Debug)]
enum Act {
    Open,
    Write(usize, Vec<u8>),
    Read(usize, usize),
    Finish(usize),
    Release(usize),
    Send,
    Deliver(usize, usize),
}

fn act() -> impl Strategy<Value = (bool, Act)> {
    let act = prop_oneof![
        1 => Just(Act::Open),
        6 => (0..8_usize, prop::collection::vec(any::<u8>(), 1..100)).prop_map(|(c, b)| Act::Write(c, b)),
        6 => (0..8_usize, 1..90_usize).prop_map(|(c, n)| Act::Read(c, n)),
        1 => (0..8_usize).prop_map(Act::Finish),
        1 => (0..16_usize).prop_map(Act::Release),
        6 => Just(Act::Send),
        8 => (0..3_usize, 1..120_usize).prop_map(|(l, n)| Act::Deliver(l, n)),
    ];
    (any::<bool>(), act)
}

struct Pair {
    parties: [Party; 2],
    /// Channels that were released early, so that they may be reset.
    released: Vec<u32>,
}

impl Pair {
    fn new() -> Self {
        let parties = [Party::new(Side::Client), Party::new(Side::Server)];
        let mut pair = Self { parties, released: Vec::new() };
        for who in [0, 1] {
            pair.act(who, Act::Send);
            pair.act(who, Act::Deliver(0, usize::MAX));
        }
        for party in &mut pair.parties {
            assert!(party.session.add_lane(LANES[1]) && party.session.add_lane(LANES[2]));
            assert!(!party.session.add_lane(LANES[2]) && !party.session.add_lane(Lane(3)));
        }
        for who in [0, 1] {
            pair.act(who, Act::Send);
            (1..3).for_each(|lane| pair.act(who, Act::Deliver(lane, usize::MAX)));
        }
        pair
    }

    fn act(&mut self, who: usize, act: Act) {
        let [client, server] = &mut self.parties;
        let (own, other) = if who == 0 { (client, server) } else { (server, client) };
        let channel = |own: &Party, index: usize| own.open.get(index).copied();
        match act {
            Act::Open => {
                if let Some(id) = own.session.open(somewhere()) {
                    own.open.push(id);
                }
            }
            Act::Write(index, bytes) => {
                if let Some(id) = channel(own, index) {
                    own.write(id, &bytes);
                }
            }
            Act::Read(index, most) => {
                if let Some(id) = channel(own, index) {
                    own.read(id, most);
                }
            }
            Act::Finish(index) => {
                if let Some(id) = channel(own, index) {
                    own.session.finish(id);
                }
            }
            Act::Release(index) => {
                if let Some(id) = channel(own, index) {
                    self.released.push(id);
                    own.session.release(id);
                }
            }
            Act::Send => own.send(),
            Act::Deliver(lane, most) => {
                deliver(own, other, LANES[lane], most);
            }
        }
        own.events();
    }

    /// Finishes every channel, and delivers and reads until nothing moves.
    fn settle(&mut self) {
        for party in &mut self.parties {
            for id in party.open.clone() {
                party.session.finish(id);
            }
        }
        // Every turn but the last moves a byte or an end; requested channels may be opened late.
        for _ in 0..10_000 {
            let mut moved = 0;
            for who in [0, 1] {
                let [client, server] = &mut self.parties;
                let (own, other) = if who == 0 { (client, server) } else { (server, client) };
                own.send();
                moved +=
                    LANES.map(|lane| deliver(own, other, lane, usize::MAX)).iter().sum::<usize>();
                for id in other.open.clone() {
                    other.session.finish(id);
                    while let Read::Bytes(_) = other.read(id, 64) {
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
            let (own, other) = (&self.parties[own], &self.parties[other]);
            for id in &own.open {
                let none = Vec::new();
                let wrote = own.wrote.get(id).unwrap_or(&none);
                let read = other.read.get(id).unwrap_or(&none);
                assert!(
                    wrote.starts_with(read),
                    "channel {id}: a byte was lost, repeated or mixed"
                );
                if let Answer::Refused(why, _) = own.session.answer(*id) {
                    assert_eq!((why, read.len()), (Why::TooMany, 0));
                } else if !self.released.contains(id) {
                    assert_eq!(other.ended.get(id), Some(&Read::End), "channel {id} ends well");
                    assert_eq!(read.len(), wrote.len(), "channel {id} is complete");
                }
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn no_interleaving_loses_repeats_or_mixes_a_byte(acts in prop::collection::vec(act(), 0..200)) {
        let mut pair = Pair::new();
        for (server, act) in acts {
            pair.act(usize::from(server), act);
        }
        pair.settle();
        pair.check();
        for party in &mut pair.parties {
            for id in party.open.clone() {
                party.session.release(id);
            }
        }
        pair.settle();
        for party in &pair.parties {
            prop_assert_eq!(party.session.channels(), 0, "channels that are over are removed");
            prop_assert_eq!(party.session.budget, limits().growth);
        }
    }

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
        let mut session = Session::new(Side::Server, limits(), NOW);
        let mut out = BytesMut::new();
        if hello {
            encode(0, &Frame::Hello { version: VERSION, window: 9 }, &mut out);
            session.handle_bytes(NOW, Lane::FIRST, &out);
        }
        let own = session.open(somewhere());
        for piece in pieces {
            session.handle_bytes(NOW, Lane::FIRST, &piece);
            while let Some(event) = session.poll_event() {
                if let Event::Requested(id, _) = event {
                    session.accept(id, 0);
                    session.write(id, b"hello");
                }
            }
            out.clear();
            session.poll_transmit(Lane::FIRST, &mut out);
            prop_assert!(session.channels() <= 1 + limits().channels);
            prop_assert!(session.buffered() <= 9 * 160 + frame::HEADER + frame::MAX_PAYLOAD + 40);
        }
        if let Some(own) = own {
            session.release(own);
        }
    }
}

/// A session whose other end is played by the test.
struct Scripted {
    session: Session,
}

impl Scripted {
    fn new(side: Side) -> Self {
        let mut one = Self { session: Session::new(side, limits(), NOW) };
        one.sends(0, &Frame::Hello { version: VERSION, window: 100 });
        one
    }

    /// Has the other end send a frame on the first stream.
    fn sends(&mut self, channel: u32, frame: &Frame) {
        self.sends_on(Lane::FIRST, channel, frame);
    }

    fn sends_on(&mut self, lane: Lane, channel: u32, frame: &Frame) {
        let mut wire = BytesMut::new();
        encode(channel, frame, &mut wire);
        self.session.handle_bytes(NOW, lane, &wire);
    }

    /// Returns the frames for the other end on the first stream.
    fn receives(&mut self) -> Vec<(u32, Frame)> {
        let mut wire = BytesMut::new();
        self.session.poll_transmit(Lane::FIRST, &mut wire);
        std::iter::from_fn(|| frame::decode(&mut wire).expect("frames")).collect()
    }
}

#[test]
fn a_channel_that_nobody_reads_stops_only_itself() {
    let mut pair = Pair::new();
    let mut ids = Vec::new();
    for _ in 0..2 {
        pair.act(0, Act::Open);
        ids.push(pair.parties[0].open[ids.len()]);
    }
    for _ in 0..50 {
        for index in 0..2 {
            pair.act(0, Act::Write(index, vec![7; 30]));
        }
        pair.act(0, Act::Send);
        (0..3).for_each(|lane| pair.act(0, Act::Deliver(lane, usize::MAX)));
        while let Read::Bytes(_) = pair.parties[1].read(ids[1], 100) {}
        pair.act(1, Act::Send);
        (0..3).for_each(|lane| pair.act(1, Act::Deliver(lane, usize::MAX)));
    }
    let [client, server] = &pair.parties;
    assert_eq!(client.wrote[&ids[0]].len(), 40 + 60, "its window, and what waits to be sent");
    assert!(server.read[&ids[1]].len() > 1000, "{}", server.read[&ids[1]].len());
}

#[test]
fn a_protocol_error_ends_the_session_and_is_reported() {
    let data = |length| Frame::Data(Bytes::from(vec![0; length]));
    let broken: [(&str, Vec<(u32, Frame)>); 8] = [
        ("data without credit", vec![(1, Frame::Open(somewhere())), (1, data(41))]),
        (
            "data after the end",
            vec![(1, Frame::Open(somewhere())), (1, Frame::Finish), (1, data(1))],
        ),
        ("never opened", vec![(5, data(1))]),
        ("an invalid number", vec![(2, Frame::Open(somewhere()))]),
        ("an answer without a request", vec![(1, Frame::Open(somewhere())), (1, Frame::Accept(0))]),
        ("an answer without a request", vec![(0, Frame::Pong(1))]),
        ("a second HELLO", vec![(0, Frame::Hello { version: 1, window: 1 })]),
        ("a frame of the session on a channel", vec![(1, Frame::Ping(1))]),
    ];
    for (expected, frames) in broken {
        let mut peer = Scripted::new(Side::Server);
        for (channel, frame) in frames {
            peer.sends(channel, &frame);
        }
        let Some(End::Broken(Broken(reason))) = peer.session.end().cloned() else {
            panic!("{expected}")
        };
        assert!(reason.contains(expected), "{reason}, not {expected}");
        let received = peer.receives();
        assert!(received.contains(&(0, Frame::Goodbye(reason.to_owned()))), "{received:?}");
    }
}

#[test]
fn too_many_channels_are_refused_and_then_end_the_session() {
    let mut peer = Scripted::new(Side::Server);
    for id in 0..8 {
        peer.sends(2 * id + 1, &Frame::Open(somewhere()));
    }
    assert_eq!(peer.session.channels(), 4);
    let received = peer.receives();
    let refused = |id| (id, Frame::Refuse(Why::TooMany, String::new()));
    assert_eq!(received[1..], [refused(9), refused(11), refused(13), refused(15)]);
    for id in 8..12 {
        peer.sends(2 * id + 1, &Frame::Open(somewhere()));
    }
    assert_eq!(peer.session.end(), None);
    peer.sends(25, &Frame::Open(somewhere()));
    assert!(matches!(peer.session.end(), Some(End::Broken(_))), "{:?}", peer.session.end());
}

#[test]
fn resetting_channels_does_not_raise_the_limit() {
    let mut peer = Scripted::new(Side::Server);
    for id in 0..40 {
        peer.sends(2 * id + 1, &Frame::Open(somewhere()));
        peer.sends(2 * id + 1, &Frame::Reset);
    }
    assert_eq!(peer.session.end(), None);
    let received = peer.receives();
    assert!(received.iter().all(|(_, frame)| !matches!(frame, Frame::Refuse(..))), "{received:?}");
}

#[test]
fn a_silent_peer_is_pinged_and_then_given_up() {
    let limits = limits();
    let mut session = Session::new(Side::Client, limits.clone(), NOW);
    assert_eq!(session.next_timeout(), Some(NOW + limits.keepalive));
    session.handle_timeout(NOW + limits.keepalive);
    let mut wire = BytesMut::new();
    session.poll_transmit(Lane::FIRST, &mut wire);
    let frames: Vec<_> = std::iter::from_fn(|| frame::decode(&mut wire).expect("frames")).collect();
    assert_eq!(frames.last(), Some(&(0, Frame::Ping(1))));
    assert_eq!(session.next_timeout(), Some(NOW + limits.silence));
    let id = session.open(somewhere()).expect("a channel");
    session.handle_timeout(NOW + limits.silence);
    assert_eq!(session.end(), Some(&End::Silent(limits.silence)));
    assert_eq!(session.poll_event(), Some(Event::Changed(id)));
    assert_eq!((session.read(id, &mut [0]), session.write(id, b"x")), (Read::Gone, None));
    assert_eq!(session.next_timeout(), None);
}

#[test]
fn another_version_is_reported() {
    let mut session = Session::new(Side::Client, limits(), NOW);
    let mut wire = BytesMut::new();
    encode(0, &Frame::Hello { version: 9, window: 1 }, &mut wire);
    session.handle_bytes(NOW, Lane::FIRST, &wire);
    assert_eq!(session.end(), Some(&End::Version(9)));
}

#[test]
fn a_refusal_has_a_reason_and_a_reset_is_reported() {
    let mut pair = Pair::new();
    let [client, server] = &mut pair.parties;
    let id = client.session.open(somewhere()).expect("a channel");
    let lane = client.session.lane_of(id).expect("a stream");
    client.send();
    let to_server: Vec<u8> = client.wires[&lane].iter().copied().collect();
    server.session.handle_bytes(NOW, lane, &to_server);
    assert_eq!(server.session.poll_event(), Some(Event::Requested(id, somewhere())));
    server.session.refuse(id, Why::NotAllowed, "permit-open".to_owned());
    server.session.release(id);
    server.send();
    assert_eq!(server.session.channels(), 0);
    let to_client: Vec<u8> = server.wires[&lane].iter().copied().collect();
    client.session.handle_bytes(NOW, lane, &to_client);
    let refused = Answer::Refused(Why::NotAllowed, "permit-open".to_owned());
    assert_eq!(client.session.answer(id), refused);
    client.session.release(id);
    assert_eq!(client.session.channels(), 0);
}
