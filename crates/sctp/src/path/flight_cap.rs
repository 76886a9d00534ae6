//! The cap on what is under way: estimated bandwidth by least round trip, and a little more
//! ([`FlightCap`]). What is beyond that only stands in a queue.
//!
//! A cap above the product leaves room to find more: if the path is faster than estimated, what is
//! under way arrives faster, and the estimate grows. As long as it does so quickly, as after the
//! beginning, the cap is wide, so that slow start is not held up.

use core::time::Duration;

use super::Path;
use crate::config::FlightCap;
use crate::congestion::nanoseconds;

/// Percent of the product while the estimate grows.
const GROWING: u64 = 300;

/// Packets beyond the product: acknowledgements come for two at a time.
const SPARE_PACKETS: usize = 3;

/// The same where buffers are short: what one acknowledgement is for, and no packet more.
const LEAN_PACKETS: usize = 2;

/// Round trips without growth after which the estimate is believed.
const ROUNDS: u8 = 3;

/// Where the estimate stands.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Plateau {
    /// The estimate when it had last grown, in bytes a second.
    rate: u64,
    /// Round trips without growth since.
    rounds: u8,
    /// When the round trip ends, in nanoseconds.
    round_end: u64,
}

impl Path {
    /// The most that may be under way, in bytes of user data; none without a cap, or without an
    /// estimate. Less while it is looked whether the least round trip still holds.
    #[must_use]
    pub(super) fn flight_cap(&self) -> Option<usize> {
        let full = self.full_cap()?;
        Some(self.look_cap().map_or(full, |look| look.min(full)))
    }

    /// The same without looking.
    pub(super) fn full_cap(&self) -> Option<usize> {
        let FlightCap { percent } = self.cap?;
        let is_growing = self.plateau.rounds < ROUNDS;
        if self.is_lean && !is_growing {
            return self.least_fill();
        }
        let percent = u64::from(percent.max(100));
        let percent = if is_growing { percent.max(GROWING) } else { percent };
        self.flight_for(percent, SPARE_PACKETS)
    }

    /// What must be under way for the path to be full, in bytes of user data: estimated bandwidth by
    /// least round trip, and what one acknowledgement is for. None without an estimate.
    #[must_use]
    pub fn least_fill(&self) -> Option<usize> {
        self.flight_for(100, LEAN_PACKETS)
    }

    /// Holds what is under way to what fills the path, as buffers have no room for more. Does
    /// nothing where there is no cap.
    pub fn keep_lean(&mut self, lean: bool) {
        self.is_lean = lean;
    }

    /// So many percent of bandwidth by least round trip, and so many packets.
    pub(super) fn flight_for(&self, percent: u64, spare: usize) -> Option<usize> {
        let rate = self.delivery_rate()?;
        let rtt = nanoseconds(self.least_answer()?);
        let product = u128::from(rate) * u128::from(rtt) / 1_000_000_000;
        let bytes = product * u128::from(percent) / 100;
        let spare = spare * self.mtu.current();
        Some(usize::try_from(bytes).unwrap_or(usize::MAX).saturating_add(spare))
    }

    /// What was estimated no longer holds: it is found again as at the beginning.
    pub(super) fn find_plateau_anew(&mut self) {
        self.plateau = Plateau::default();
    }

    /// A SACK has been taken in.
    pub(super) fn note_plateau(&mut self, now: Duration) {
        if self.cap.is_none() || self.plateau.rounds >= ROUNDS {
            return;
        }
        let Some(rate) = self.delivery_rate() else { return };
        let rtt = self.rto.smoothed().unwrap_or_default();
        let now = nanoseconds(now);
        if now < self.plateau.round_end {
            return;
        }
        self.plateau.round_end = now.saturating_add(nanoseconds(rtt));
        if rate >= self.plateau.rate + self.plateau.rate / 4 {
            (self.plateau.rate, self.plateau.rounds) = (rate, 0);
        } else {
            self.plateau.rounds += 1;
        }
    }
}

#[cfg(test)]
mod tests;
