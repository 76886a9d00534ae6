//! Assembly of packets in place.
//!
//! <https://www.rfc-editor.org/rfc/rfc9260#section-6.10>

use bytes::{Bytes, BytesMut};
use core::ops::Range;

use super::chunk::DataHeader;
use super::struct_packet::{StructPacket, StructPackets};
use super::{ChecksumKind, Chunk, CommonHeader, EncodeChunk, PACKET_HEADER, padded};

/// The maximum length of a chunk, limited by its length field.
const MAX_CHUNK: usize = u16::MAX as usize;

/// The destination of a packet, after existing bytes or packets.
#[derive(Debug)]
pub enum PacketSink<'a> {
    /// Encoded.
    Wire(&'a mut BytesMut),
    /// As values.
    Struct(&'a mut StructPackets),
}

impl<'a> From<&'a mut BytesMut> for PacketSink<'a> {
    fn from(buffer: &'a mut BytesMut) -> Self {
        Self::Wire(buffer)
    }
}

impl<'a> From<&'a mut StructPackets> for PacketSink<'a> {
    fn from(packets: &'a mut StructPackets) -> Self {
        Self::Struct(packets)
    }
}

/// The packet under construction.
#[derive(Debug)]
enum PacketDraft<'a> {
    Wire { buffer: &'a mut BytesMut, start: usize },
    Struct { packets: &'a mut StructPackets, packet: StructPacket },
}

/// Writes one packet after the existing content of a buffer, so that a train of packets can grow in
/// one buffer.
///
/// Only this type knows whether packets are encoded or stay values; callers see the same lengths
/// and the same room either way.
#[derive(Debug)]
pub struct PacketWriter<'a> {
    draft: PacketDraft<'a>,
    /// Bytes so far.
    length: usize,
    /// The maximum number of bytes, a multiple of four.
    limit: usize,
    /// The position of the AUTH chunk: in bytes from the start of the buffer, or in chunks.
    authenticated_from: Option<usize>,
}

impl<'a> PacketWriter<'a> {
    /// Starts a packet of at most `limit` bytes, including the common header. Reserves that much in
    /// the buffer if necessary.
    #[must_use]
    pub fn begin(sink: impl Into<PacketSink<'a>>, header: CommonHeader, limit: usize) -> Self {
        // Every chunk is padded, so bytes beyond the last multiple of four are useless.
        let limit = (limit & !3).max(PACKET_HEADER);
        let draft = match sink.into() {
            PacketSink::Wire(buffer) => {
                let start = buffer.len();
                buffer.reserve(limit);
                buffer.extend_from_slice(&header.encode());
                PacketDraft::Wire { buffer, start }
            }
            PacketSink::Struct(packets) => {
                PacketDraft::Struct { packets, packet: StructPacket::new(header) }
            }
        };
        Self { draft, length: PACKET_HEADER, limit, authenticated_from: None }
    }

    /// Returns the bytes left for another chunk with its header; a multiple of four.
    #[inline]
    #[must_use]
    pub const fn room(&self) -> usize {
        self.limit.saturating_sub(self.length)
    }

    /// Returns the length of the packet so far, including the common header.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Returns whether there is no chunk yet.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == PACKET_HEADER
    }

    /// Appends a chunk; returns false and does nothing if it does not fit.
    pub fn append(&mut self, chunk: &impl EncodeChunk) -> bool {
        let length = chunk.encoded_len();
        if length > MAX_CHUNK || padded(length) > self.room() {
            return false;
        }
        match &mut self.draft {
            PacketDraft::Wire { buffer, .. } => {
                chunk.encode(buffer);
                pad(length, buffer);
            }
            PacketDraft::Struct { packet, .. } => packet.push(chunk.to_chunk()),
        }
        self.length += padded(length);
        true
    }

    /// Appends a DATA or I-DATA chunk with this part of a message; returns false and does nothing if it
    /// does not fit.
    #[inline]
    pub fn data(&mut self, header: &DataHeader, message: &Bytes, part: Range<usize>) -> bool {
        let Some(payload) = message.get(part.clone()) else { return false };
        let length = header.len() + payload.len();
        if length > MAX_CHUNK || padded(length) > self.room() {
            return false;
        }
        match &mut self.draft {
            PacketDraft::Wire { buffer, .. } => {
                header.encode(payload.len(), buffer);
                buffer.extend_from_slice(payload);
                pad(length, buffer);
            }
            PacketDraft::Struct { packet, .. } => {
                packet.push(Chunk::Data(header.with_payload(message.slice(part))));
            }
        }
        self.length += padded(length);
        true
    }

    /// Marks the next chunk, AUTH, as the one that covers everything after it (RFC 4895 §6.2);
    /// [`Self::authenticate`] writes its HMAC.
    pub fn authenticate_from_here(&mut self) {
        self.authenticated_from = Some(match &self.draft {
            PacketDraft::Wire { buffer, .. } => buffer.len(),
            PacketDraft::Struct { packet, .. } => packet.count(),
        });
    }

    /// Has `sign` write the HMAC of the AUTH chunk, if there is one; it gets the bytes of that
    /// chunk and of everything after it.
    pub fn authenticate(&mut self, sign: impl FnOnce(&mut [u8])) {
        let Some(from) = self.authenticated_from else { return };
        match &mut self.draft {
            PacketDraft::Wire { buffer, .. } => {
                if let Some(covered) = buffer.get_mut(from..).filter(|bytes| !bytes.is_empty()) {
                    sign(covered);
                }
            }
            PacketDraft::Struct { packet, .. } => packet.sign(from, sign),
        }
    }

    /// Finishes the packet and returns its length in bytes.
    pub fn finish(self, checksum: ChecksumKind) -> usize {
        match self.draft {
            PacketDraft::Wire { buffer, start } => {
                if let Some(packet) = buffer.get_mut(start..) {
                    checksum.patch(packet);
                }
            }
            PacketDraft::Struct { packets, packet } => packets.push(packet.finish(checksum)),
        }
        self.length
    }

    /// Removes the packet from the buffer.
    pub fn discard(self) {
        if let PacketDraft::Wire { buffer, start } = self.draft {
            buffer.truncate(start);
        }
    }
}

/// Appends the padding of a chunk of `length` bytes.
#[inline]
fn pad(length: usize, buffer: &mut BytesMut) {
    buffer.extend_from_slice(&[0; 3][..padded(length) - length]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identifier::{Ppid, StreamId, VerificationTag};
    use crate::serial::{Ssn, Tsn};
    use crate::wire::{Chunk, DataFlags, DataOrder, PacketParser};
    use alloc::vec::Vec;

    const HEADER: CommonHeader =
        CommonHeader { source_port: 1, destination_port: 2, tag: VerificationTag(0x0102_0304) };

    fn data_header() -> DataHeader {
        DataHeader {
            tsn: Tsn(9),
            stream: StreamId(3),
            flags: DataFlags::WHOLE,
            order: DataOrder::Ssn(Ssn(7)),
            ppid: Ppid(51),
        }
    }

    #[test]
    fn a_chunk_that_does_not_fit_leaves_no_trace() {
        let mut buffer = BytesMut::new();
        let mut packet = PacketWriter::begin(&mut buffer, HEADER, 12 + 23);
        assert_eq!(packet.room(), 20, "three bytes cannot be used");
        assert!(!packet.data(&data_header(), &Bytes::from_static(b"12345"), 0..5));
        assert!(packet.is_empty());
        assert!(packet.data(&data_header(), &Bytes::from_static(b"123"), 0..3));
        assert_eq!(packet.room(), 0);
        assert!(!packet.append(&Chunk::CookieAck));
        assert_eq!(packet.finish(ChecksumKind::Crc32c), 32);
    }

    #[test]
    fn a_chunk_longer_than_its_length_can_state_never_fits() {
        let mut buffer = BytesMut::new();
        let mut packet = PacketWriter::begin(&mut buffer, HEADER, 100_000);
        let message = Bytes::from(alloc::vec![0; 65_520]);
        assert!(!packet.data(&data_header(), &message, 0..65_520));
        assert!(!packet.append(&Chunk::CookieEcho(Vec::from([0; 65_532]).into())));
        assert!(packet.data(&data_header(), &message, 0..65_519));
    }

    #[test]
    fn packets_follow_each_other_in_a_train() {
        let mut buffer = BytesMut::new();
        let message = Bytes::from_static(b"abcdefgh");
        for part in [0..4, 4..8] {
            let mut packet = PacketWriter::begin(&mut buffer, HEADER, 1000);
            assert!(packet.data(&data_header(), &message, part));
            assert_eq!(packet.finish(ChecksumKind::Crc32c), 32);
        }
        let mut dropped = PacketWriter::begin(&mut buffer, HEADER, 1000);
        assert!(dropped.append(&Chunk::CookieAck));
        dropped.discard();
        let mut train = buffer.freeze();
        assert_eq!(train.len(), 64);
        let train = train.split_off(32);
        let (header, mut chunks) =
            PacketParser::parse(&train, ChecksumKind::Crc32c).expect("a packet");
        assert_eq!(header, HEADER);
        let Some(Chunk::Data(data)) = chunks.next() else { panic!("no DATA") };
        assert_eq!((data.header(), &data.payload[..]), (data_header(), &b"efgh"[..]));
        assert_eq!(chunks.next(), None);
    }
}
