//! A packet as values, for a receiver in the same process.
//!
//! A simulation may pass packets in this form instead of encoding and parsing them
//! ([`crate::config::PacketForm::Struct`]). Such a packet has the same length as on the wire, and
//! can be encoded for inspection.
//!
//! An association writes packets through `PacketWriter` and reads them through `PacketChunks`; nothing
//! else depends on the representation, and a simulation in this form equals the one in bytes packet
//! by packet (`simulation/tests/modes.rs` of `eyas-lab`). What is opaque on the wire stays bytes:
//! user data, cookies, the data that AUTH covers, and lists of parameters and gap blocks. A damaged
//! packet becomes bytes and fails its checksum. The choice is a branch in two places: a generic
//! `Association` would expose the form in each of its files.

use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};

use super::{ChecksumKind, Chunk, CommonHeader, EncodeChunk, PACKET_HEADER, padded};

/// A packet that was not encoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StructPacket {
    header: CommonHeader,
    checksum: ChecksumKind,
    /// Chunks as parsed by their receiver, AUTH with what it covers.
    chunks: Vec<Chunk>,
    length: usize,
}

impl StructPacket {
    /// Creates a packet without chunks.
    #[must_use]
    pub(super) const fn new(header: CommonHeader) -> Self {
        Self { header, checksum: ChecksumKind::Crc32c, chunks: Vec::new(), length: PACKET_HEADER }
    }

    /// Returns the header.
    pub(crate) const fn header(&self) -> &CommonHeader {
        &self.header
    }

    /// Returns the chunks, as parsed by their receiver.
    pub(crate) fn chunks(&self) -> &[Chunk] {
        &self.chunks
    }

    /// Returns the kind of checksum.
    pub(crate) const fn checksum(&self) -> ChecksumKind {
        self.checksum
    }

    /// Returns its length on the wire, including the common header.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "there is always a header")]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Encodes the packet to [`Self::len`] bytes.
    #[must_use]
    pub fn encode(&self) -> Bytes {
        let mut buffer = BytesMut::with_capacity(self.length);
        buffer.extend_from_slice(&self.header.encode());
        put_all(&self.chunks, &mut buffer);
        self.checksum.patch(&mut buffer);
        buffer.freeze()
    }

    /// Adds a chunk, as parsed by its receiver.
    pub(super) fn push(&mut self, chunk: Chunk) {
        self.length += padded(chunk.encoded_len());
        if self.chunks.capacity() == 0 {
            // Most packets have one chunk, and a list that grows begins with room for four.
            self.chunks.reserve_exact(1);
        }
        self.chunks.push(chunk);
    }

    /// Has `sign` write the HMAC of the AUTH chunk at `place` over the bytes from there on, and
    /// stores them for verification by the receiver.
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

    /// Returns the number of chunks.
    pub(super) const fn count(&self) -> usize {
        self.chunks.len()
    }

    /// Finishes the packet.
    pub(super) const fn finish(mut self, checksum: ChecksumKind) -> Self {
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

/// A sequence of packets as values.
#[derive(Debug, Default)]
pub struct StructPackets {
    packets: Vec<StructPacket>,
    length: usize,
}

impl StructPackets {
    /// Returns their total length on the wire.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "no caller needs it")]
    pub const fn len(&self) -> usize {
        self.length
    }

    /// Removes and returns the first packets, of `bytes` in total.
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
