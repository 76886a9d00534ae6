//! Which TSNs have arrived (RFC 9260 §6.2, §3.3.4).

use alloc::vec::Vec;

use super::Position;
use super::ranges::{Range, Ranges};
use crate::serial::Tsn;

/// The most ranges of TSNs above the cumulative one. A chunk that would begin one more is dropped
/// and comes again: no packet could report that many anyway.
pub(crate) const MAX_RANGES: usize = 4096;

/// How far above the cumulative TSN a chunk may be: a gap block cannot state more
/// (RFC 9260 §3.3.4).
pub(crate) const MAX_TSNS_AHEAD: u64 = 65_535;

/// The most duplicates that are remembered for the next SACK.
pub(crate) const MAX_DUPLICATES: usize = 64;

/// What a TSN is to us.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrival {
    /// It has been here before.
    Duplicate,
    /// It is too far ahead to be reported, or there are too many gaps.
    TooFar,
    /// It is new.
    New {
        /// Where it belongs.
        position: Position,
        /// Whether it is the one that the cumulative TSN waits for.
        next: bool,
        /// Whether something above it has arrived already.
        fills_gap: bool,
    },
}

/// The TSNs that have arrived.
#[derive(Debug)]
pub(crate) struct Tracking {
    /// All up to here have arrived or were given up by the peer. Its low 32 bits are the TSN.
    cumulative: Position,
    above: Ranges,
    /// Those above the cumulative one that the application has.
    delivered: Ranges,
    duplicates: Vec<Tsn>,
}

impl Tracking {
    /// Nothing has arrived; the first TSN will be `initial`.
    pub(crate) fn new(initial: Tsn) -> Self {
        Self {
            // One turn of the TSNs above zero, so that there are positions before it.
            cumulative: (1 << 32) + Position::from(initial.previous().0),
            above: Ranges::default(),
            delivered: Ranges::default(),
            duplicates: Vec::new(),
        }
    }

    /// Starts anew at another TSN (RFC 6525 §5.2.4).
    pub(crate) fn restart(&mut self, initial: Tsn) {
        *self = Self::new(initial);
    }

    /// The position up to which all have arrived.
    pub(crate) fn cumulative(&self) -> Position {
        self.cumulative
    }

    /// The highest position that has arrived.
    pub(crate) fn highest(&self) -> Position {
        self.above.highest().unwrap_or(self.cumulative)
    }

    /// Whether something above the cumulative TSN has arrived.
    pub(crate) fn has_gap(&self) -> bool {
        !self.above.is_empty()
    }

    /// The ranges above the cumulative position.
    pub(crate) fn above(&self) -> &Ranges {
        &self.above
    }

    /// The ranges above the cumulative position of which the application has everything.
    pub(crate) fn delivered(&self) -> &Ranges {
        &self.delivered
    }

    /// Where a TSN belongs: at the position nearest to the cumulative one.
    pub(crate) fn position(&self, tsn: Tsn) -> Position {
        let ahead = tsn.distance_from(tsn_at(self.cumulative)).cast_signed();
        self.cumulative.saturating_add_signed(i64::from(ahead))
    }

    /// What `tsn` is to us, without taking it in.
    #[inline]
    pub(crate) fn classify(&self, tsn: Tsn) -> Arrival {
        let position = self.position(tsn);
        if position == self.cumulative + 1 {
            return Arrival::New { position, next: true, fills_gap: self.has_gap() };
        }
        if position <= self.cumulative || self.above.contains(position) {
            return Arrival::Duplicate;
        }
        let crowded = self.above.len() >= MAX_RANGES && self.above.would_stand_alone(position);
        if crowded || position - self.cumulative > MAX_TSNS_AHEAD {
            return Arrival::TooFar;
        }
        Arrival::New { position, next: false, fills_gap: position < self.highest() }
    }

    /// Takes in a position that [`Self::classify`] called new.
    #[inline]
    pub(crate) fn accept(&mut self, position: Position) {
        if position == self.cumulative + 1 {
            self.cumulative = position;
            self.absorb();
        } else {
            self.above.insert(position);
        }
    }

    /// Takes everything up to `position` for arrived (RFC 3758 §3.6).
    pub(crate) fn skip_to(&mut self, position: Position) {
        if position > self.cumulative {
            self.cumulative = position;
            self.above.remove_up_to(position);
            self.absorb();
        }
    }

    fn absorb(&mut self) {
        if !self.above.is_empty()
            && let Some(end) = self.above.take_following(self.cumulative)
        {
            self.cumulative = end;
        }
        if !self.delivered.is_empty() {
            self.delivered.remove_up_to(self.cumulative);
        }
    }

    /// Remembers that the application has what came with `count` TSNs from `first` on.
    pub(crate) fn on_delivered(&mut self, first: Tsn, count: u64) {
        let first = self.position(first);
        let last = first + count.saturating_sub(1);
        if last > self.cumulative {
            self.delivered.insert_range(Range { first: first.max(self.cumulative + 1), last });
        }
    }

    /// Remembers that `tsn` came again.
    pub(crate) fn on_duplicate(&mut self, tsn: Tsn) {
        if self.duplicates.len() < MAX_DUPLICATES {
            self.duplicates.push(tsn);
        }
    }

    /// The TSNs that came again since the last SACK.
    pub(crate) fn duplicates(&self) -> &[Tsn] {
        &self.duplicates
    }

    /// Forgets the duplicates: they were reported.
    pub(crate) fn clear_duplicates(&mut self) {
        self.duplicates.clear();
    }
}

/// The TSN at a position.
pub(crate) const fn tsn_at(position: Position) -> Tsn {
    Tsn(position as u32)
}
