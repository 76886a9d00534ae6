//! Tracking of received TSNs (RFC 9260 §6.2, §3.3.4).

use alloc::vec::Vec;

use super::TsnPosition;
use super::ranges::{PositionRange, PositionRanges};
use crate::serial::Tsn;

/// The maximum number of TSN ranges above the cumulative TSN. A chunk that would start another one
/// is dropped, and retransmitted by the peer: no packet could report that many anyway.
pub(crate) const MAX_RANGES: usize = 4096;

/// How far above the cumulative TSN a chunk may be: a gap block cannot state more
/// (RFC 9260 §3.3.4).
pub(crate) const MAX_TSNS_AHEAD: u64 = 65_535;

/// The maximum number of duplicates that are stored for the next SACK.
pub(crate) const MAX_DUPLICATES: usize = 64;

/// The classification of a received TSN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TsnArrival {
    /// It is a duplicate.
    Duplicate,
    /// It is too far ahead to be reported, or there are too many gaps.
    TooFar,
    /// It is new.
    New {
        /// Its position.
        position: TsnPosition,
        /// Whether it follows the cumulative TSN.
        next: bool,
        /// Whether a higher one has already arrived.
        fills_gap: bool,
    },
}

/// The TSNs that have arrived.
#[derive(Debug)]
pub(crate) struct TsnTracking {
    /// All up to here have arrived or were abandoned by the peer. Its low 32 bits are the TSN.
    cumulative: TsnPosition,
    above: PositionRanges,
    /// Those above the cumulative one that have been delivered to the application.
    delivered: PositionRanges,
    duplicates: Vec<Tsn>,
}

impl TsnTracking {
    /// Creates the state before any data; the first TSN will be `initial`.
    pub(crate) fn new(initial: Tsn) -> Self {
        Self {
            // One cycle of TSNs above zero, so that there are positions before it.
            cumulative: (1 << 32) + TsnPosition::from(initial.previous().0),
            above: PositionRanges::default(),
            delivered: PositionRanges::default(),
            duplicates: Vec::new(),
        }
    }

    /// Restarts at another TSN (RFC 6525 §5.2.4).
    pub(crate) fn restart(&mut self, initial: Tsn) {
        *self = Self::new(initial);
    }

    /// The position up to which all have arrived.
    pub(crate) fn cumulative(&self) -> TsnPosition {
        self.cumulative
    }

    /// The highest position that has arrived.
    pub(crate) fn highest(&self) -> TsnPosition {
        self.above.highest().unwrap_or(self.cumulative)
    }

    /// Returns whether something above the cumulative TSN has arrived.
    pub(crate) fn has_gap(&self) -> bool {
        !self.above.is_empty()
    }

    /// The ranges above the cumulative position.
    pub(crate) fn above(&self) -> &PositionRanges {
        &self.above
    }

    /// The ranges above the cumulative position of which the application has everything.
    pub(crate) fn delivered(&self) -> &PositionRanges {
        &self.delivered
    }

    /// Returns the position of a TSN: the one nearest to the cumulative position.
    pub(crate) fn position(&self, tsn: Tsn) -> TsnPosition {
        let ahead = tsn.distance_from(tsn_at(self.cumulative)).cast_signed();
        self.cumulative.saturating_add_signed(i64::from(ahead))
    }

    /// Classifies `tsn` without accepting it.
    #[inline]
    pub(crate) fn classify(&self, tsn: Tsn) -> TsnArrival {
        let position = self.position(tsn);
        if position == self.cumulative + 1 {
            return TsnArrival::New { position, next: true, fills_gap: self.has_gap() };
        }
        if position <= self.cumulative || self.above.contains(position) {
            return TsnArrival::Duplicate;
        }
        let exceeds_ranges =
            self.above.len() >= MAX_RANGES && self.above.starts_new_range(position);
        if exceeds_ranges || position - self.cumulative > MAX_TSNS_AHEAD {
            return TsnArrival::TooFar;
        }
        TsnArrival::New { position, next: false, fills_gap: position < self.highest() }
    }

    /// Accepts a position that [`Self::classify`] returned as new.
    #[inline]
    pub(crate) fn accept(&mut self, position: TsnPosition) {
        if position == self.cumulative + 1 {
            self.cumulative = position;
            self.merge_adjacent();
        } else {
            self.above.insert(position);
        }
    }

    /// Treats everything up to `position` as received (RFC 3758 §3.6).
    pub(crate) fn skip_to(&mut self, position: TsnPosition) {
        if position > self.cumulative {
            self.cumulative = position;
            self.above.remove_up_to(position);
            self.merge_adjacent();
        }
    }

    fn merge_adjacent(&mut self) {
        if !self.above.is_empty()
            && let Some(end) = self.above.remove_adjacent(self.cumulative)
        {
            self.cumulative = end;
        }
        if !self.delivered.is_empty() {
            self.delivered.remove_up_to(self.cumulative);
        }
    }

    /// Records the delivery of `count` TSNs from `first` on to the application.
    pub(crate) fn on_delivered(&mut self, first: Tsn, count: u64) {
        let first = self.position(first);
        let last = first + count.saturating_sub(1);
        if last > self.cumulative {
            self.delivered
                .insert_range(PositionRange { first: first.max(self.cumulative + 1), last });
        }
    }

    /// Records a duplicate of `tsn`.
    pub(crate) fn on_duplicate(&mut self, tsn: Tsn) {
        if self.duplicates.len() < MAX_DUPLICATES {
            self.duplicates.push(tsn);
        }
    }

    /// Returns the duplicates since the last SACK.
    pub(crate) fn duplicates(&self) -> &[Tsn] {
        &self.duplicates
    }

    /// Clears the duplicates after they have been reported.
    pub(crate) fn clear_duplicates(&mut self) {
        self.duplicates.clear();
    }
}

/// The TSN at a position.
pub(crate) const fn tsn_at(position: TsnPosition) -> Tsn {
    Tsn(position as u32)
}
