//! Packets, put together in place.
//!
//! <https://www.rfc-editor.org/rfc/rfc9260#section-6.10>

use bytes::BytesMut;

use super::chunk::DataHeader;
use super::{Checksum, EncodeChunk, Header, PACKET_HEADER, padded};

/// The most bytes that the length of a chunk can state.
const MAX_CHUNK: usize = u16::MAX as usize;

/// Writes one packet behind what a buffer holds already, so that a train of packets can grow in one
/// buffer.
#[derive(Debug)]
pub struct PacketWriter<'a> {
    buffer: &'a mut BytesMut,
    start: usize,
    end: usize,
    authenticated_from: Option<usize>,
}

impl<'a> PacketWriter<'a> {
    /// Begins a packet of at most `limit` bytes, the common header included. Makes room in `buffer`
    /// for that much, if there is none yet.
    #[must_use]
    pub fn begin(buffer: &'a mut BytesMut, header: Header, limit: usize) -> Self {
        let start = buffer.len();
        // Every chunk is padded, so what lies beyond the last multiple of four is of no use.
        let limit = (limit & !3).max(PACKET_HEADER);
        buffer.reserve(limit);
        buffer.extend_from_slice(&header.encode());
        Self { buffer, start, end: start + limit, authenticated_from: None }
    }

    /// Bytes left for one more chunk with its header; a multiple of four.
    #[must_use]
    pub fn room(&self) -> usize {
        self.end.saturating_sub(self.buffer.len())
    }

    /// Bytes of the packet so far, the common header included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer.len() - self.start
    }

    /// Whether there is no chunk yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == PACKET_HEADER
    }

    /// Appends a chunk, if it fits: otherwise nothing happens and this is false.
    pub fn put(&mut self, chunk: &impl EncodeChunk) -> bool {
        let length = chunk.encoded_len();
        if length > MAX_CHUNK || padded(length) > self.room() {
            return false;
        }
        chunk.encode(self.buffer);
        self.pad();
        true
    }

    /// Appends a DATA or I-DATA chunk, if it fits: otherwise nothing happens and this is false.
    #[inline]
    pub fn data(&mut self, header: &DataHeader, payload: &[u8]) -> bool {
        let length = header.len() + payload.len();
        if length > MAX_CHUNK || padded(length) > self.room() {
            return false;
        }
        header.encode(payload.len(), self.buffer);
        self.buffer.extend_from_slice(payload);
        self.pad();
        true
    }

    /// Marks the AUTH chunk that comes next as the one that covers all that follows it
    /// (RFC 4895 §6.2); its HMAC is filled in by [`Self::authenticated`].
    pub fn authenticate_from_here(&mut self) {
        self.authenticated_from = Some(self.buffer.len());
    }

    /// The AUTH chunk and all that follows it so far, to be signed; `None` without one.
    pub fn authenticated(&mut self) -> Option<&mut [u8]> {
        let from = self.authenticated_from?;
        self.buffer.get_mut(from..).filter(|bytes| !bytes.is_empty())
    }

    /// Ends the packet and gives its length in bytes.
    pub fn finish(self, checksum: Checksum) -> usize {
        if let Some(packet) = self.buffer.get_mut(self.start..) {
            checksum.patch(packet);
        }
        self.buffer.len() - self.start
    }

    /// Takes the packet back out of the buffer.
    pub fn discard(self) {
        self.buffer.truncate(self.start);
    }

    fn pad(&mut self) {
        let length = self.buffer.len() - self.start;
        let missing = padded(length) - length;
        self.buffer.extend_from_slice(&[0; 3][..missing]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identifier::{Ppid, StreamId, VerificationTag};
    use crate::serial::{Ssn, Tsn};
    use crate::wire::{Chunk, DataFlags, Order, Packet};
    use alloc::vec::Vec;

    const HEADER: Header =
        Header { source_port: 1, destination_port: 2, tag: VerificationTag(0x0102_0304) };

    fn data_header() -> DataHeader {
        DataHeader {
            tsn: Tsn(9),
            stream: StreamId(3),
            flags: DataFlags::WHOLE,
            order: Order::Ssn(Ssn(7)),
            ppid: Ppid(51),
        }
    }

    #[test]
    fn a_chunk_that_does_not_fit_leaves_no_trace() {
        let mut buffer = BytesMut::new();
        let mut packet = PacketWriter::begin(&mut buffer, HEADER, 12 + 23);
        assert_eq!(packet.room(), 20, "three bytes cannot be used");
        assert!(!packet.data(&data_header(), b"12345"));
        assert!(packet.is_empty());
        assert!(packet.data(&data_header(), b"123"));
        assert_eq!(packet.room(), 0);
        assert!(!packet.put(&Chunk::CookieAck));
        assert_eq!(packet.finish(Checksum::Crc32c), 32);
    }

    #[test]
    fn a_chunk_longer_than_its_length_can_state_never_fits() {
        let mut buffer = BytesMut::new();
        let mut packet = PacketWriter::begin(&mut buffer, HEADER, 100_000);
        assert!(!packet.data(&data_header(), &[0; 65_520]));
        assert!(!packet.put(&Chunk::CookieEcho(Vec::from([0; 65_532]).into())));
        assert!(packet.data(&data_header(), &[0; 65_519]));
    }

    #[test]
    fn packets_follow_each_other_in_a_train() {
        let mut buffer = BytesMut::new();
        for payload in [b"abcd", b"efgh"] {
            let mut packet = PacketWriter::begin(&mut buffer, HEADER, 1000);
            assert!(packet.data(&data_header(), payload));
            assert_eq!(packet.finish(Checksum::Crc32c), 32);
        }
        let mut dropped = PacketWriter::begin(&mut buffer, HEADER, 1000);
        assert!(dropped.put(&Chunk::CookieAck));
        dropped.discard();
        let train = buffer.freeze();
        assert_eq!(train.len(), 64);
        let (header, mut chunks) =
            Packet::parse_segment(&train, 32..64, Checksum::Crc32c).expect("a packet");
        assert_eq!(header, HEADER);
        let Some(Chunk::Data(data)) = chunks.next() else { panic!("no DATA") };
        assert_eq!((data.header(), &data.payload[..]), (data_header(), &b"efgh"[..]));
        assert_eq!(chunks.next(), None);
    }
}
