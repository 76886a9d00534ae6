//! An eavesdropper that sees all packets of both hosts, and can therefore forge packets from
//! either.

use bytes::{Bytes, BytesMut};
use eyas_sctp::identifier::VerificationTag;
use eyas_sctp::serial::Tsn;
use eyas_sctp::wire::{ChecksumKind, Chunk, CommonHeader, PacketParser, PacketWriter};

/// What has been observed of each host.
#[derive(Default)]
pub(crate) struct Wiretap {
    /// The common header of packets to each host.
    headers: [Option<CommonHeader>; 2],
    /// The first TSN of each host, and the latest.
    first: [Option<Tsn>; 2],
    latest: [Option<Tsn>; 2],
}

impl Wiretap {
    /// Records a packet sent by `from`.
    pub(crate) fn record(&mut self, from: usize, packet: &Bytes) {
        let Ok((header, chunks)) = PacketParser::parse(packet, ChecksumKind::Crc32c) else {
            return;
        };
        for chunk in chunks {
            match chunk {
                Chunk::Init(init) | Chunk::InitAck(init) => {
                    let back = CommonHeader {
                        source_port: header.destination_port,
                        destination_port: header.source_port,
                        tag: init.initiate_tag,
                    };
                    self.headers[from] = Some(back);
                    self.first[from] = Some(init.initial_tsn);
                }
                Chunk::Data(data) => self.latest[from] = Some(data.tsn),
                _ => {}
            }
        }
        if header.tag != VerificationTag::ZERO {
            self.headers[1 - from] = Some(header);
        }
    }

    /// The latest TSN of `host` or, before any DATA, the one before its initial TSN.
    pub(crate) fn tsn_of(&self, host: usize) -> Tsn {
        let before = self.first[host].map_or(Tsn(0), Tsn::previous);
        self.latest[host].unwrap_or(before)
    }

    /// A packet to `host` that its peer might have sent, once the header is known.
    pub(crate) fn forge(&self, host: usize, chunks: &[Chunk]) -> Option<Bytes> {
        let mut buffer = BytesMut::new();
        let mut packet = PacketWriter::begin(&mut buffer, self.headers[host]?, 65_000);
        for chunk in chunks {
            packet.append(chunk);
        }
        packet.finish(ChecksumKind::Crc32c);
        Some(buffer.freeze())
    }
}
