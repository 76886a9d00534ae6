//! An association and a peer that knows its tags and sends arbitrary chunks: nothing panics, every input
//! has few outputs, memory is bounded, and once the peer is silent the association ends.
#![no_main]

use std::alloc::System;
use std::time::Duration;

use arbitrary::Arbitrary;
use bytes::Bytes;
use eyas_sctp::config::ConnectOptions;
use eyas_sctp::event::{Event, LossReason};
use eyas_sctp::identifier::{AssociationId, StreamId, VerificationTag};
use eyas_sctp::io::Input;
use eyas_sctp::message::{MessageReliability, SendInfo};
use eyas_sctp::serial::{ReconfigurationNumber, Tsn};
use eyas_sctp::wire::{ChecksumKind, Chunk, CommonHeader, PacketParser};
use libfuzzer_sys::fuzz_target;
use stats_alloc::{INSTRUMENTED_SYSTEM, Region, StatsAlloc};

#[path = "sctp/peer.rs"]
mod peer;
mod reach;
mod sctp;

use peer::{Action, Peer};
use reach::Reach;
use sctp::{Host, PORT, association, socket};

static REACH: Reach<9> = Reach::new([
    "our handshake completes",
    "a message is received",
    "the peer shuts down",
    "an association is shut down",
    "the peer aborts",
    "a silent peer times out",
    "a message is abandoned",
    "streams are reset",
    "the peer reports an error",
]);

/// Counts what an event has reached.
fn count(event: &Event) {
    REACH.hit(match event {
        Event::Up { by_peer: false, .. } => "our handshake completes",
        Event::PeerShutdown => "the peer shuts down",
        Event::Closed => "an association is shut down",
        Event::Lost(LossReason::AbortedByPeer { .. }) => "the peer aborts",
        Event::Lost(LossReason::NoAnswer | LossReason::PeerUnreachable) => {
            "a silent peer times out"
        }
        Event::SendFailed { .. } => "a message is abandoned",
        Event::StreamsReset { .. } => "streams are reset",
        Event::RemoteError { .. } => "the peer reports an error",
        _ => return,
    });
}

#[global_allocator]
static ALLOCATOR: &StatsAlloc<System> = &INSTRUMENTED_SYSTEM;

/// The maximum memory of an association with these buffers, including packets of 20 KB whose memory its
/// fragments may share.
const MEMORY: isize = 8 << 20;

/// Silence after which an association has ended, in virtual time.
const SILENCE: Duration = Duration::from_secs(24 * 3600);

/// A step of a run.
#[derive(Arbitrary, Debug)]
enum Step {
    Packet(Vec<Action>),
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
    /// An ICMP message, with or without a quoted packet.
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

/// Our association with a peer, connecting or established.
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
        let header = |tag| CommonHeader { source_port: PORT, destination_port: PORT, tag };
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
            let (_, mut chunks) =
                PacketParser::parse(&packet, ChecksumKind::Crc32c).expect("a packet");
            if let Some(Chunk::Init(init)) = chunks.next() {
                self.peer.header.tag = init.initiate_tag;
            }
            self.peer.learn(&packet);
        }
    }

    /// Lets one of our endpoints do the handshake, and then replaces it with the peer.
    fn accept(&mut self, bits: u8) {
        let mut other = Host::new(association(bits), Vec::new(), 1);
        let mut options = ConnectOptions::new(socket(1, 0), PORT);
        options.local_port = PORT;
        options.association = association(bits);
        other.endpoint.connect(self.now, &options).expect("good options");
        for _ in 0..3 {
            other.drain(self.now);
            for (_, packet) in other.take_packets() {
                let (header, chunks) =
                    PacketParser::parse(&packet, ChecksumKind::Crc32c).expect("a packet");
                self.peer.header = header;
                for chunk in chunks {
                    if let Chunk::Init(init) = chunk {
                        self.peer.next = init.initial_tsn;
                        self.peer.ours = ReconfigurationNumber(init.initial_tsn.0);
                    }
                }
                self.host.handle_packet(self.now, socket(0, 0), packet);
            }
            self.host.drain(self.now);
            for (_, packet) in self.host.take_packets() {
                let (_, chunks) =
                    PacketParser::parse(&packet, ChecksumKind::Crc32c).expect("a packet");
                for chunk in chunks {
                    if let Chunk::InitAck(init) = chunk {
                        self.peer.highest = init.initial_tsn.previous();
                        self.peer.theirs = ReconfigurationNumber(init.initial_tsn.0);
                    }
                }
                other.handle_packet(self.now, socket(1, 0), packet);
            }
        }
        self.id = self.host.endpoint.associations().first().copied();
        assert!(self.id.is_some(), "the handshake failed");
    }

    fn step(&mut self, step: &Step) {
        let (now, endpoint) = (self.now, &mut self.host.endpoint);
        let Some(id) = self.id else { return };
        match step {
            Step::Packet(actions) => {
                let packet = self.peer.packet(actions);
                self.host.handle_packet(now, socket(0, 0), packet);
            }
            Step::Raw(bytes) => {
                let packet = self.peer.packet(&[]);
                let packet = [&packet[..], bytes].concat();
                self.host.handle_packet(now, socket(0, 0), with_checksum(packet));
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
                        0 => {
                            MessageReliability::Lifetime(Duration::from_millis((*bits & 63).into()))
                        }
                        1 => MessageReliability::Retransmissions((*bits & 1).into()),
                        2 => MessageReliability::Priority((*bits & 3).into()),
                        _ => MessageReliability::Reliable,
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
                let streams: Vec<_> =
                    streams.iter().map(|stream| StreamId((*stream).into())).collect();
                let _ = endpoint
                    .association_mut(now, id)
                    .and_then(|mut association| association.reset_streams(*outgoing, &streams));
            }
            Step::AddStreams(outbound, inbound) => {
                let _ = endpoint.association_mut(now, id).and_then(|mut association| {
                    association.add_streams(*outbound % 40, *inbound % 40)
                });
            }
            Step::ResetAssociation => {
                let _ = endpoint
                    .association_mut(now, id)
                    .and_then(|mut association| association.reset());
            }
            Step::Report { kind, quoted, last } => {
                let quoted = quoted.clone().map(Bytes::from);
                let quoted = if *last { Some(self.last.clone()) } else { quoted };
                self.host.report_unreachable(now, socket(0, 0), *kind, quoted);
            }
        }
    }

    /// Advances to the next timeout, if there is one.
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

    /// Checks that the association ends if the peer stays silent.
    fn check_end(&mut self) {
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

/// Returns the packet with its correct checksum.
fn with_checksum(mut packet: Vec<u8>) -> Bytes {
    ChecksumKind::Crc32c.patch(&mut packet);
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
    subject.check_end();
});
