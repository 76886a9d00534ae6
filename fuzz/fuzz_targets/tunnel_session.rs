//! Two ends of a tunnel with arbitrary calls of their users, streams that are delivered in any order and
//! split anywhere, or one end and arbitrary frames of a peer.
//!
//! Between two of our ends no byte is lost, repeated or mixed up, neither violates the protocol, and
//! released channels are forgotten. Whatever a peer sends, buffers stay below the limits, decoded frames are
//! encoded to the same frames, and an ended session stays ended.
#![no_main]

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use arbitrary::Arbitrary;
use bytes::{BufMut, Bytes, BytesMut};
use eyas_race::target::TargetHost;
use eyas_relay::destination::Destination;
use eyas_tunnel::internals::frame::{self, MAX_DATA, TunnelFrame, VERSION};
use eyas_tunnel::internals::{
    ChannelAnswer, ReadResult, SessionEvent, SessionSide, TRANSMIT, TunnelSession,
};
use eyas_tunnel::{ChannelPurpose, RefuseReason, SessionEnd, SessionLimits, TunnelLane};
use libfuzzer_sys::fuzz_target;

mod reach;

use reach::Reach;

static REACH: Reach<9> = Reach::new([
    "a byte that arrived",
    "a byte that arrived on a further stream",
    "a channel that ended well",
    "a channel that was cut off",
    "a refused channel",
    "an end at its limit of channels",
    "a peer that violated the protocol",
    "a peer that was silent for too long",
    "a session that was closed",
]);

/// The streams of a session; the first exists from the beginning.
const LANES: [TunnelLane; 3] = [TunnelLane::FIRST, TunnelLane(1), TunnelLane(2)];

/// The maximum steps of one run. More only take longer.
const MAX_STEPS: usize = 400;

#[derive(Arbitrary, Debug)]
enum Input {
    /// Two of our ends.
    Pair(Vec<(bool, Step)>),
    /// One end, whether its peer sends a valid Hello, and the peer's messages.
    Peer { is_client: bool, greets: bool, messages: Vec<Message> },
}

#[derive(Arbitrary, Debug)]
enum Step {
    Open { refused: bool },
    Write { channel: u8, length: u16 },
    Read { channel: u8, most: u16 },
    Finish(u8),
    Release(u8),
    Settle { channel: u8, refuse: bool },
    Send,
    Deliver { lane: u8, most: u16 },
    Later(u8),
}

#[derive(Arbitrary, Debug)]
enum Message {
    Raw { lane: u8, bytes: Vec<u8> },
    Framed { lane: u8, kind: u8, channel: u8, payload: Vec<u8> },
    Data { lane: u8, channel: u8, length: u16 },
    Own(Step),
}

fn limits() -> SessionLimits {
    SessionLimits {
        channels: 4,
        lanes: 2,
        first_window: 400,
        window: 3200,
        growth: 4000,
        send_buffer: 600,
        ..SessionLimits::default()
    }
}

/// Returns the byte at a position of what one side writes on a channel.
fn byte_at(side: usize, channel: u32, place: usize) -> u8 {
    (place as u32).wrapping_mul(31).wrapping_add(channel.wrapping_mul(7) + side as u32 * 101) as u8
}

/// The destination port that the other end refuses.
const REFUSED: u16 = 81;

fn somewhere(port: u16) -> ChannelPurpose {
    ChannelPurpose::Connect(Destination::new(TargetHost::parse("a.test").expect("a name"), port))
}

/// One end and its user.
struct Party {
    session: TunnelSession,
    side: usize,
    /// Channels in their order of creation, and unanswered requests.
    known: Vec<u32>,
    requested: VecDeque<(u32, ChannelPurpose)>,
    wrote: BTreeMap<u32, usize>,
    read: BTreeMap<u32, usize>,
    ended: BTreeMap<u32, ReadResult>,
    /// In flight to the other end, on each stream.
    wires: [BytesMut; 3],
}

impl Party {
    fn new(side: SessionSide) -> Self {
        Self {
            session: TunnelSession::new(side, limits(), Duration::ZERO),
            side: usize::from(side == SessionSide::Server),
            known: Vec::new(),
            requested: VecDeque::new(),
            wrote: BTreeMap::new(),
            read: BTreeMap::new(),
            ended: BTreeMap::new(),
            wires: Default::default(),
        }
    }

    fn channel(&self, index: u8) -> Option<u32> {
        let index = usize::from(index).checked_rem(self.known.len())?;
        self.known.get(index).copied()
    }

    fn act(&mut self, step: &Step, now: &mut Duration) {
        match *step {
            Step::Open { refused } => {
                let port = if refused { REFUSED } else { REFUSED - 1 };
                match self.session.open(somewhere(port)) {
                    Some(id) => self.known.push(id),
                    None => REACH.hit("an end at its limit of channels"),
                }
            }
            Step::Write { channel, length } => {
                if let Some(id) = self.channel(channel) {
                    self.write(id, length.into());
                }
            }
            Step::Read { channel, most } => {
                if let Some(id) = self.channel(channel) {
                    self.read(id, most.into());
                }
            }
            Step::Finish(channel) => {
                if let Some(id) = self.channel(channel) {
                    self.session.finish(id);
                }
            }
            Step::Release(channel) => {
                if let Some(id) = self.channel(channel) {
                    self.session.release(id);
                }
            }
            Step::Settle { channel, refuse } => {
                let index = usize::from(channel).checked_rem(self.requested.len());
                if let Some((id, _)) = index.and_then(|index| self.requested.remove(index)) {
                    self.settle(id, refuse);
                }
            }
            Step::Send => self.send(),
            Step::Deliver { .. } => {}
            Step::Later(seconds) => {
                *now += Duration::from_secs(u64::from(seconds) / 16);
                self.session.handle_timeout(*now);
            }
        }
        self.poll_events();
    }

    fn settle(&mut self, id: u32, refuse: bool) {
        match refuse {
            false => self.session.accept(id, 0),
            true => {
                self.session.refuse(id, RefuseReason::Failed, "no".to_owned());
                self.session.release(id);
            }
        }
    }

    fn poll_events(&mut self) {
        while let Some(event) = self.session.poll_event() {
            if let SessionEvent::Requested(id, purpose) = event {
                self.known.push(id);
                self.requested.push_back((id, purpose));
            }
        }
    }

    fn write(&mut self, id: u32, length: usize) {
        let at = self.wrote.get(&id).copied().unwrap_or_default();
        let bytes: Vec<_> = (at..at + length).map(|at| byte_at(self.side, id, at)).collect();
        if let Some(taken) = self.session.write(id, &bytes) {
            assert!(taken <= length);
            self.wrote.insert(id, at + taken);
        }
    }

    /// Reads; returns whether there was data.
    fn read(&mut self, id: u32, most: usize) -> bool {
        let mut piece = vec![0; most.max(1)];
        let read = self.session.read(id, &mut piece);
        match read {
            ReadResult::Bytes(length) => {
                assert!(!self.ended.contains_key(&id), "data after the end");
                let at = self.read.entry(id).or_default();
                for (offset, byte) in piece[..length].iter().enumerate() {
                    assert_eq!(*byte, byte_at(1 - self.side, id, *at + offset), "channel {id}");
                }
                *at += length;
                if self.session.lane_of(id).is_some_and(|lane| lane != TunnelLane::FIRST) {
                    REACH.hit("a byte that arrived on a further stream");
                }
                REACH.hit("a byte that arrived");
                return true;
            }
            ReadResult::End | ReadResult::Gone => {
                self.ended.entry(id).or_insert(read);
            }
            ReadResult::Wait => {}
        }
        false
    }

    fn send(&mut self) {
        for (lane, wire) in LANES.into_iter().zip(&mut self.wires) {
            let before = wire.len();
            self.session.poll_transmit(lane, wire);
            let most = before.max(TRANSMIT) + MAX_DATA + 1024;
            assert!(wire.len() <= most, "{} bytes at once", wire.len() - before);
        }
    }

    fn check(&self) {
        let limits = limits();
        assert!(self.session.channels() <= 2 * limits.channels);
        let windows = 2 * limits.channels * limits.first_window as usize + limits.growth;
        let unread = LANES.len() * (frame::HEADER + frame::MAX_PAYLOAD + usize::from(u16::MAX));
        let most = windows + unread;
        assert!(self.session.buffered() <= most, "{} bytes are buffered", self.session.buffered());
    }
}

/// Delivers up to `most` bytes of one stream.
fn deliver(from: &mut Party, to: &mut Party, lane: usize, most: usize, now: Duration) -> usize {
    let wire = &mut from.wires[lane];
    let length = wire.len().min(most);
    let piece = wire.split_to(length);
    to.session.handle_bytes(now, LANES[lane], &piece);
    to.poll_events();
    length
}

/// Delivers everything.
fn deliver_all(from: &mut Party, to: &mut Party, now: Duration) -> usize {
    (0..LANES.len()).map(|lane| deliver(from, to, lane, usize::MAX, now)).sum()
}

/// Returns two connected ends, with all streams.
fn connected(now: Duration) -> [Party; 2] {
    let mut parties = [Party::new(SessionSide::Client), Party::new(SessionSide::Server)];
    for is_first in [true, false] {
        let [client, server] = &mut parties;
        client.send();
        server.send();
        deliver_all(client, server, now);
        deliver_all(server, client, now);
        for party in parties.iter_mut().filter(|_| is_first) {
            assert!(party.session.is_up());
            assert!(LANES[1..].iter().all(|lane| party.session.add_lane(*lane)));
        }
    }
    parties
}

fn pair(steps: &[(bool, Step)]) {
    let mut now = Duration::ZERO;
    let mut parties = connected(now);
    for (is_server, step) in steps.iter().take(MAX_STEPS) {
        let [client, server] = &mut parties;
        let (own, other) = if *is_server { (server, client) } else { (client, server) };
        own.act(step, &mut now);
        if let Step::Deliver { lane, most } = step {
            deliver(own, other, usize::from(*lane) % LANES.len(), usize::from(*most) + 1, now);
        }
        for party in &parties {
            party.check();
            match party.session.end() {
                None => {}
                Some(SessionEnd::Silent(_)) => {
                    return REACH.hit("a peer that was silent for too long");
                }
                Some(end) => panic!("two of our ends: {end}"),
            }
        }
    }
    finish(&mut parties, now);
}

/// Sends and reads everything, and checks the result.
fn finish(parties: &mut [Party; 2], now: Duration) {
    for turn in 0.. {
        assert!(turn < 10_000, "the ends never become idle");
        let mut moved = 0;
        for is_server in [false, true] {
            let [client, server] = &mut *parties;
            let (own, other) = if is_server { (server, client) } else { (client, server) };
            while let Some((id, purpose)) = own.requested.pop_front() {
                own.settle(id, purpose == somewhere(REFUSED));
            }
            for id in own.known.clone() {
                own.session.finish(id);
            }
            own.send();
            moved += deliver_all(own, other, now);
            for id in other.known.clone() {
                while other.read(id, 64) {
                    moved += 1;
                }
            }
        }
        if moved == 0 {
            break;
        }
    }
    for (own, other) in [(0, 1), (1, 0)] {
        let (own, other) = (&parties[own], &parties[other]);
        for id in &own.known {
            let wrote = own.wrote.get(id).copied().unwrap_or_default();
            let read = other.read.get(id).copied().unwrap_or_default();
            assert!(read <= wrote, "channel {id}");
            match (own.session.answer(*id), other.ended.get(id)) {
                (ChannelAnswer::Refused(..), _) => REACH.hit("a refused channel"),
                (_, Some(ReadResult::End)) => {
                    assert_eq!(read, wrote, "channel {id} is complete");
                    REACH.hit("a channel that ended well");
                }
                _ => REACH.hit("a channel that was cut off"),
            }
        }
    }
    for party in &mut *parties {
        for id in party.known.clone() {
            party.session.release(id);
        }
    }
    for _ in 0..4 {
        let [client, server] = &mut *parties;
        client.send();
        deliver_all(client, server, now);
        server.send();
        deliver_all(server, client, now);
    }
    for party in &*parties {
        assert_eq!(party.session.channels(), 0, "ended channels are forgotten");
    }
    parties[0].session.goodbye("enough");
    parties[0].send();
    let [client, server] = parties;
    deliver_all(client, server, now);
    assert_eq!(server.session.end(), Some(&SessionEnd::Goodbye("enough".to_owned())));
    REACH.hit("a session that was closed");
}

/// Checks that decoded frames are encoded to the same frames.
fn check_round_trip(bytes: &[u8]) {
    let mut wire = BytesMut::from(bytes);
    while let Ok(Some((channel, frame))) = frame::decode(&mut wire) {
        let mut encoded = BytesMut::new();
        frame::encode(channel, &frame, &mut encoded);
        assert_eq!(frame::decode(&mut encoded), Ok(Some((channel, frame))));
        assert!(encoded.is_empty());
    }
}

/// Appends a peer's message to its stream, or executes a step of this end's user.
fn apply(own: &mut Party, wires: &mut [BytesMut; 3], message: &Message, now: &mut Duration) {
    let lane_of = |lane: u8| usize::from(lane) % LANES.len();
    match message {
        Message::Raw { lane, bytes } => wires[lane_of(*lane)].put_slice(bytes),
        Message::Framed { lane, kind, channel, payload } => {
            let payload = &payload[..payload.len().min(usize::from(u16::MAX))];
            let wire = &mut wires[lane_of(*lane)];
            wire.put_u8(kind % 13);
            wire.put_u32((channel % 24).into());
            wire.put_u16(payload.len() as u16);
            wire.put_slice(payload);
        }
        Message::Data { lane, channel, length } => {
            let data = vec![7; usize::from(*length).clamp(1, MAX_DATA)];
            let frame = TunnelFrame::Data(Bytes::from(data));
            frame::encode((channel % 24).into(), &frame, &mut wires[lane_of(*lane)]);
        }
        // The data of an arbitrary peer cannot be checked.
        Message::Own(Step::Read { .. }) => {}
        Message::Own(step) => own.act(step, now),
    }
}

fn peer(is_client: bool, greets: bool, messages: &[Message]) {
    let mut now = Duration::ZERO;
    let mut own = Party::new(if is_client { SessionSide::Client } else { SessionSide::Server });
    let mut wires = <[BytesMut; 3]>::default();
    assert!(LANES[1..].iter().all(|lane| own.session.add_lane(*lane)));
    if greets {
        for wire in &mut wires {
            frame::encode(0, &TunnelFrame::Hello { version: VERSION, window: 1000 }, wire);
        }
    }
    for message in messages.iter().take(MAX_STEPS) {
        apply(&mut own, &mut wires, message, &mut now);
        let was_over = own.session.end().cloned();
        for (lane, wire) in LANES.into_iter().zip(&mut wires) {
            check_round_trip(wire);
            own.session.handle_bytes(now, lane, &wire.split());
            own.poll_events();
            own.check();
        }
        own.send();
        own.wires = Default::default();
        match (was_over, own.session.end()) {
            (Some(was), is) => assert_eq!(Some(&was), is),
            (None, Some(SessionEnd::Violation(_))) => {
                REACH.hit("a peer that violated the protocol")
            }
            (None, Some(SessionEnd::Silent(_))) => REACH.hit("a peer that was silent for too long"),
            (None, _) => {}
        }
    }
}

fuzz_target!(|input: Input| {
    REACH.begin();
    match input {
        Input::Pair(steps) => pair(&steps),
        Input::Peer { is_client, greets, messages } => peer(is_client, greets, &messages),
    }
});
