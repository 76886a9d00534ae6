//! A live association and a peer that knows its tags and says what it likes: nothing panics, every
//! input has few outputs, memory is bounded, and once the peer is silent the association ends.
#![no_main]

use std::alloc::System;
use std::time::Duration;

use arbitrary::Arbitrary;
use bytes::Bytes;
use eyas_sctp::config::ConnectOptions;
use eyas_sctp::event::{Event, LossReason};
use eyas_sctp::identifier::{AssociationId, StreamId, VerificationTag};
use eyas_sctp::io::Input;
use eyas_sctp::message::{Reliability, SendInfo};
use eyas_sctp::serial::{ReconfigurationNumber, Tsn};
use eyas_sctp::wire::{Checksum, Chunk, Header, Packet};
use libfuzzer_sys::fuzz_target;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[path = "sctp/peer.rs"]
mod peer;
mod reach;
mod sctp;

use peer::{Deed, Peer};
use reach::Reach;
use sctp::{Host, PORT, association, socket};

static REACH: Reach<9> = Reach::new([
    "a handshake of ours comes up",
    "a message is received",
    "the peer shuts down",
    "an association ends in order",
    "the peer aborts",
    "a silent peer is given up",
    "a message is given up",
    "streams are reset",
    "the peer reports an error",
]);

/// What an event has reached.
fn count(event: &Event) {
    REACH.hit(match event {
        Event::Up { by_peer: false, .. } => "a handshake of ours comes up",
        Event::PeerShutdown => "the peer shuts down",
        Event::Closed => "an association ends in order",
        Event::Lost(LossReason::AbortedByPeer { .. }) => "the peer aborts",
        Event::Lost(LossReason::NoAnswer | LossReason::PeerUnreachable) => {
            "a silent peer is given up"
        }
        Event::SendFailed { .. } => "a message is given up",
        Event::StreamsReset { .. } => "streams are reset",
        Event::RemoteError { .. } => "the peer reports an error",
        _ => return,
    });
}

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The most memory that an association with these buffers may take, with the packets of 20 KB that
/// its fragments may share memory with.
const MEMORY: isize = 8 << 20;

/// Silence after which an association has ended, in virtual time.
const SILENCE: Duration = Duration::from_secs(24 * 3600);

/// What happens.
#[derive(Arbitrary, Debug)]
enum Step {
    Packet(Vec<Deed>),
    Raw(Vec<u8>),
    Wait(u16),
    Tick,
    Send {
        stream: u8,
        length: u16,
        bits: u8,
    },
    Receive,
    Shutdown,
    Abort,
    ResetStreams(bool, Vec<u8>),
    AddStreams(u16, u16),
    ResetAssociation,
    /// What an ICMP message says, with a packet that it quotes or without.
    Report {
        kind: u8,
        quoted: Option<Vec<u8>>,
        last: bool,
    },
}

#[derive(Arbitrary, Debug)]
struct Run {
    bits: u8,
    connecting: bool,
    steps: Vec<Step>,
}

/// An association of ours towards a peer, by its own handshake or still in it.
struct Subject {
    host: Host,
    peer: Peer,
    now: Duration,
    id: Option<AssociationId>,
    /// The last packet that it sent.
    last: Bytes,
}

impl Subject {
    fn new(run: &Run) -> Self {
        let header = |tag| Header { source_port: PORT, destination_port: PORT, tag };
        let mut subject = Self {
            host: Host::new(association(run.bits), Vec::new(), 2),
            peer: Peer {
                header: header(VerificationTag(0)),
                next: Tsn(5000),
                highest: Tsn(0),
                ours: ReconfigurationNumber(5000),
                theirs: ReconfigurationNumber(0),
                heartbeat: Bytes::new(),
            },
            now: Duration::ZERO,
            id: None,
            last: Bytes::new(),
        };
        if run.connecting {
            subject.connect(run.bits);
        } else {
            subject.accept(run.bits);
        }
        subject
    }

    fn connect(&mut self, bits: u8) {
        let mut options = ConnectOptions::new(socket(0, 0), PORT);
        options.local_port = PORT;
        options.association = association(bits);
        self.id = self.host.endpoint.connect(self.now, &options).ok();
        self.host.drain(self.now);
        for (_, packet) in self.host.take_packets() {
            let (_, mut chunks) = Packet::parse(&packet, Checksum::Crc32c).expect("a packet");
            if let Some(Chunk::Init(init)) = chunks.next() {
                self.peer.header.tag = init.initiate_tag;
            }
            self.peer.learn(&packet);
        }
    }

    /// Lets an endpoint of ours do the handshake, and takes its place.
    fn accept(&mut self, bits: u8) {
        let mut other = Host::new(association(bits), Vec::new(), 1);
        let mut options = ConnectOptions::new(socket(1, 0), PORT);
        options.local_port = PORT;
        options.association = association(bits);
        other.endpoint.connect(self.now, &options).expect("good options");
        for _ in 0..3 {
            other.drain(self.now);
            for (_, packet) in other.take_packets() {
                let (header, chunks) = Packet::parse(&packet, Checksum::Crc32c).expect("a packet");
                self.peer.header = header;
                for chunk in chunks {
                    if let Chunk::Init(init) = chunk {
                        self.peer.next = init.initial_tsn;
                        self.peer.ours = ReconfigurationNumber(init.initial_tsn.0);
                    }
                }
                self.host.take(self.now, socket(0, 0), packet);
            }
            self.host.drain(self.now);
            for (_, packet) in self.host.take_packets() {
                let (_, chunks) = Packet::parse(&packet, Checksum::Crc32c).expect("a packet");
                for chunk in chunks {
                    if let Chunk::InitAck(init) = chunk {
                        self.peer.highest = init.initial_tsn.previous();
                        self.peer.theirs = ReconfigurationNumber(init.initial_tsn.0);
                    }
                }
                other.take(self.now, socket(1, 0), packet);
            }
        }
        self.id = self.host.endpoint.associations().first().copied();
        assert!(self.id.is_some(), "the handshake failed");
    }

    fn step(&mut self, step: &Step) {
        let (now, endpoint) = (self.now, &mut self.host.endpoint);
        let Some(id) = self.id else { return };
        match step {
            Step::Packet(deeds) => {
                let packet = self.peer.packet(deeds);
                self.host.take(now, socket(0, 0), packet);
            }
            Step::Raw(bytes) => {
                let packet = self.peer.packet(&[]);
                let packet = [&packet[..], bytes].concat();
                self.host.take(now, socket(0, 0), checked(packet));
            }
            Step::Wait(milliseconds) => {
                self.now += Duration::from_millis((*milliseconds).into());
                endpoint.handle_input(self.now, Input::Tick);
            }
            Step::Tick => {
                self.tick();
            }
            Step::Send { stream, length, bits } => {
                let info = SendInfo {
                    stream: StreamId((*stream % 24).into()),
                    unordered: bits & 1 != 0,
                    sack_immediately: bits & 2 != 0,
                    reliability: match bits >> 6 {
                        0 => Reliability::Lifetime(Duration::from_millis((*bits & 63).into())),
                        1 => Reliability::Retransmissions((*bits & 1).into()),
                        2 => Reliability::Priority((*bits & 3).into()),
                        _ => Reliability::Reliable,
                    },
                    ..SendInfo::default()
                };
                let data = Bytes::from(vec![b's'; usize::from(*length)]);
                let _ = endpoint.send(now, id, &info, data);
            }
            Step::Receive => {
                if !self.host.receive(now).is_empty() {
                    REACH.hit("a message is received");
                }
            }
            Step::Shutdown => drop(endpoint.shutdown(now, id)),
            Step::Abort => drop(endpoint.abort(now, id, Bytes::from_static(b"so"))),
            Step::ResetStreams(outgoing, streams) => {
                let streams: Vec<_> = streams.iter().map(|one| StreamId((*one).into())).collect();
                let _ = endpoint
                    .association_mut(now, id)
                    .and_then(|mut one| one.reset_streams(*outgoing, &streams));
            }
            Step::AddStreams(outbound, inbound) => {
                let _ = endpoint
                    .association_mut(now, id)
                    .and_then(|mut one| one.add_streams(*outbound % 40, *inbound % 40));
            }
            Step::ResetAssociation => {
                let _ = endpoint.association_mut(now, id).and_then(|mut one| one.reset());
            }
            Step::Report { kind, quoted, last } => {
                let quoted = quoted.clone().map(Bytes::from);
                let quoted = if *last { Some(self.last.clone()) } else { quoted };
                self.host.hear(now, socket(0, 0), *kind, quoted);
            }
        }
    }

    /// Goes to the next timeout, if there is one.
    fn tick(&mut self) -> bool {
        let Some(at) = self.host.timeout.take() else { return false };
        self.now = self.now.max(at);
        self.host.endpoint.handle_input(self.now, Input::Tick);
        true
    }

    fn settle(&mut self) {
        self.host.drain(self.now);
        for (_, packet) in self.host.take_packets() {
            self.peer.learn(&packet);
            self.last = packet;
        }
        self.host.events.drain(..).for_each(|(_, event)| count(&event));
    }

    /// Without another word from the peer, everything ends.
    fn ends(&mut self) {
        let limit = self.now + SILENCE;
        let mut steps = 0;
        loop {
            self.settle();
            drop(self.host.receive(self.now));
            self.settle();
            if self.host.endpoint.associations().is_empty() {
                return;
            }
            steps += 1;
            assert!(steps < 100_000, "too many timeouts");
            assert!(self.tick(), "an association without a timer");
            assert!(
                self.now < limit,
                "no end: {:?}",
                self.id.map(|id| self.host.endpoint.status(id))
            );
        }
    }
}

/// The same packet with the right checksum.
fn checked(mut packet: Vec<u8>) -> Bytes {
    Checksum::Crc32c.patch(&mut packet);
    packet.into()
}

fuzz_target!(|run: Run| {
    REACH.begin();
    let mut subject = Subject::new(&run);
    let region = Region::new(ALLOCATOR);
    for step in &run.steps {
        subject.step(step);
        subject.settle();
        let change = region.change();
        let growth = change.bytes_allocated as isize - change.bytes_deallocated as isize;
        assert!(growth < MEMORY, "{growth} bytes after {step:?}");
        assert!(subject.host.endpoint.associations().len() <= 1);
    }
    subject.ends();
});
