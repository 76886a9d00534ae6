//! Packets from a host that has no association.

use super::PORT;
use bytes::{Bytes, BytesMut};
use eyas_sctp::identifier::VerificationTag;
use eyas_sctp::serial::Tsn;
use eyas_sctp::wire::{ChecksumKind, Chunk, CommonHeader, InitChunk, PacketWriter, Parameters};

/// The SCTP port of that host.
pub(crate) const FOREIGN_PORT: u16 = 5000;

/// A packet with these chunks.
pub(crate) fn packet(tag: u32, chunks: &[Chunk]) -> Bytes {
    let tag = VerificationTag(tag);
    let header = CommonHeader { source_port: FOREIGN_PORT, destination_port: PORT, tag };
    let mut buffer = BytesMut::new();
    let mut packet = PacketWriter::begin(&mut buffer, header, 65_000);
    for chunk in chunks {
        assert!(packet.append(chunk));
    }
    packet.finish(ChecksumKind::Crc32c);
    buffer.freeze()
}

/// A valid INIT.
pub(crate) fn init(tag: u32) -> InitChunk {
    InitChunk {
        initiate_tag: VerificationTag(tag),
        a_rwnd: 100_000,
        outbound_streams: 10,
        inbound_streams: 10,
        initial_tsn: Tsn(7),
        parameters: Parameters::default(),
    }
}
