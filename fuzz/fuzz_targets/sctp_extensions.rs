//! An association with all extensions, and a peer that has the keys: random input never contains a valid
//! HMAC, and hardly ever a chunk that continues the previous ones. Each step is four octets, so that every
//! input is valid and a change of one octet changes one step.
#![no_main]

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use eyas_sctp::auth::{AssociationAuthentication, AuthOffer, SharedKeys};
use eyas_sctp::config::{AssociationConfig, ConnectOptions};
use eyas_sctp::event::Event;
use eyas_sctp::identifier::{AssociationId, Ppid, StreamId, VerificationTag};
use eyas_sctp::io::Input;
use eyas_sctp::message::{MessageReliability, SendInfo};
use eyas_sctp::serial::{AsconfNumber, Mid, Ssn, Tsn};
use eyas_sctp::wire::parameter::AddressRequest;
use eyas_sctp::wire::{
    AsconfAckChunk, AsconfChunk, ChecksumKind, Chunk, CommonHeader, DataChunk, DataFlags,
    DataOrder, ForwardTsnChunk, IForwardTsnChunk, PacketParser, PacketWriter, Parameter,
    Parameters, SackBuilder, SkippedMid, SkippedSsn,
};
use libfuzzer_sys::fuzz_target;

mod reach;
mod sctp;

use reach::Reach;
use sctp::{Host, PORT, association, socket};

/// The maximum steps of one run; more find nothing new.
const MAX_STEPS: usize = 200;

/// Silence after which an association has ended, in virtual time.
const SILENCE: Duration = Duration::from_secs(24 * 3600);

static REACH: Reach<10> = Reach::new([
    "FORWARD-TSN is acknowledged",
    "I-FORWARD-TSN is acknowledged",
    "FORWARD-TSN is sent",
    "I-FORWARD-TSN is sent",
    "AUTH is refused",
    "a chunk without AUTH is ignored",
    "ASCONF is answered",
    "ASCONF adds a path",
    "ASCONF is sent",
    "ASCONF-ACK is accepted",
]);

/// The peer, which replaces one of our endpoints after the handshake.
struct Peer {
    header: CommonHeader,
    /// The peer's next TSN.
    next: Tsn,
    /// The peer's last TSN that the other side has acknowledged.
    acknowledged: Tsn,
    /// The highest TSN of the other side.
    highest: Tsn,
    /// The serial numbers of the peer's next ASCONF, and of the other side's last one.
    next_asconf: AsconfNumber,
    last_asconf: AsconfNumber,
    authentication: AssociationAuthentication,
    is_interleaved: bool,
    /// A TSN that was skipped and never sent: its acknowledgement shows that the skip was accepted.
    skipped: Option<Tsn>,
}

fn config(bits: u8) -> AssociationConfig {
    let mut config = association(bits | 2);
    config.extensions.dynamic_addresses = true;
    if bits & 64 != 0 {
        // DATA, SACK, I-DATA, FORWARD-TSN, I-FORWARD-TSN.
        config.authenticated_chunks = vec![0, 3, 64, 192, 194];
    }
    config
}

fn address(number: u8) -> IpAddr {
    Ipv4Addr::new(192, 0, 2 + number % 4, 2 + (number >> 2) % 3).into()
}

struct Subject {
    host: Host,
    peer: Peer,
    id: AssociationId,
    now: Duration,
}

impl Subject {
    /// Lets one of our endpoints do the handshake, and then replaces it with the peer.
    fn new(bits: u8) -> Self {
        let now = Duration::ZERO;
        let mut host = Host::new(config(bits), Vec::new(), 2);
        let mut other = Host::new(config(bits), Vec::new(), 1);
        let mut options = ConnectOptions::new(socket(1, 0), PORT);
        options.local_port = PORT;
        options.association = config(bits);
        other.endpoint.connect(now, &options).expect("good options");
        let mut header =
            CommonHeader { source_port: PORT, destination_port: PORT, tag: VerificationTag(0) };
        let (mut ours, mut theirs) = (None, None);
        for _ in 0..3 {
            other.drain(now);
            for (_, packet) in other.take_packets() {
                let (sent, chunks) =
                    PacketParser::parse(&packet, ChecksumKind::Crc32c).expect("a packet");
                header = sent;
                for chunk in chunks {
                    if let Chunk::Init(init) = chunk {
                        ours = Some((init.initial_tsn, offer(&init.parameters)));
                    }
                }
                host.handle_packet(now, socket(0, 0), packet);
            }
            host.drain(now);
            for (_, packet) in host.take_packets() {
                let (_, chunks) =
                    PacketParser::parse(&packet, ChecksumKind::Crc32c).expect("a packet");
                for chunk in chunks {
                    if let Chunk::InitAck(init) = chunk {
                        theirs = Some((init.initial_tsn, offer(&init.parameters)));
                    }
                }
                other.handle_packet(now, socket(1, 0), packet);
            }
        }
        let (ours, theirs) = (ours.expect("an INIT"), theirs.expect("an INIT ACK"));
        let authentication =
            AssociationAuthentication::new(ours.1, &theirs.1, SharedKeys::default());
        let peer = Peer {
            header,
            next: ours.0,
            acknowledged: ours.0.previous(),
            highest: theirs.0.previous(),
            next_asconf: AsconfNumber(ours.0.0),
            last_asconf: AsconfNumber(theirs.0.0),
            authentication: authentication.expect("an algorithm"),
            is_interleaved: bits & 1 != 0,
            skipped: None,
        };
        let id = host.endpoint.associations().first().copied().expect("a handshake");
        Self { host, peer, id, now }
    }

    fn step(&mut self, step: [u8; 4]) {
        let [kind, a, b, c] = step;
        let (now, id) = (self.now, self.id);
        match kind % 16 {
            0..8 => {
                let chunk = self.peer.chunk(kind % 8, a, b, c);
                let packet = self.peer.packet(&chunk, c);
                self.host.handle_packet(now, socket(0, 0), packet);
            }
            8 => drop(
                self.host
                    .endpoint
                    .association_mut(now, id)
                    .and_then(|mut association| association.add_address(address(a))),
            ),
            9 => drop(
                self.host
                    .endpoint
                    .association_mut(now, id)
                    .and_then(|mut association| association.remove_address(address(a))),
            ),
            10 => drop(
                self.host
                    .endpoint
                    .association_mut(now, id)
                    .and_then(|mut association| association.set_peer_primary(address(a))),
            ),
            11 => {
                self.now += Duration::from_millis(u64::from(a) * 16);
                self.host.endpoint.handle_input(self.now, Input::Tick);
            }
            12 => {
                let reliability = match b % 3 {
                    0 => MessageReliability::Lifetime(Duration::from_millis(c.into())),
                    1 => MessageReliability::Retransmissions(u16::from(c % 4)),
                    _ => MessageReliability::Reliable,
                };
                let stream = StreamId(u16::from(a % 20));
                let info = SendInfo { stream, reliability, ..SendInfo::default() };
                let data = Bytes::from(vec![b's'; usize::from(c) * 16 + 1]);
                let _ = self.host.endpoint.send(now, id, &info, data);
            }
            13 => drop(self.host.receive(now)),
            14 if b & 1 == 0 => drop(self.host.endpoint.shutdown(now, id)),
            14 => self.host.report_unreachable(now, socket(0, 0), a, None),
            _ => {
                self.tick();
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

    /// Collects all outputs, and shows the packets to the peer.
    fn settle(&mut self) {
        self.host.drain(self.now);
        for (_, packet) in self.host.take_packets() {
            self.peer.learn(&packet);
        }
        for (_, event) in self.host.events.drain(..) {
            if let Event::OwnAddress { .. } = event {
                REACH.hit("ASCONF-ACK is accepted");
            }
        }
    }

    fn count(&self) {
        let counters = self.host.endpoint.counters();
        for (count, name) in [
            (counters.forged_authentications, "AUTH is refused"),
            (counters.unauthenticated_chunks, "a chunk without AUTH is ignored"),
        ] {
            if count > 0 {
                REACH.hit(name);
            }
        }
        let status = self.host.endpoint.status(self.id);
        if status.is_some_and(|status| status.paths.len() > 1) {
            REACH.hit("ASCONF adds a path");
        }
    }

    /// Checks that the association ends if the peer stays silent.
    fn check_end(&mut self) {
        let limit = self.now + SILENCE;
        for _ in 0..100_000 {
            self.settle();
            drop(self.host.receive(self.now));
            self.settle();
            if self.host.endpoint.associations().is_empty() {
                return;
            }
            assert!(self.tick(), "an association without a timer");
            assert!(self.now < limit, "no end: {:?}", self.host.endpoint.status(self.id));
        }
        panic!("too many timeouts");
    }
}

fn offer(parameters: &Parameters) -> AuthOffer {
    AuthOffer::from_parameters(parameters).expect("an offer")
}

impl Peer {
    /// Learns from a packet of the other side.
    fn learn(&mut self, packet: &Bytes) {
        let (_, chunks) = PacketParser::parse(packet, ChecksumKind::Crc32c).expect("a packet");
        for chunk in chunks {
            match chunk {
                Chunk::Data(data) if data.tsn.is_after(self.highest) => self.highest = data.tsn,
                Chunk::Sack(sack) => {
                    self.acknowledged = sack.cumulative_tsn;
                    if self.skipped.take_if(|to| !to.is_after(sack.cumulative_tsn)).is_some() {
                        REACH.hit(match self.is_interleaved {
                            true => "I-FORWARD-TSN is acknowledged",
                            false => "FORWARD-TSN is acknowledged",
                        });
                    }
                }
                Chunk::ForwardTsn(_) => REACH.hit("FORWARD-TSN is sent"),
                Chunk::IForwardTsn(_) => REACH.hit("I-FORWARD-TSN is sent"),
                Chunk::AsconfAck(_) => REACH.hit("ASCONF is answered"),
                Chunk::Asconf(asconf) => {
                    self.last_asconf = asconf.serial;
                    REACH.hit("ASCONF is sent");
                }
                Chunk::Auth(auth) => {
                    let verification = self.authentication.verify(&auth);
                    assert_eq!(verification, eyas_sctp::auth::AuthVerification::Authentic);
                }
                Chunk::Malformed { .. } | Chunk::Unknown(_) => panic!("{chunk:?}"),
                _ => {}
            }
        }
    }

    /// Returns a chunk with numbers close to the expected ones.
    fn chunk(&mut self, kind: u8, a: u8, b: u8, c: u8) -> Chunk {
        match kind {
            0 => self.data(a, b),
            1 => self.forward(a, b, c),
            2..=4 => {
                // Sometimes out of order.
                let serial = AsconfNumber(self.next_asconf.0.wrapping_add(u32::from(c & 3 == 3)));
                if c & 3 == 0 {
                    self.next_asconf = AsconfNumber(self.next_asconf.0.wrapping_add(1));
                }
                let request = AddressRequest { correlation: u32::from(b), address: address(a) };
                let parameter = match kind {
                    2 => Parameter::AddAddress(request),
                    3 => Parameter::DeleteAddress(request),
                    _ => Parameter::SetPrimaryAddress(request),
                };
                let count = usize::from(c >> 2 & 31).max(1);
                let parameters = std::iter::repeat_n(parameter, count).collect();
                Chunk::Asconf(AsconfChunk { serial, address: address(b), parameters })
            }
            5 => {
                let serial = AsconfNumber(self.last_asconf.0.wrapping_add(u32::from(a & 1)));
                let success = Parameter::SuccessIndication { correlation: u32::from(b) };
                let parameters = (a & 2 != 0).then_some(success).into_iter().collect();
                Chunk::AsconfAck(AsconfAckChunk { serial, parameters })
            }
            6 => Chunk::Sack(
                SackBuilder {
                    cumulative_tsn: self
                        .highest
                        .plus(i32::from(a.cast_signed() >> 4).cast_unsigned()),
                    a_rwnd: u32::from(b) << 8,
                    ..SackBuilder::default()
                }
                .build(),
            ),
            _ => {
                // Arbitrary parameters.
                let serial = self.next_asconf;
                self.next_asconf = AsconfNumber(self.next_asconf.0.wrapping_add(1));
                let bytes = [0xc0, a & 7, 0, b & 31, 0, 0, 0, c, 0, 5, 0, 8, 192, 0, 2, a];
                let parameters = Parameters::from_bytes(Bytes::copy_from_slice(&bytes));
                Chunk::Asconf(AsconfChunk { serial, address: address(0), parameters })
            }
        }
    }

    /// Returns the next DATA chunk, or one after a gap.
    fn data(&mut self, a: u8, b: u8) -> Chunk {
        let tsn = self.next.plus(u32::from(a >> 6));
        self.next = tsn.next();
        let number = b >> 3;
        Chunk::Data(DataChunk {
            tsn,
            stream: StreamId(u16::from(a & 31)),
            flags: DataFlags::from_bits(b & 7),
            order: match self.is_interleaved {
                true => DataOrder::Mid { mid: Mid(number.into()), fsn: 0 },
                false => DataOrder::Ssn(Ssn(number.into())),
            },
            ppid: Ppid(1),
            payload: Bytes::from(vec![b'x'; usize::from(b) + 1]),
        })
    }

    /// Returns a skip of some TSNs, of the negotiated kind, or rarely of the other.
    fn forward(&mut self, a: u8, b: u8, c: u8) -> Chunk {
        let to = self.acknowledged.plus(u32::from(a >> 4));
        if !self.next.is_after(to) {
            self.next = to.next();
            self.skipped = Some(to);
        }
        let stream = StreamId(u16::from(a & 15));
        match self.is_interleaved == (c & 63 != 63) {
            true => {
                let mid = Mid(u32::from(b >> 1));
                let skipped = [SkippedMid { stream, unordered: b & 1 != 0, mid }];
                Chunk::IForwardTsn(IForwardTsnChunk::new(to, &skipped))
            }
            false => {
                let skipped = [SkippedSsn { stream, ssn: Ssn(u16::from(b)) }];
                Chunk::ForwardTsn(ForwardTsnChunk::new(to, &skipped))
            }
        }
    }

    /// Returns a packet with a chunk, after AUTH unless the bits say otherwise.
    fn packet(&self, chunk: &Chunk, bits: u8) -> Bytes {
        let mut buffer = BytesMut::new();
        let mut packet = PacketWriter::begin(&mut buffer, self.header, 20_000);
        if bits & 128 == 0 {
            packet.authenticate_from_here();
            packet.append(&self.authentication.chunk());
        }
        packet.append(chunk);
        packet.authenticate(|covered| {
            self.authentication.sign(covered);
            // A forgery differs in one bit of the covered part.
            if let (true, Some(last)) = (bits & 124 == 124, covered.last_mut()) {
                *last ^= 1;
            }
        });
        packet.finish(ChecksumKind::Crc32c);
        buffer.freeze()
    }
}

fuzz_target!(|input: &[u8]| {
    REACH.begin();
    let Some((bits, steps)) = input.split_first() else { return };
    let mut subject = Subject::new(*bits);
    subject.settle();
    for step in steps.as_chunks().0.iter().take(MAX_STEPS) {
        subject.step(*step);
        subject.settle();
        subject.count();
        assert!(subject.host.endpoint.associations().len() <= 1);
    }
    subject.check_end();
});
