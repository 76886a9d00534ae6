//! The gap ack blocks of the peer, and the changes of a new report (RFC 9260 §6.2.1).
//!
//! Reports are compared range by range, so the cost of a SACK depends on what it reports and not on
//! what is outstanding.

use alloc::vec::Vec;

use crate::serial::Tsn;
use crate::wire::{GapBlock, SackChunk};

/// The number of blocks from which a list may have been truncated for lack of space in its packet.
/// What lies beyond its last block is then not taken as dropped.
const LONG_LIST: usize = 128;

/// The first and the last TSN of a range.
pub(super) type TsnRange = (Tsn, Tsn);

/// The gap ack blocks of the latest SACK, as ascending, disjoint ranges.
#[derive(Debug, Default)]
pub(super) struct ReportedGapBlocks {
    /// All data that arrived.
    pub(super) arrived: Vec<TsnRange>,
    /// The part of it that is non-renegable (NR-SACK).
    pub(super) non_renegable: Vec<TsnRange>,
    /// A buffer for the next report.
    pub(super) spare: Vec<TsnRange>,
    /// Whether the latest SACK omitted something that an earlier one reported. Two in a row count
    /// as reneging; a single one may have been overtaken.
    pub(super) suspected: bool,
}

impl ReportedGapBlocks {
    /// Returns whether there is nothing beyond the cumulative TSN ack.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.arrived.is_empty()
    }

    /// Clears all reports.
    pub(super) fn clear(&mut self) {
        self.arrived.clear();
        self.non_renegable.clear();
        self.suspected = false;
    }

    /// Drops what the cumulative TSN covers.
    pub(super) fn trim(&mut self, cumulative: Tsn) {
        trim(&mut self.arrived, cumulative);
        trim(&mut self.non_renegable, cumulative);
    }
}

fn trim(ranges: &mut Vec<TsnRange>, cumulative: Tsn) {
    let over = ranges.iter().take_while(|range| range.1.is_at_or_before(cumulative)).count();
    ranges.drain(..over);
    if let Some(first) = ranges.first_mut()
        && first.0.is_at_or_before(cumulative)
    {
        first.0 = cumulative.next();
    }
}

/// Returns whether the blocks of a SACK are ascending, valid, and at or below `highest`, the last
/// TSN that was sent.
pub(super) fn are_plausible(sack: &SackChunk, highest: Tsn) -> bool {
    let max_offset = highest.distance_from(sack.cumulative_tsn);
    are_ascending(sack.gap_blocks(), max_offset) && are_ascending(sack.nr_gap_blocks(), max_offset)
}

fn are_ascending(blocks: impl Iterator<Item = GapBlock>, max_offset: u32) -> bool {
    // The TSN after the cumulative TSN ack is missing by definition.
    let mut minimum = 2;
    for block in blocks {
        if block.start < minimum || block.end < block.start || u32::from(block.end) > max_offset {
            return false;
        }
        minimum = block.end.saturating_add(1);
    }
    true
}

/// Collects all that a SACK reports beyond its cumulative TSN ack, of both kinds, as ascending
/// ranges.
pub(super) fn collect(sack: &SackChunk, ranges: &mut Vec<TsnRange>) {
    ranges.clear();
    let mut gaps = sack.gap_blocks().peekable();
    let mut non_renegable = sack.nr_gap_blocks().peekable();
    loop {
        let block = match (gaps.peek(), non_renegable.peek()) {
            (Some(one), Some(other)) if one.start <= other.start => gaps.next(),
            (Some(_), None) => gaps.next(),
            (_, Some(_)) => non_renegable.next(),
            (None, None) => return,
        };
        if let Some(block) = block {
            append(ranges, block.tsns(sack.cumulative_tsn));
        }
    }
}

/// Collects the ranges that a SACK reports as non-renegable.
pub(super) fn collect_non_renegable(sack: &SackChunk, ranges: &mut Vec<TsnRange>) {
    ranges.clear();
    for block in sack.nr_gap_blocks() {
        append(ranges, block.tsns(sack.cumulative_tsn));
    }
}

/// Appends a range that does not start before the last one.
fn append(ranges: &mut Vec<TsnRange>, range: TsnRange) {
    if let Some(last) = ranges.last_mut()
        && range.0.is_at_or_before(last.1.next())
    {
        if range.1.is_after(last.1) {
            last.1 = range.1;
        }
        return;
    }
    ranges.push(range);
}

/// Calls `found` for each run of TSNs that is in `these` and not in `those`, lowest first.
pub(super) fn difference(these: &[TsnRange], those: &[TsnRange], mut found: impl FnMut(Tsn, Tsn)) {
    let mut those = those.iter().peekable();
    for &(first, last) in these {
        let mut from = first;
        while those.peek().is_some_and(|other| other.1.is_before(from)) {
            those.next();
        }
        loop {
            match those.peek() {
                Some(other) if other.0.is_at_or_before(last) => {
                    if other.0.is_after(from) {
                        found(from, other.0.previous());
                    }
                    from = other.1.next();
                    if other.1.is_at_or_after(last) {
                        break;
                    }
                    those.next();
                }
                _ => {
                    found(from, last);
                    break;
                }
            }
        }
    }
}

/// Returns the TSN up to which a report is conclusive: `None` for all, or the end of the last block
/// if the list is so long that it may have been truncated.
pub(super) fn last_conclusive(report: &[TsnRange]) -> Option<Tsn> {
    let last = report.last().filter(|_| report.len() >= LONG_LIST)?;
    Some(last.1)
}

#[cfg(test)]
mod tests;
