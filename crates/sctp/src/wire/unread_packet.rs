//! A received packet before verification: bytes or values.

use bytes::Bytes;
use core::ops::Range;

use super::{
    ChecksumKind, Chunk, ChunkType, CommonHeader, HeaderShare, MalformedPacket, PACKET_HEADER,
    PacketChunks, PacketParser, StructPacket,
};

/// A received packet. It is opened with the checksum that its association accepts.
#[derive(Clone, Debug)]
pub enum UnreadPacket<'a> {
    /// Bytes of a train of packets.
    Wire(&'a Bytes, Range<usize>),
    /// Values.
    Struct(&'a StructPacket),
}

impl<'a> UnreadPacket<'a> {
    /// Returns the common header, not verified.
    ///
    /// # Errors
    /// If the packet is shorter than a common header.
    #[inline]
    pub fn header(&self) -> Result<CommonHeader, MalformedPacket> {
        match self {
            Self::Wire(train, at) => {
                PacketParser::header(train.get(at.clone()).unwrap_or_default())
            }
            Self::Struct(packet) => Ok(*packet.header()),
        }
    }

    /// Returns the type of the first chunk, not verified.
    #[inline]
    #[must_use]
    pub fn first_type(&self) -> Option<ChunkType> {
        match self {
            Self::Wire(train, at) => {
                let packet = train.get(at.clone()).unwrap_or_default();
                packet.get(PACKET_HEADER).map(|number| ChunkType(*number))
            }
            Self::Struct(packet) => packet.chunks().first().map(Chunk::chunk_type),
        }
    }

    /// Returns the header and the chunks, if the checksum is acceptable; `share` is known from earlier
    /// packets.
    ///
    /// # Errors
    /// If it is not acceptable, or the packet is too short.
    #[inline]
    pub fn open(
        self,
        check: ChecksumKind,
        share: &mut HeaderShare,
    ) -> Result<(CommonHeader, PacketChunks<'a>), MalformedPacket> {
        match self {
            Self::Wire(train, at) => PacketParser::parse_segment(train, at, check, share),
            Self::Struct(packet)
                if packet.checksum() == ChecksumKind::Zero && check != ChecksumKind::Zero =>
            {
                Err(MalformedPacket::Checksum)
            }
            Self::Struct(packet) => Ok((*packet.header(), PacketChunks::from_struct(packet))),
        }
    }
}
