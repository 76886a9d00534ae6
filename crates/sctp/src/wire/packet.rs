//! The common header, and the chunks behind it.
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
use super::walker::{Step, View, Walker};
use super::{Checksum, Chunk, ChunkType, EncodeChunk, padded};
use crate::identifier::VerificationTag;

/// Bytes of the common header.
pub const PACKET_HEADER: usize = 12;

/// Who a packet is from and for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Header {
    /// The sender's SCTP port.
    pub source_port: u16,
    /// The receiver's SCTP port.
    pub destination_port: u16,
    /// What shows that the sender knows the association.
    pub tag: VerificationTag,
}

impl Header {
    /// As on the wire, with zero as checksum.
    #[must_use]
    pub fn encode(&self) -> [u8; PACKET_HEADER] {
        let mut bytes = [0; PACKET_HEADER];
        bytes[0..2].copy_from_slice(&self.source_port.to_be_bytes());
        bytes[2..4].copy_from_slice(&self.destination_port.to_be_bytes());
        bytes[4..8].copy_from_slice(&self.tag.0.to_be_bytes());
        bytes
    }
}

/// Why a packet is not looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Malformed {
    /// It is shorter than a common header.
    TooShort,
    /// Its checksum is wrong.
    Checksum,
}

/// Reading of packets.
#[derive(Clone, Copy, Debug)]
pub struct Packet;

impl Packet {
    /// The common header of a packet, unchecked: to find the association that says which checksum
    /// it accepts.
    ///
    /// # Errors
    /// If the packet is shorter than a common header.
    #[inline]
    pub fn header(packet: &[u8]) -> Result<Header, Malformed> {
        let Some(&[s0, s1, d0, d1, t0, t1, t2, t3, ..]) = packet.first_chunk::<PACKET_HEADER>()
        else {
            return Err(Malformed::TooShort);
        };
        Ok(Header {
            source_port: u16::from_be_bytes([s0, s1]),
            destination_port: u16::from_be_bytes([d0, d1]),
            tag: VerificationTag(u32::from_be_bytes([t0, t1, t2, t3])),
        })
    }

    /// Checks a packet and gives its header and its chunks, which are read one at a time.
    ///
    /// # Errors
    /// If the packet is too short or its checksum is not one to accept.
    pub fn parse(contents: &Bytes, check: Checksum) -> Result<(Header, Chunks<'_>), Malformed> {
        Self::parse_segment(contents, 0..contents.len(), check)
    }

    /// As [`Self::parse`], for the packet at `segment` of a train of packets.
    ///
    /// # Errors
    /// If the packet is too short or its checksum is not one to accept.
    pub fn parse_segment(
        contents: &Bytes,
        segment: Range<usize>,
        check: Checksum,
    ) -> Result<(Header, Chunks<'_>), Malformed> {
        let packet = View::part(contents, segment.start, segment.end);
        let header = Self::header(packet.bytes())?;
        if !check.accepts(packet.bytes()) {
            return Err(Malformed::Checksum);
        }
        let chunks = packet.skip(PACKET_HEADER).ok_or(Malformed::TooShort)?;
        Ok((header, Chunks { source: Source::Wire(Walker::new(chunks)) }))
    }
}

/// The chunks of a packet, one after the other. A clone begins where the original is.
#[derive(Clone, Debug)]
pub struct Chunks<'a> {
    source: Source<'a>,
}

/// Where chunks are read from.
#[derive(Clone, Debug)]
enum Source<'a> {
    Wire(Walker<'a>),
    /// Values, and the bytes that they have on the wire.
    Struct(&'a [Chunk], usize),
}

impl<'a> Chunks<'a> {
    /// The chunks of a packet that is there as values.
    pub(super) fn of(packet: &'a StructPacket) -> Self {
        Self { source: Source::Struct(packet.chunks(), packet.len() - PACKET_HEADER) }
    }

    /// The types of the chunks to come, which costs next to nothing: what the rules about bundling
    /// (RFC 9260 §6.10) and about packets for nobody (§8.4) ask for.
    pub fn types(&self) -> impl Iterator<Item = ChunkType> + '_ {
        let (walker, values) = match &self.source {
            Source::Wire(walker) => (Some(walker.clone()), &[][..]),
            Source::Struct(chunks, _) => (None, *chunks),
        };
        let read = walker.into_iter().flatten().filter_map(|step| match step {
            Step::Element(view) => view.bytes().first().map(|number| ChunkType(*number)),
            Step::Broken(_) => None,
        });
        read.chain(values.iter().map(Chunk::chunk_type))
    }

    /// Bytes of the chunks to come, with their padding.
    #[must_use]
    pub fn remaining(&self) -> usize {
        match &self.source {
            Source::Wire(walker) => walker.rest().len(),
            Source::Struct(_, bytes) => *bytes,
        }
    }
}

impl Iterator for Chunks<'_> {
    type Item = Chunk;

    /// The next chunk. One whose length does not fit the packet is [`Chunk::Malformed`] and the
    /// last one.
    // Always: a chunk is moved several times on its way out of here otherwise, which costs more
    // than reading it.
    #[inline(always)]
    fn next(&mut self) -> Option<Chunk> {
        let walker = match &mut self.source {
            Source::Wire(walker) => walker,
            Source::Struct(chunks, bytes) => return next_value(chunks, bytes),
        };
        let number = walker.rest().bytes().first().copied().unwrap_or_default();
        Some(match walker.next()? {
            Step::Element(view) => Chunk::parse(view, walker.rest()),
            Step::Broken(_) => Chunk::Malformed { chunk_type: ChunkType(number) },
        })
    }
}

/// The first of `chunks`, which is taken off, and its bytes with it.
fn next_value(chunks: &mut &[Chunk], bytes: &mut usize) -> Option<Chunk> {
    let (first, rest) = chunks.split_first()?;
    *chunks = rest;
    *bytes = bytes.saturating_sub(padded(first.encoded_len()));
    Some(first.clone())
}
