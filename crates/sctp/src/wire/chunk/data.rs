//! DATA and I-DATA: a message, or a fragment of one.
//!
//! <https://www.rfc-editor.org/rfc/rfc9260#section-3.3.1>
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |   Type = 0    |  Res  |I|U|B|E|            Length             |
//! +---------------+---------------+-------------------------------+
//! |                              TSN                              |
//! +-------------------------------+-------------------------------+
//! |       Stream Identifier       |    Stream Sequence Number     |
//! +-------------------------------+-------------------------------+
//! |                 Payload Protocol Identifier                   |
//! +---------------------------------------------------------------+
//! \                           User Data                           \
//! +---------------------------------------------------------------+
//! ```
//!
//! <https://www.rfc-editor.org/rfc/rfc8260#section-2.1>
//!
//! ```text
//! +---------------+---------------+-------------------------------+
//! |   Type = 64   |  Res  |I|U|B|E|            Length             |
//! +---------------+---------------+-------------------------------+
//! |                              TSN                              |
//! +-------------------------------+-------------------------------+
//! |       Stream Identifier       |           Reserved            |
//! +-------------------------------+-------------------------------+
//! |                  Message Identifier (MID)                     |
//! +---------------------------------------------------------------+
//! |  Payload Protocol Identifier if B, else Fragment Sequence No. |
//! +---------------------------------------------------------------+
//! \                           User Data                           \
//! +---------------------------------------------------------------+
//! ```

use bytes::{Bytes, BytesMut};

use super::{Chunk, ChunkType, EncodeChunk, PacketView};
use crate::identifier::{Ppid, StreamId};
use crate::serial::{Mid, Ssn, Tsn};

/// The length of a DATA chunk before its user data.
pub const DATA_HEADER: usize = 16;

/// The length of an I-DATA chunk before its user data.
pub const I_DATA_HEADER: usize = 20;

/// The position of a fragment in its message, and the urgency of its acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct DataFlags {
    /// The U bit: the message is unordered.
    pub unordered: bool,
    /// The B bit: the first fragment.
    pub begin: bool,
    /// The E bit: the last fragment.
    pub end: bool,
    /// The I bit: the sender requests an immediate SACK (RFC 7053).
    pub immediate: bool,
}

impl DataFlags {
    /// A whole ordered message.
    #[cfg(any(test, feature = "internals"))]
    pub const WHOLE: Self = Self { unordered: false, begin: true, end: true, immediate: false };

    /// Decodes the flags of the chunk's header.
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self {
            unordered: bits & 4 != 0,
            begin: bits & 2 != 0,
            end: bits & 1 != 0,
            immediate: bits & 8 != 0,
        }
    }

    /// Returns the flags of the chunk's header.
    #[must_use]
    pub const fn bits(self) -> u8 {
        (self.immediate as u8) << 3
            | (self.unordered as u8) << 2
            | (self.begin as u8) << 1
            | self.end as u8
    }
}

/// The position of a message in its stream and, with I-DATA, of the fragment in its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DataOrder {
    /// DATA: fragments have consecutive TSNs.
    Ssn(Ssn),
    /// I-DATA.
    Mid {
        /// The number of the message in the stream.
        mid: Mid,
        /// The number of the fragment in the message, from 0; the first one does not carry it.
        fsn: u32,
    },
}

impl DataOrder {
    /// Returns the type of the chunk that carries it.
    #[must_use]
    pub const fn chunk_type(self) -> ChunkType {
        match self {
            Self::Ssn(_) => ChunkType::DATA,
            Self::Mid { .. } => ChunkType::I_DATA,
        }
    }

    /// Bytes of the chunk before its user data.
    #[must_use]
    pub const fn header_len(self) -> usize {
        match self {
            Self::Ssn(_) => DATA_HEADER,
            Self::Mid { .. } => I_DATA_HEADER,
        }
    }
}

/// A DATA or I-DATA chunk without its user data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DataHeader {
    /// The number of the chunk within the association.
    pub tsn: Tsn,
    /// The stream.
    pub stream: StreamId,
    /// Begin, end, unordered, immediate.
    pub flags: DataFlags,
    /// The place in the stream.
    pub order: DataOrder,
    /// The payload protocol identifier. With I-DATA, only the first fragment carries it.
    pub ppid: Ppid,
}

impl DataHeader {
    /// Bytes of the chunk before its user data.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "no header is empty")]
    pub const fn len(&self) -> usize {
        self.order.header_len()
    }

    /// Appends the header of a chunk with `payload_len` bytes of user data.
    #[inline]
    pub(crate) fn encode(&self, payload_len: usize, buffer: &mut BytesMut) {
        let mut bytes = [0; I_DATA_HEADER];
        bytes[4..8].copy_from_slice(&self.tsn.0.to_be_bytes());
        bytes[8..10].copy_from_slice(&self.stream.0.to_be_bytes());
        match self.order {
            DataOrder::Ssn(ssn) => {
                bytes[10..12].copy_from_slice(&ssn.0.to_be_bytes());
                bytes[12..16].copy_from_slice(&self.ppid.0.to_be_bytes());
            }
            DataOrder::Mid { mid, fsn } => {
                let last = if self.flags.begin { self.ppid.0 } else { fsn };
                bytes[12..16].copy_from_slice(&mid.0.to_be_bytes());
                bytes[16..20].copy_from_slice(&last.to_be_bytes());
            }
        }
        let [.., high, low] = (self.len() + payload_len).to_be_bytes();
        bytes[..4].copy_from_slice(&[self.order.chunk_type().0, self.flags.bits(), high, low]);
        buffer.extend_from_slice(&bytes[..self.len()]);
    }

    /// Returns the chunk with its user data, as parsed by the receiver: fields that a fragment of
    /// I-DATA does not carry are zero.
    pub(crate) fn with_payload(&self, payload: Bytes) -> DataChunk {
        let Self { tsn, stream, flags, mut order, mut ppid } = *self;
        if let DataOrder::Mid { fsn, .. } = &mut order {
            if flags.begin {
                *fsn = 0;
            } else {
                ppid = Ppid(0);
            }
        }
        DataChunk { tsn, stream, flags, order, ppid, payload }
    }
}

/// A DATA or I-DATA chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DataChunk {
    /// The number of the chunk within the association.
    pub tsn: Tsn,
    /// The stream.
    pub stream: StreamId,
    /// Begin, end, unordered, immediate.
    pub flags: DataFlags,
    /// The place in the stream.
    pub order: DataOrder,
    /// The payload protocol identifier; 0 in an I-DATA chunk that is not the first of its message.
    pub ppid: Ppid,
    /// The user data; empty if the peer violated the protocol (RFC 9260 §6.2, "No User Data").
    pub payload: Bytes,
}

impl DataChunk {
    #[inline(always)]
    pub(crate) fn parse(flags: u8, chunk: PacketView<'_>) -> Option<Self> {
        let &[_, _, _, _, t0, t1, t2, t3, i0, i1, s0, s1, p0, p1, p2, p3] =
            chunk.head::<DATA_HEADER>()?;
        Some(Self {
            tsn: Tsn(u32::from_be_bytes([t0, t1, t2, t3])),
            stream: StreamId(u16::from_be_bytes([i0, i1])),
            flags: DataFlags::from_bits(flags),
            order: DataOrder::Ssn(Ssn(u16::from_be_bytes([s0, s1]))),
            ppid: Ppid(u32::from_be_bytes([p0, p1, p2, p3])),
            payload: chunk.skip(DATA_HEADER)?.share(),
        })
    }

    #[inline(always)]
    pub(crate) fn parse_interleaved(flags: u8, chunk: PacketView<'_>) -> Option<Self> {
        let &[_, _, _, _, t0, t1, t2, t3, i0, i1, _, _, m0, m1, m2, m3, p0, p1, p2, p3] =
            chunk.head::<I_DATA_HEADER>()?;
        let flags = DataFlags::from_bits(flags);
        let last = u32::from_be_bytes([p0, p1, p2, p3]);
        let (ppid, fsn) = if flags.begin { (last, 0) } else { (0, last) };
        Some(Self {
            tsn: Tsn(u32::from_be_bytes([t0, t1, t2, t3])),
            stream: StreamId(u16::from_be_bytes([i0, i1])),
            flags,
            order: DataOrder::Mid { mid: Mid(u32::from_be_bytes([m0, m1, m2, m3])), fsn },
            ppid: Ppid(ppid),
            payload: chunk.skip(I_DATA_HEADER)?.share(),
        })
    }

    /// Returns the chunk without its user data.
    #[must_use]
    pub const fn header(&self) -> DataHeader {
        DataHeader {
            tsn: self.tsn,
            stream: self.stream,
            flags: self.flags,
            order: self.order,
            ppid: self.ppid,
        }
    }
}

impl EncodeChunk for DataChunk {
    fn encoded_len(&self) -> usize {
        self.order.header_len() + self.payload.len()
    }

    fn encode(&self, buffer: &mut BytesMut) {
        self.header().encode(self.payload.len(), buffer);
        buffer.extend_from_slice(&self.payload);
    }

    fn to_chunk(&self) -> Chunk {
        Chunk::Data(self.header().with_payload(self.payload.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Chunk;
    use crate::wire::chunk::tests::{parse_one, round_trip};
    use proptest::prelude::*;

    /// A whole message "hi!" with the I bit, then what padding would be.
    const DATA: &[u8] = &[
        0x00, 0x0b, 0x00, 0x13, 0x01, 0x02, 0x03, 0x04, 0x00, 0x05, 0x00, 0x06, 0x00, 0x00, 0x00,
        0x33, b'h', b'i', b'!', 0x00,
    ];

    /// The last fragment of an unordered message.
    const I_DATA: &[u8] = &[
        0x40, 0x05, 0x00, 0x15, 0x01, 0x02, 0x03, 0x04, 0x00, 0x05, 0xff, 0xff, 0x00, 0x00, 0x00,
        0x09, 0x00, 0x00, 0x00, 0x02, b'x', 0x00, 0x00, 0x00,
    ];

    #[test]
    fn data_is_parsed() {
        let expected = DataChunk {
            tsn: Tsn(0x0102_0304),
            stream: StreamId(5),
            flags: DataFlags { immediate: true, ..DataFlags::WHOLE },
            order: DataOrder::Ssn(Ssn(6)),
            ppid: Ppid(51),
            payload: Bytes::from_static(b"hi!"),
        };
        assert_eq!(parse_one(DATA), Chunk::Data(expected));
        round_trip(DATA);
    }

    //= rfc8260 §2.1
    //# the first fragment has the PPID, later ones their number
    #[test]
    fn a_later_fragment_of_i_data_has_a_number_instead_of_a_ppid() {
        let expected = DataChunk {
            tsn: Tsn(0x0102_0304),
            stream: StreamId(5),
            flags: DataFlags { unordered: true, end: true, ..DataFlags::default() },
            order: DataOrder::Mid { mid: Mid(9), fsn: 2 },
            ppid: Ppid(0),
            payload: Bytes::from_static(b"x"),
        };
        assert_eq!(parse_one(I_DATA), Chunk::Data(expected));
    }

    #[test]
    fn payloads_share_memory_with_the_packet() {
        let source = Bytes::copy_from_slice(DATA);
        let view = PacketView::part(&source, 0, 19);
        let payload = DataChunk::parse(0, view).expect("long enough").payload;
        assert_eq!(payload.as_ptr(), source[16..].as_ptr());
    }

    #[test]
    fn chunks_shorter_than_their_header_are_malformed() {
        for (number, header) in [(0, DATA_HEADER), (64, I_DATA_HEADER)] {
            for length in 4..=header {
                let mut bytes = alloc::vec![0; length];
                bytes[0] = number;
                bytes[3] = u8::try_from(length).expect("small");
                let chunk = parse_one(&bytes);
                let is_malformed = chunk == Chunk::Malformed { chunk_type: ChunkType(number) };
                assert_eq!(is_malformed, length < header, "{length} bytes of {chunk:?}");
            }
        }
    }

    proptest! {
        #[test]
        fn flags_are_four_bits(bits: u8) {
            prop_assert_eq!(DataFlags::from_bits(bits).bits(), bits & 0xf);
        }
    }
}
