//! SACK and NR-SACK: acknowledgements.
//!
//! <https://www.rfc-editor.org/rfc/rfc9260#section-3.3.4>
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |   Type = 3    |DAC|           |            Length             |
//! +---------------+---------------+-------------------------------+
//! |                      Cumulative TSN Ack                       |
//! +---------------------------------------------------------------+
//! |          Advertised Receiver Window Credit (a_rwnd)           |
//! +-------------------------------+-------------------------------+
//! | Number of Gap Ack Blocks = N  |  Number of Duplicate TSNs = M |
//! +-------------------------------+-------------------------------+
//! |     Gap Ack Block #1 Start    |      Gap Ack Block #1 End     |
//! +-------------------------------+-------------------------------+
//! \                 ..., then M duplicate TSNs                    \
//! +---------------------------------------------------------------+
//! ```
//!
//! <https://datatracker.ietf.org/doc/html/draft-tuexen-tsvwg-sctp-multipath#section-3.1>
//!
//! ```text
//! +---------------+---------------+-------------------------------+
//! |   Type = 16   |DAC|           |            Length             |
//! +---------------+---------------+-------------------------------+
//! |                      Cumulative TSN Ack                       |
//! +---------------------------------------------------------------+
//! |          Advertised Receiver Window Credit (a_rwnd)           |
//! +-------------------------------+-------------------------------+
//! |   Number of Gap Ack Blocks    |  Number of NR Gap Ack Blocks  |
//! +-------------------------------+-------------------------------+
//! |    Number of Duplicate TSNs   |           Reserved            |
//! +-------------------------------+-------------------------------+
//! \    Gap Ack Blocks, NR Gap Ack Blocks, then duplicate TSNs     \
//! +---------------------------------------------------------------+
//! ```
//!
//! The two highest bits of the flags are the delayed acknowledgement count of concurrent multipath
//! transfer (Iyengar et al. 2006, §3.3): how many packets this chunk acknowledges; 0 without it.

use bytes::{Bytes, BytesMut};

use super::{Chunk, ChunkType, EncodeChunk, PacketView, put_header};
use crate::serial::Tsn;
use crate::wire::records::{WireRecord, WireRecords, put_records};

/// Bytes of a SACK before its blocks.
const FIXED: usize = 16;
/// Bytes of an NR-SACK before its blocks.
const NR_FIXED: usize = 20;
/// The position of the delayed acknowledgement count in the flags.
const DAC_SHIFT: u32 = 6;

/// A run of TSNs that arrived beyond a gap, as offsets from the cumulative TSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct GapBlock {
    /// Offset of the first TSN; at least 2 if valid.
    pub start: u16,
    /// Offset of the last TSN; at least `start` if valid.
    pub end: u16,
}

impl GapBlock {
    /// Returns the first and the last TSN, given the chunk's `cumulative_tsn`.
    #[must_use]
    pub fn tsns(self, cumulative_tsn: Tsn) -> (Tsn, Tsn) {
        (cumulative_tsn.plus(self.start.into()), cumulative_tsn.plus(self.end.into()))
    }
}

impl WireRecord for GapBlock {
    const SIZE: usize = 4;

    #[inline]
    fn read(bytes: &[u8]) -> Option<Self> {
        let &[s0, s1, e0, e1] = bytes.first_chunk()?;
        Some(Self { start: u16::from_be_bytes([s0, s1]), end: u16::from_be_bytes([e0, e1]) })
    }

    #[inline]
    fn write(&self, buffer: &mut BytesMut) {
        self.start.write(buffer);
        self.end.write(buffer);
    }
}

/// A received SACK or NR-SACK chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SackChunk {
    /// The last TSN received in sequence.
    pub cumulative_tsn: Tsn,
    /// The remaining window, in bytes.
    pub a_rwnd: u32,
    /// The number of packets that it acknowledges, 1 to 3; 0 if not stated.
    pub dac_count: u8,
    /// Whether it is an NR-SACK, which may have [`Self::nr_gap_blocks`].
    pub is_nr: bool,
    gap_count: u16,
    nr_gap_count: u16,
    lists: Bytes,
}

impl SackChunk {
    #[inline]
    pub(super) fn parse(flags: u8, chunk: PacketView<'_>) -> Option<Self> {
        let counts = (chunk.u16_at(12)?, 0, chunk.u16_at(14)?);
        Self::with_lists(flags, chunk, false, counts, chunk.skip(FIXED)?)
    }

    pub(super) fn parse_nr(flags: u8, chunk: PacketView<'_>) -> Option<Self> {
        let counts = (chunk.u16_at(12)?, chunk.u16_at(14)?, chunk.u16_at(16)?);
        Self::with_lists(flags, chunk, true, counts, chunk.skip(NR_FIXED)?)
    }

    #[inline]
    fn with_lists(
        flags: u8,
        chunk: PacketView<'_>,
        is_nr: bool,
        (gap_count, nr_gap_count, duplicates): (u16, u16, u16),
        lists: PacketView<'_>,
    ) -> Option<Self> {
        let blocks = usize::from(gap_count) + usize::from(nr_gap_count);
        let length = blocks * GapBlock::SIZE + usize::from(duplicates) * Tsn::SIZE;
        Some(Self {
            cumulative_tsn: Tsn(chunk.u32_at(4)?),
            a_rwnd: chunk.u32_at(8)?,
            dac_count: flags >> DAC_SHIFT,
            is_nr,
            gap_count,
            nr_gap_count,
            lists: lists.first(length)?.share(),
        })
    }

    /// Returns runs of TSNs that arrived but are renegable, as listed by the receiver: not
    /// validated.
    #[must_use]
    pub fn gap_blocks(&self) -> WireRecords<'_, GapBlock> {
        self.list(0, self.gap_count)
    }

    /// Returns runs of TSNs that are non-renegable, as listed by the receiver: not validated.
    #[must_use]
    pub fn nr_gap_blocks(&self) -> WireRecords<'_, GapBlock> {
        self.list(self.gap_count.into(), self.nr_gap_count)
    }

    /// Returns the TSNs that arrived more than once since the last SACK.
    #[must_use]
    pub fn duplicates(&self) -> WireRecords<'_, Tsn> {
        let blocks = usize::from(self.gap_count) + usize::from(self.nr_gap_count);
        WireRecords::new(self.lists.get(blocks * GapBlock::SIZE..).unwrap_or_default())
    }

    fn list(&self, skip: usize, count: u16) -> WireRecords<'_, GapBlock> {
        let start = skip * GapBlock::SIZE;
        let end = start + usize::from(count) * GapBlock::SIZE;
        WireRecords::new(self.lists.get(start..end).unwrap_or_default())
    }

    pub(super) const fn chunk_type(&self) -> ChunkType {
        if self.is_nr { ChunkType::NR_SACK } else { ChunkType::SACK }
    }
}

impl EncodeChunk for SackChunk {
    fn encoded_len(&self) -> usize {
        fixed(self.is_nr) + self.lists.len()
    }

    fn encode(&self, buffer: &mut BytesMut) {
        let duplicates = self.duplicates().remaining();
        let counts = (self.gap_count.into(), self.nr_gap_count.into(), duplicates);
        let fields = SackBuilder {
            cumulative_tsn: self.cumulative_tsn,
            a_rwnd: self.a_rwnd,
            dac_count: self.dac_count,
            is_nr: self.is_nr,
            ..SackBuilder::default()
        };
        fields.encode_fixed(self.encoded_len(), counts, buffer);
        buffer.extend_from_slice(&self.lists);
    }

    fn to_chunk(&self) -> Chunk {
        Chunk::Sack(self.clone())
    }
}

/// A SACK or NR-SACK to be sent, which borrows its lists.
#[derive(Clone, Copy, Debug, Default)]
pub struct SackBuilder<'a> {
    /// The last TSN received in sequence.
    pub cumulative_tsn: Tsn,
    /// The remaining window, in bytes.
    pub a_rwnd: u32,
    /// Renegable data beyond gaps, in ascending order.
    pub gap_blocks: &'a [GapBlock],
    /// Non-renegable data beyond gaps, in ascending order; only for an NR-SACK.
    pub nr_gap_blocks: &'a [GapBlock],
    /// Duplicates since the last SACK.
    pub duplicates: &'a [Tsn],
    /// The number of packets that it acknowledges, at most 3; 0 not to state it.
    pub dac_count: u8,
    /// Whether it is an NR-SACK.
    pub is_nr: bool,
}

impl SackBuilder<'_> {
    /// Returns the chunk with as much of its lists as fits `room` bytes: gap ack blocks before
    /// non-renegable ones, duplicates last. A SACK without lists always remains.
    #[must_use]
    pub fn fitted_to(self, room: usize) -> Self {
        let left = room.saturating_sub(fixed(self.is_nr)) / GapBlock::SIZE;
        let gaps = self.gap_blocks.len().min(left);
        let nr_gaps = self.nr_blocks().len().min(left - gaps);
        let duplicates = self.duplicates.len().min(left - gaps - nr_gaps);
        Self {
            gap_blocks: &self.gap_blocks[..gaps],
            nr_gap_blocks: &self.nr_gap_blocks[..nr_gaps],
            duplicates: &self.duplicates[..duplicates],
            ..self
        }
    }

    /// Returns the chunk as parsed by its receiver.
    #[must_use]
    pub fn build(&self) -> SackChunk {
        let this = self.fitted_to(u16::MAX.into());
        let mut lists = BytesMut::new();
        this.put_lists(&mut lists);
        SackChunk {
            cumulative_tsn: this.cumulative_tsn,
            a_rwnd: this.a_rwnd,
            dac_count: this.dac_count & 3,
            is_nr: this.is_nr,
            gap_count: count(this.gap_blocks.len()),
            nr_gap_count: count(this.nr_blocks().len()),
            lists: lists.freeze(),
        }
    }

    fn nr_blocks(&self) -> &[GapBlock] {
        if self.is_nr { self.nr_gap_blocks } else { &[] }
    }

    fn put_lists(&self, buffer: &mut BytesMut) {
        put_records(self.gap_blocks, buffer);
        put_records(self.nr_blocks(), buffer);
        put_records(self.duplicates, buffer);
    }

    fn encode_fixed(
        &self,
        length: usize,
        (gaps, nr_gaps, duplicates): (usize, usize, usize),
        buffer: &mut BytesMut,
    ) {
        let chunk_type = if self.is_nr { ChunkType::NR_SACK } else { ChunkType::SACK };
        put_header(chunk_type, self.dac_count << DAC_SHIFT, length, buffer);
        self.cumulative_tsn.write(buffer);
        self.a_rwnd.write(buffer);
        count(gaps).write(buffer);
        if self.is_nr {
            count(nr_gaps).write(buffer);
        }
        count(duplicates).write(buffer);
        if self.is_nr {
            0_u16.write(buffer);
        }
    }
}

impl EncodeChunk for SackBuilder<'_> {
    fn encoded_len(&self) -> usize {
        let blocks = self.gap_blocks.len() + self.nr_blocks().len();
        fixed(self.is_nr) + blocks * GapBlock::SIZE + self.duplicates.len() * Tsn::SIZE
    }

    fn encode(&self, buffer: &mut BytesMut) {
        let counts = (self.gap_blocks.len(), self.nr_blocks().len(), self.duplicates.len());
        self.encode_fixed(self.encoded_len(), counts, buffer);
        self.put_lists(buffer);
    }

    fn to_chunk(&self) -> Chunk {
        Chunk::Sack(self.build())
    }
}

const fn fixed(is_nr: bool) -> usize {
    if is_nr { NR_FIXED } else { FIXED }
}

/// Converts a number of entries; more do not fit a chunk.
fn count(entries: usize) -> u16 {
    u16::try_from(entries).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::Chunk;
    use crate::wire::chunk::tests::{parse_one, round_trip};
    use alloc::vec::Vec;

    const SACK: &[u8] = &[
        0x03, 0x80, 0x00, 0x1c, 0x00, 0x00, 0x10, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x02, 0x00,
        0x01, 0x00, 0x02, 0x00, 0x04, 0x00, 0x06, 0x00, 0x06, 0x00, 0x00, 0x0f, 0xff,
    ];

    const NR_SACK: &[u8] = &[
        0x10, 0x00, 0x00, 0x20, 0x00, 0x00, 0x10, 0x00, 0x00, 0x01, 0x00, 0x00, 0x00, 0x01, 0x00,
        0x01, 0x00, 0x01, 0x00, 0x00, 0x00, 0x02, 0x00, 0x04, 0x00, 0x06, 0x00, 0x07, 0x00, 0x00,
        0x0f, 0xff,
    ];

    fn sack(bytes: &[u8]) -> SackChunk {
        match parse_one(bytes) {
            Chunk::Sack(sack) => sack,
            other => panic!("not a SACK: {other:?}"),
        }
    }

    #[test]
    fn a_sack_is_parsed() {
        let sack = sack(SACK);
        assert_eq!((sack.cumulative_tsn, sack.a_rwnd), (Tsn(0x1000), 0x1_0000));
        assert_eq!((sack.dac_count, sack.is_nr), (2, false));
        let blocks: Vec<_> = sack.gap_blocks().map(|block| block.tsns(Tsn(0x1000))).collect();
        assert_eq!(blocks, [(Tsn(0x1002), Tsn(0x1004)), (Tsn(0x1006), Tsn(0x1006))]);
        assert!(sack.nr_gap_blocks().is_empty());
        assert_eq!(sack.duplicates().collect::<Vec<_>>(), [Tsn(0xfff)]);
        round_trip(SACK);
    }

    #[test]
    fn an_nr_sack_is_parsed() {
        let sack = sack(NR_SACK);
        assert!(sack.is_nr);
        assert_eq!(sack.gap_blocks().collect::<Vec<_>>(), [GapBlock { start: 2, end: 4 }]);
        assert_eq!(sack.nr_gap_blocks().collect::<Vec<_>>(), [GapBlock { start: 6, end: 7 }]);
        assert_eq!(sack.duplicates().collect::<Vec<_>>(), [Tsn(0xfff)]);
        round_trip(NR_SACK);
    }

    #[test]
    fn counts_that_do_not_fit_the_chunk_are_malformed() {
        for (at, count) in [(13, 4), (15, 3), (12, 0xff)] {
            let mut bytes = SACK.to_vec();
            bytes[at] = count;
            assert_eq!(parse_one(&bytes), Chunk::Malformed { chunk_type: ChunkType::SACK });
        }
    }

    //= rfc9260 §3.3.4
    //# as many gap blocks as fit, in increasing order
    #[test]
    fn lists_are_truncated_to_the_available_room() {
        let blocks = [GapBlock { start: 2, end: 2 }, GapBlock { start: 4, end: 4 }];
        let builder = SackBuilder {
            gap_blocks: &blocks,
            duplicates: &[Tsn(1), Tsn(2)],
            ..SackBuilder::default()
        };
        assert_eq!(builder.fitted_to(1000).encoded_len(), 32);
        let cut = builder.fitted_to(30);
        assert_eq!((cut.gap_blocks.len(), cut.duplicates.len()), (2, 1));
        assert_eq!(builder.fitted_to(20).gap_blocks.len(), 1);
        assert_eq!(builder.fitted_to(0).encoded_len(), 16);
        assert_eq!(builder.build().duplicates().collect::<Vec<_>>(), [Tsn(1), Tsn(2)]);
    }

    #[test]
    fn a_plain_sack_has_no_non_renegable_blocks() {
        let blocks = [GapBlock { start: 2, end: 2 }];
        let builder = SackBuilder { nr_gap_blocks: &blocks, ..SackBuilder::default() };
        assert_eq!(builder.encoded_len(), 16);
        assert!(builder.build().nr_gap_blocks().is_empty());
    }
}
