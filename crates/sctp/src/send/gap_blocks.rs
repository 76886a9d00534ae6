//! What the peer reported beyond gaps, and what a new report changes (RFC 9260 §6.2.1).
//!
//! Reports are compared range by range, so a SACK costs what it says anew and not what is
//! outstanding.

use alloc::vec::Vec;

use crate::serial::Tsn;
use crate::wire::{GapBlock, SackChunk};

/// From how many blocks on a list may have been cut short for want of room in its packet. What
/// lies beyond its last block is then not taken for dropped.
const LONG_LIST: usize = 128;

/// The first and the last TSN of a range.
pub(super) type Range = (Tsn, Tsn);

/// What the latest SACK reported beyond its cumulative TSN; ranges rise and do not overlap.
#[derive(Debug, Default)]
pub(super) struct Reported {
    /// All that arrived.
    pub(super) arrived: Vec<Range>,
    /// What of it the peer cannot drop any more (NR-SACK).
    pub(super) kept: Vec<Range>,
    /// Where the next report is put together.
    pub(super) spare: Vec<Range>,
    /// Whether the latest SACK left out what an earlier one reported: two in a row are believed,
    /// one may have been overtaken on the way.
    pub(super) doubted: bool,
}

impl Reported {
    /// Whether there is nothing beyond the cumulative TSN.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.arrived.is_empty()
    }

    /// Forgets all.
    pub(super) fn clear(&mut self) {
        self.arrived.clear();
        self.kept.clear();
        self.doubted = false;
    }

    /// Drops what the cumulative TSN covers.
    pub(super) fn trim(&mut self, cumulative: Tsn) {
        trim(&mut self.arrived, cumulative);
        trim(&mut self.kept, cumulative);
    }
}

fn trim(ranges: &mut Vec<Range>, cumulative: Tsn) {
    let over = ranges.iter().take_while(|range| range.1.is_at_or_before(cumulative)).count();
    ranges.drain(..over);
    if let Some(first) = ranges.first_mut()
        && first.0.is_at_or_before(cumulative)
    {
        first.0 = cumulative.next();
    }
}

/// Whether the blocks of a SACK rise, make sense, and stay at or below `highest`, the last TSN that
/// was sent.
pub(super) fn are_plausible(sack: &SackChunk, highest: Tsn) -> bool {
    let most = highest.distance_from(sack.cumulative_tsn);
    rise(sack.gap_blocks(), most) && rise(sack.nr_gap_blocks(), most)
}

fn rise(blocks: impl Iterator<Item = GapBlock>, most: u32) -> bool {
    // The TSN behind the cumulative one is missing by definition.
    let mut least = 2;
    for block in blocks {
        if block.start < least || block.end < block.start || u32::from(block.end) > most {
            return false;
        }
        least = block.end.saturating_add(1);
    }
    true
}

/// All that a SACK reports beyond its cumulative TSN, of both kinds, as rising ranges.
pub(super) fn collect(sack: &SackChunk, ranges: &mut Vec<Range>) {
    ranges.clear();
    let mut gaps = sack.gap_blocks().peekable();
    let mut kept = sack.nr_gap_blocks().peekable();
    loop {
        let block = match (gaps.peek(), kept.peek()) {
            (Some(one), Some(other)) if one.start <= other.start => gaps.next(),
            (Some(_), None) => gaps.next(),
            (_, Some(_)) => kept.next(),
            (None, None) => return,
        };
        if let Some(block) = block {
            append(ranges, block.tsns(sack.cumulative_tsn));
        }
    }
}

/// What a SACK reports that the peer cannot drop any more.
pub(super) fn collect_kept(sack: &SackChunk, ranges: &mut Vec<Range>) {
    ranges.clear();
    for block in sack.nr_gap_blocks() {
        append(ranges, block.tsns(sack.cumulative_tsn));
    }
}

/// Appends a range that begins nowhere before the last one.
fn append(ranges: &mut Vec<Range>, range: Range) {
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
pub(super) fn difference(these: &[Range], those: &[Range], mut found: impl FnMut(Tsn, Tsn)) {
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

/// The part of `earlier` that a report may be taken to deny: all of it, or what lies up to the last
/// block of a list so long that it may have been cut.
pub(super) fn deniable(report: &[Range]) -> Option<Tsn> {
    let last = report.last().filter(|_| report.len() >= LONG_LIST)?;
    Some(last.1)
}

#[cfg(test)]
mod tests;
