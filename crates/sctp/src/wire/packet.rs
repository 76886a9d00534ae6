//! The common header, and the chunks after it.
//!
//! <https://www.rfc-editor.org/rfc/rfc9260#section-3.1>
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! |      Source Port Number       |    Destination Port Number    |
//! +-------------------------------+-------------------------------+
//! |                       Verification Tag                        |
//! +---------------------------------------------------------------+
//! |                           Checksum                            |
//! +---------------------------------------------------------------+
//! ```

use bytes::Bytes;
use core::ops::Range;

use super::struct_packet::StructPacket;
use super::walker::{ElementWalker, PacketView, WalkerStep};
use super::{ChecksumKind, Chunk, ChunkType, EncodeChunk, HeaderShare, padded};
use crate::identifier::VerificationTag;

/// The length of the common header.
pub const PACKET_HEADER: usize = 12;

/// The ports and the tag of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct CommonHeader {
    /// The sender's SCTP port.
    pub source_port: u16,
    /// The receiver's SCTP port.
    pub destination_port: u16,
    /// The verification tag, which shows that the sender knows the association.
    pub tag: VerificationTag,
}

impl CommonHeader {
    /// Encodes the header, with zero as checksum.
    #[must_use]
    pub fn encode(&self) -> [u8; PACKET_HEADER] {
        let mut bytes = [0; PACKET_HEADER];
        bytes[0..2].copy_from_slice(&self.source_port.to_be_bytes());
        bytes[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.tag.0.to_be_bytes());
        bytes
    }
}

/// Why a packet is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MalformedPacket {
    /// It is shorter than a common header.
    TooShort,
    /// Its checksum is wrong.
    Checksum,
}

/// The packet parser.
#[derive(Clone, Copy, Debug)]
pub struct PacketParser;

impl PacketParser {
    /// Returns the common header of a packet, not verified: for finding the association, which
    /// determines the acceptable checksum.
    ///
    /// # Errors
    /// If the packet is shorter than a common header.
    #[inline]
    pub fn header(packet: &[u8]) -> Result<CommonHeader, MalformedPacket> {
        let Some(&[s0, s1, d0, d1, t0, t1, t2, t3, ..]) = packet.first_chunk::<PACKET_HEADER>()
        else {
            return Err(MalformedPacket::TooShort);
        };
        Ok(CommonHeader {
            source_port: u16::from_be_bytes([s0, s1]),
            destination_port: u16::from_be_bytes([d0, d1]),
            tag: VerificationTag(u32::from_be_bytes([t0, t1, t2, t3])),
        })
    }

    /// Verifies a packet and returns its header and its chunks, which are parsed one at a time.
    ///
    /// # Errors
    /// If the packet is too short or its checksum is not acceptable.
    #[cfg(any(test, feature = "internals"))]
    pub fn parse(
        contents: &Bytes,
        check: ChecksumKind,
    ) -> Result<(CommonHeader, PacketChunks<'_>), MalformedPacket> {
        Self::parse_segment(contents, 0..contents.len(), check, &mut HeaderShare::default())
    }

    /// As [`Self::parse`], for the packet at `segment` of a train of packets.
    ///
    /// # Errors
    /// If the packet is too short or its checksum is not acceptable.
    pub fn parse_segment<'a>(
        contents: &'a Bytes,
        segment: Range<usize>,
        check: ChecksumKind,
        share: &mut HeaderShare,
    ) -> Result<(CommonHeader, PacketChunks<'a>), MalformedPacket> {
        let packet = PacketView::part(contents, segment.start, segment.end);
        let header = Self::header(packet.bytes())?;
        if !check.accepts_next(packet.bytes(), share) {
            return Err(MalformedPacket::Checksum);
        }
        let chunks = packet.skip(PACKET_HEADER).ok_or(MalformedPacket::TooShort)?;
        Ok((header, PacketChunks { source: ChunkSource::Wire(ElementWalker::new(chunks)) }))
    }
}

/// The chunks of a packet. A clone starts at the position of the original.
#[derive(Clone, Debug)]
pub struct PacketChunks<'a> {
    source: ChunkSource<'a>,
}

/// The source of chunks.
#[derive(Clone, Debug)]
enum ChunkSource<'a> {
    Wire(ElementWalker<'a>),
    /// Values, and their encoded length.
    Struct(&'a [Chunk], usize),
}

impl<'a> PacketChunks<'a> {
    /// Returns the chunks of a packet of values.
    pub(super) fn from_struct(packet: &'a StructPacket) -> Self {
        Self { source: ChunkSource::Struct(packet.chunks(), packet.len() - PACKET_HEADER) }
    }

    /// Returns the types of the remaining chunks, at little cost: for the rules about bundling (RFC
    /// 9260 §6.10) and about out-of-the-blue packets (§8.4).
    pub fn types(&self) -> impl Iterator<Item = ChunkType> + '_ {
        let (walker, values) = match &self.source {
            ChunkSource::Wire(walker) => (Some(walker.clone()), &[][..]),
            ChunkSource::Struct(chunks, _) => (None, *chunks),
        };
        let read = walker.into_iter().flatten().filter_map(|step| match step {
            WalkerStep::Element(view) => view.bytes().first().map(|number| ChunkType(*number)),
            WalkerStep::Broken(_) => None,
        });
        read.chain(values.iter().map(Chunk::chunk_type))
    }

    /// Returns the length of the remaining chunks, with their padding.
    #[must_use]
    pub fn remaining(&self) -> usize {
        match &self.source {
            ChunkSource::Wire(walker) => walker.rest().len(),
            ChunkSource::Struct(_, bytes) => *bytes,
        }
    }
}

impl Iterator for PacketChunks<'_> {
    type Item = Chunk;

    /// Returns the next chunk. One whose length does not fit the packet is [`Chunk::Malformed`] and
    /// the last one.
    // Always inlined: otherwise a chunk is moved several times, which costs more than parsing it.
    #[inline(always)]
    fn next(&mut self) -> Option<Chunk> {
        let walker = match &mut self.source {
            ChunkSource::Wire(walker) => walker,
            ChunkSource::Struct(chunks, bytes) => return next_value(chunks, bytes),
        };
        let number = walker.rest().bytes().first().copied().unwrap_or_default();
        Some(match walker.next()? {
            WalkerStep::Element(view) => Chunk::parse(view, walker.rest()),
            WalkerStep::Broken(_) => Chunk::Malformed { chunk_type: ChunkType(number) },
        })
    }
}

/// Removes and returns the first of `chunks`, and its bytes.
fn next_value(chunks: &mut &[Chunk], bytes: &mut usize) -> Option<Chunk> {
    let (first, rest) = chunks.split_first()?;
    *chunks = rest;
    *bytes = bytes.saturating_sub(padded(first.encoded_len()));
    Some(first.clone())
}
