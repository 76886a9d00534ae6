//! A packet as values: what the writer was given, for a reader that is in the same process.
//!
//! A simulation may hand packets on like this instead of encoding and parsing them
//! ([`crate::config::PacketForm::Struct`]). Such a packet has the length that it would have on the
//! wire, and can be written as bytes where somebody wants to see them.

use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};

use super::{Checksum, Chunk, EncodeChunk, Header, PACKET_HEADER, padded};

/// A packet that was not encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructPacket {
    header: Header,
    checksum: Checksum,
    /// Chunks as their receiver would read them, AUTH with what it covers.
    chunks: Vec<Chunk>,
    length: usize,
}

impl StructPacket {
    /// One without chunks.
    #[must_use]
    pub(super) const fn new(header: Header) -> Self {
        Self { header, checksum: Checksum::Crc32c, chunks: Vec::new(), length: PACKET_HEADER }
    }

    /// Who it is from and for.
    pub(crate) const fn header(&self) -> &Header {
        &self.header
    }

    /// Its chunks, as their receiver reads them.
    pub(crate) fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// What stands in the checksum's place.
    pub(crate) const fn checksum(&self) -> Checksum {
        self.checksum
    }

    /// Bytes that it has on the wire, the common header included.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there is always a header")]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// As it is on the wire: [`Self::len`] bytes.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut buffer = BytesMut::with_capacity(self.length);
        buffer.extend_from_slice(&self.header.encode());
        put_all(&self.chunks, &mut buffer);
        self.checksum.patch(&mut buffer);
        buffer.freeze()
    }

    /// Adds a chunk, as its receiver reads it.
    pub(super) fn push(&mut self, chunk: Chunk) {
        self.length += padded(chunk.encoded_len());
        self.chunks.push(chunk);
    }

    /// Lets `sign` write the HMAC of the AUTH chunk at `place` over the bytes from there on, and
    /// keeps them for the receiver, who checks them.
    pub(super) fn sign(&mut self, place: usize, sign: impl FnOnce(&mut [u8])) {
        let Some((Chunk::Auth(auth), after)) =
            self.chunks.get_mut(place..).and_then(<[_]>::split_first_mut)
        else {
            return;
        };
        let mut covered = BytesMut::new();
        auth.encode(&mut covered);
        let end = covered.len();
        covered.resize(padded(end), 0);
        put_all(after, &mut covered);
        sign(&mut covered);
        auth.covered = covered.freeze();
        auth.hmac = auth.covered.slice(super::AuthChunk::HMAC_AT..end);
    }

    /// How many chunks there are.
    pub(super) const fn count(&self) -> usize {
        self.chunks.len()
    }

    /// Ends the packet.
    pub(super) const fn finish(mut self, checksum: Checksum) -> Self {
        self.checksum = checksum;
        self
    }
}

/// Appends chunks with their padding to a buffer that ends at a multiple of four.
fn put_all(chunks: &[Chunk], buffer: &mut BytesMut) {
    for chunk in chunks {
        chunk.encode(buffer);
        buffer.resize(padded(buffer.len()), 0);
    }
}

/// Packets as values, one after the other.
#[derive(Debug, Default)]
pub struct StructPackets {
    packets: Vec<StructPacket>,
    length: usize,
}

impl StructPackets {
    /// Bytes that all of them have on the wire.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "as of a buffer, nobody asks")]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Takes out the packets that have so many bytes together.
    #[must_use]
    pub fn split_to(&mut self, bytes: usize) -> Vec<StructPacket> {
        let mut left = bytes.min(self.length);
        self.length -= left;
        let is_before = |packet: &&StructPacket| {
            let before = left > 0;
            left = left.saturating_sub(packet.length);
            before
        };
        let count = self.packets.iter().take_while(is_before).count();
        let rest = self.packets.split_off(count);
        core::mem::replace(&mut self.packets, rest)
    }

    pub(super) fn push(&mut self, packet: StructPacket) {
        self.length += packet.length;
        self.packets.push(packet);
    }
}
