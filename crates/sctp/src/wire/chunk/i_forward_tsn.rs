//! I-FORWARD-TSN: data that will not be sent, for interleaved messages.
//!
//! <https://www.rfc-editor.org/rfc/rfc8260#section-2.3.1>
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |  Type = 194   |       0       |            Length             |
//! +---------------+---------------+-------------------------------+
//! |                      New Cumulative TSN                       |
//! +-------------------------------+-----------------------------+-+
//! |       Stream Identifier       |          Reserved           |U|
//! +-------------------------------+-----------------------------+-+
//! |                      Message Identifier                       |
//! +---------------------------------------------------------------+
//! \                              ...                              \
//! +---------------------------------------------------------------+
//! ```

use bytes::BytesMut;

use super::forward_tsn::{SkipChunk, SkippedEntry};
use super::{Chunk, ChunkType};
use crate::identifier::StreamId;
use crate::serial::Mid;
use crate::wire::records::WireRecord;

/// The U bit of an entry.
const UNORDERED: u16 = 1;

/// The last message that is skipped on a stream, among the ordered or the unordered ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SkippedMid {
    /// The stream.
    pub stream: StreamId,
    /// Whether it concerns unordered messages.
    pub unordered: bool,
    /// The highest number that is skipped.
    pub mid: Mid,
}

impl WireRecord for SkippedMid {
    const SIZE: usize = 8;

    fn read(bytes: &[u8]) -> Option<Self> {
        let &[i0, i1, f0, f1, m0, m1, m2, m3] = bytes.first_chunk()?;
        Some(Self {
            stream: StreamId(u16::from_be_bytes([i0, i1])),
            unordered: u16::from_be_bytes([f0, f1]) & UNORDERED != 0,
            mid: Mid(u32::from_be_bytes([m0, m1, m2, m3])),
        })
    }

    fn write(&self, buffer: &mut BytesMut) {
        self.stream.write(buffer);
        u16::from(self.unordered).write(buffer);
        self.mid.0.write(buffer);
    }
}

impl SkippedEntry for SkippedMid {
    const CHUNK_TYPE: ChunkType = ChunkType::I_FORWARD_TSN;

    fn chunk(chunk: SkipChunk<Self>) -> Chunk {
        Chunk::IForwardTsn(chunk)
    }
}

/// An I-FORWARD-TSN chunk.
pub type IForwardTsnChunk = SkipChunk<SkippedMid>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::serial::Tsn;
    use crate::wire::Chunk;
    use crate::wire::chunk::tests::{parse_one, round_trip};

    #[test]
    fn streams_are_listed() {
        let bytes = [0xc2, 0, 0, 16, 0, 0, 1, 0, 0, 1, 0, 1, 0, 1, 0, 2];
        let skipped = [SkippedMid { stream: StreamId(1), unordered: true, mid: Mid(0x1_0002) }];
        let chunk = IForwardTsnChunk::new(Tsn(0x100), &skipped);
        assert!(chunk.skipped().eq(skipped));
        assert_eq!(parse_one(&bytes), Chunk::IForwardTsn(chunk));
        round_trip(&bytes);
    }

    #[test]
    fn an_incomplete_entry_is_ignored() {
        let bytes = [0xc2, 0, 0, 12, 0, 0, 1, 0, 0, 1, 0, 1];
        assert_eq!(parse_one(&bytes), Chunk::IForwardTsn(IForwardTsnChunk::new(Tsn(0x100), &[])));
        assert_eq!(IForwardTsnChunk::streams_in(23), 1);
    }
}
