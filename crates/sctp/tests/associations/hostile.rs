//! Packets that no correct peer sends (RFC 9260 §12; packets from hosts without an association are
//! in `out_of_the_blue`). For each case there is a bound or a reply, and a counter.

mod acknowledgements;
mod data;
mod floods;
mod framing;
mod lists;
mod reports;
mod tags;

use crate::associations::world::{A, B, World, ms, socket};
use bytes::{Bytes, BytesMut};
use eyas_sctp::config::AssociationConfig;
use eyas_sctp::counters::EndpointCounters;
use eyas_sctp::endpoint::AssociationState;
use eyas_sctp::event::{Event, LossReason};
use eyas_sctp::identifier::{Ppid, StreamId, VerificationTag};
use eyas_sctp::serial::{Mid, Ssn, Tsn};
use eyas_sctp::wire::{
    ChecksumKind, Chunk, CommonHeader, DataChunk, DataFlags, DataOrder, PacketParser, PacketWriter,
    SackChunk,
};

/// The peer of `B`: it completed the handshake, and now sends arbitrary chunks with the right tag.
struct HostilePeer {
    world: World,
    /// The common header of packets to `B`.
    header: CommonHeader,
    /// Its next TSN.
    next: Tsn,
}

impl HostilePeer {
    fn new(set: impl Fn(&mut AssociationConfig)) -> Self {
        let mut world = World::with_associations(set);
        let (a, _) = world.connected();
        world.tap.keep = Some("DATA");
        world.send(A, a, 0, "the last genuine message");
        world.run_for(ms(1000));
        let packet = world.tap.kept.clone().expect("the DATA was seen");
        let (header, chunks) =
            PacketParser::parse(&packet, ChecksumKind::Crc32c).expect("a packet");
        let tsn = |chunk| if let Chunk::Data(data) = chunk { Some(data.tsn) } else { None };
        let last = chunks.filter_map(tsn).last().expect("the DATA was kept");
        // From now on, packets from B appear in the ladder only.
        world.network.cut = vec![0];
        world.clear_ladder();
        world.tap.keep = Some("SACK");
        world.tap.kept = None;
        world.hosts[B].received.clear();
        Self { world, header, next: last.next() }
    }

    /// A peer that uses DATA chunks instead of I-DATA.
    fn plain() -> Self {
        Self::new(|config| config.extensions.interleaving = false)
    }

    /// Delivers a packet with these chunks to `B`.
    fn send(&mut self, chunks: &[Chunk]) {
        let mut buffer = BytesMut::new();
        let mut packet = PacketWriter::begin(&mut buffer, self.header, 65_000);
        for chunk in chunks {
            assert!(packet.append(chunk));
        }
        packet.finish(ChecksumKind::Crc32c);
        self.packet(buffer.freeze());
    }

    /// Delivers a packet with these bytes after the common header to `B`.
    fn bytes(&mut self, bytes: &[u8]) {
        let mut packet = self.header.encode().to_vec();
        packet.extend_from_slice(bytes);
        ChecksumKind::Crc32c.patch(&mut packet);
        self.packet(packet.into());
    }

    fn packet(&mut self, packet: Bytes) {
        self.world.inject(B, socket(A, 0), packet);
        self.world.drain();
    }

    /// The chunk names of the packets that `B` has sent since the last call.
    fn answers(&mut self) -> Vec<String> {
        let names = |line: String| line.replace("A <- B  ", "").replace(" (lost)", "");
        std::mem::take(&mut self.world.tap.ladder).into_iter().map(names).collect()
    }

    /// The last SACK that `B` sent.
    fn sack(&mut self) -> SackChunk {
        self.world.run_for(ms(300));
        let packet = self.world.tap.kept.take().expect("a SACK");
        let (_, chunks) = PacketParser::parse(&packet, ChecksumKind::Crc32c).expect("a packet");
        let sack = |chunk| if let Chunk::Sack(sack) = chunk { Some(sack) } else { None };
        chunks.filter_map(sack).last().expect("it was kept")
    }

    fn counters(&self) -> EndpointCounters {
        self.world.hosts[B].endpoint.counters()
    }

    fn is_up(&self) -> bool {
        self.world.hosts[B].state() == AssociationState::Established
    }

    /// The cause with which `B` aborted the association.
    fn aborted_with(&self) -> Option<u16> {
        match self.world.hosts[B].events().last() {
            Some(Event::Lost(LossReason::ProtocolViolation { cause })) => Some(*cause),
            _ => None,
        }
    }

    /// A DATA chunk `ahead` of the next one, on stream 1: "b" begins, "e" ends.
    fn data(&self, ahead: u32, ssn: u16, marks: &str, data: impl Into<Bytes>) -> Chunk {
        Chunk::Data(self.fragment(ahead, DataOrder::Ssn(Ssn(ssn)), marks, data.into()))
    }

    /// The same as I-DATA.
    fn i_data(&self, ahead: u32, place: (u32, u32), marks: &str, data: impl Into<Bytes>) -> Chunk {
        let order = DataOrder::Mid { mid: Mid(place.0), fsn: place.1 };
        Chunk::Data(self.fragment(ahead, order, marks, data.into()))
    }

    fn fragment(&self, ahead: u32, order: DataOrder, marks: &str, payload: Bytes) -> DataChunk {
        DataChunk {
            tsn: self.next.plus(ahead),
            stream: StreamId(1),
            flags: DataFlags {
                unordered: marks.contains('u'),
                begin: marks.contains('b'),
                end: marks.contains('e'),
                immediate: marks.contains('i'),
            },
            order,
            ppid: Ppid(0),
            payload,
        }
    }

    /// Checks that `B` still accepts and acknowledges valid data.
    fn check_data(&mut self) {
        let before = self.world.hosts[B].received_messages();
        let mut data = self.fragment(0, DataOrder::Mid { mid: Mid(0), fsn: 0 }, "ube", "x".into());
        data.stream = StreamId(9);
        self.next = self.next.next();
        self.send(&[Chunk::Data(data)]);
        self.world.run_for(ms(300));
        assert_eq!(self.world.hosts[B].received_messages(), before + 1, "it does not work");
    }
}

#[test]
fn noise_is_counted_and_not_answered() {
    let mut world = World::new();
    for length in [0, 1, 11, 12, 40] {
        world.inject(B, socket(0, 0), Bytes::from(vec![7; length]));
    }
    world.run_for(ms(100));
    let counters = world.hosts[B].endpoint.counters();
    assert_eq!((counters.malformed_packets, counters.bad_checksums), (2, 2));
    assert!(world.tap.ladder.is_empty());
}
