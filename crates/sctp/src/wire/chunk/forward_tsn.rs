//! FORWARD-TSN: data that will not be sent. I-FORWARD-TSN has the same format with other entries
//! (`i_forward_tsn`).
//!
//! <https://www.rfc-editor.org/rfc/rfc3758#section-3.2>
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |  Type = 192   |       0       |            Length             |
//! +---------------+---------------+-------------------------------+
//! |                      New Cumulative TSN                       |
//! +-------------------------------+-------------------------------+
//! |           Stream-1            |       Stream Sequence-1       |
//! +-------------------------------+-------------------------------+
//! \                              ...                              \
//! +---------------------------------------------------------------+
//! ```

use alloc::vec::Vec;
use bytes::{Bytes, BytesMut};
use core::marker::PhantomData;

use super::{Chunk, ChunkType, EncodeChunk, PacketView, put_header};
use crate::identifier::StreamId;
use crate::serial::{Ssn, Tsn};
use crate::wire::records::{WireRecord, WireRecords, encode_records};

/// Bytes of the chunk before its list.
const FIXED: usize = 8;

/// The last ordered message that is skipped on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SkippedSsn {
    /// The stream.
    pub stream: StreamId,
    /// The highest number that is skipped.
    pub ssn: Ssn,
}

impl WireRecord for SkippedSsn {
    const SIZE: usize = 4;

    fn read(bytes: &[u8]) -> Option<Self> {
        let &[i0, i1, s0, s1] = bytes.first_chunk()?;
        Some(Self {
            stream: StreamId(u16::from_be_bytes([i0, i1])),
            ssn: Ssn(u16::from_be_bytes([s0, s1])),
        })
    }

    fn write(&self, buffer: &mut BytesMut) {
        self.stream.write(buffer);
        self.ssn.0.write(buffer);
    }
}

impl SkippedEntry for SkippedSsn {
    const CHUNK_TYPE: ChunkType = ChunkType::FORWARD_TSN;

    fn chunk(chunk: SkipChunk<Self>) -> Chunk {
        Chunk::ForwardTsn(chunk)
    }
}

/// An entry of a list of skipped messages. The type of the entries determines the type of the
/// chunk.
pub trait SkippedEntry: WireRecord {
    /// The type of the chunk with such entries.
    const CHUNK_TYPE: ChunkType;

    /// Converts the chunk with such entries to a [`Chunk`].
    fn chunk(chunk: SkipChunk<Self>) -> Chunk;
}

/// A FORWARD-TSN chunk.
pub type ForwardTsnChunk = SkipChunk<SkippedSsn>;

/// FORWARD-TSN or I-FORWARD-TSN.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SkipChunk<S> {
    /// All up to here counts as received.
    pub new_cumulative_tsn: Tsn,
    skipped: Bytes,
    entry: PhantomData<S>,
}

impl<S: SkippedEntry> SkipChunk<S> {
    /// Creates a chunk to be sent.
    #[must_use]
    pub fn new(new_cumulative_tsn: Tsn, skipped: &[S]) -> Self {
        Self { new_cumulative_tsn, skipped: encode_records(skipped), entry: PhantomData }
    }

    /// Returns the maximum number of entries in a chunk of `room` bytes.
    #[must_use]
    pub const fn streams_in(room: usize) -> usize {
        room.saturating_sub(FIXED) / S::SIZE
    }

    /// Returns the skipped messages by stream.
    #[must_use]
    pub fn skipped(&self) -> WireRecords<'_, S> {
        WireRecords::new(&self.skipped)
    }

    /// Ignores reserved bits and an incomplete last entry.
    pub(super) fn parse(chunk: PacketView<'_>) -> Option<Self> {
        let list = chunk.skip(FIXED)?;
        let entries: Vec<S> = WireRecords::new(list.bytes()).collect();
        Some(Self::new(Tsn(chunk.u32_at(4)?), &entries))
    }
}

impl<S: SkippedEntry> EncodeChunk for SkipChunk<S> {
    fn encoded_len(&self) -> usize {
        FIXED + self.skipped.len()
    }

    fn encode(&self, buffer: &mut BytesMut) {
        put_header(S::CHUNK_TYPE, 0, self.encoded_len(), buffer);
        self.new_cumulative_tsn.write(buffer);
        buffer.extend_from_slice(&self.skipped);
    }

    fn to_chunk(&self) -> Chunk {
        S::chunk(self.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Chunk;
    use crate::wire::chunk::tests::{parse_one, round_trip};

    #[test]
    fn streams_are_listed() {
        let bytes = [0xc0, 0, 0, 16, 0, 0, 1, 0, 0, 1, 0, 7, 0, 2, 255, 255];
        let skipped = [
            SkippedSsn { stream: StreamId(1), ssn: Ssn(7) },
            SkippedSsn { stream: StreamId(2), ssn: Ssn(u16::MAX) },
        ];
        let chunk = ForwardTsnChunk::new(Tsn(0x100), &skipped);
        assert!(chunk.skipped().eq(skipped));
        assert_eq!(parse_one(&bytes), Chunk::ForwardTsn(chunk));
        round_trip(&bytes);
    }

    #[test]
    fn a_chunk_without_streams_is_one_too() {
        let bytes = [0xc0, 0, 0, 8, 0, 0, 1, 0];
        assert_eq!(parse_one(&bytes), Chunk::ForwardTsn(ForwardTsnChunk::new(Tsn(0x100), &[])));
        assert_eq!(ForwardTsnChunk::streams_in(8), 0);
        assert_eq!(ForwardTsnChunk::streams_in(17), 2);
        assert_eq!(ForwardTsnChunk::streams_in(0), 0);
    }
}
