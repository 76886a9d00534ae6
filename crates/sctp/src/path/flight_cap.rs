//! The cap on data in flight: estimated bandwidth times minimum RTT, plus a margin ([`FlightCap`]).
//! More than that only builds a queue.
//!
//! A cap above the product leaves room for growth: if the path is faster than estimated, the data
//! arrives faster, and the estimate grows. While it grows quickly, as at the beginning, the cap is
//! wide, so that slow start is not limited.

use core::time::Duration;

use super::Path;
use crate::config::FlightCap;
use crate::congestion::nanoseconds;

/// The cap in percent of the product while the estimate grows.
const GROWING: u64 = 300;

/// The packets beyond the product: acknowledgements cover two at a time.
const SPARE_PACKETS: usize = 3;

/// The same if buffers are short: exactly what one acknowledgement covers.
const MIN_SPARE_PACKETS: usize = 2;

/// The number of round trips without growth after which the estimate is final.
const ROUNDS: u8 = 3;

/// The growth of the estimate, and how much of it one acknowledgement covers.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RatePlateau {
    /// The estimate at its last growth, in bytes per second.
    rate: u64,
    /// Round trips without growth since.
    rounds: u8,
    /// The most data that one SACK acknowledged recently, in MTUs.
    acknowledged_at_once: u16,
    /// When the round trip ends, in nanoseconds.
    round_end: u64,
}

impl Path {
    /// Returns the limit of the data in flight in bytes of user data, or `None` without a cap or an
    /// estimate. It is lower during a check of the minimum RTT.
    #[must_use]
    pub(super) fn flight_cap(&self) -> Option<usize> {
        let full = self.full_cap()?;
        Some(self.check_cap().map_or(full, |cap| cap.min(full)))
    }

    /// Returns the limit outside of checks.
    pub(super) fn full_cap(&self) -> Option<usize> {
        let FlightCap { percent } = self.cap?;
        let is_growing = self.plateau.rounds < ROUNDS;
        if self.cap_without_slack && !is_growing {
            return self.least_fill();
        }
        let percent = u64::from(percent.max(100));
        let percent = if is_growing { percent.max(GROWING) } else { percent };
        // What one SACK covers has arrived, and is missing on the path until it comes. More than
        // half of what fills the path at once is the end of an outage.
        let batch = usize::from(self.plateau.acknowledged_at_once);
        let half = self.flight_for(50, 0)? / self.mtu.current();
        self.flight_for(percent, SPARE_PACKETS.max(batch.min(half)))
    }

    /// Returns the data in flight that fills the path, in bytes of user data: estimated bandwidth
    /// times minimum RTT, and what one acknowledgement covers. `None` without an estimate.
    #[must_use]
    pub fn least_fill(&self) -> Option<usize> {
        self.flight_for(100, MIN_SPARE_PACKETS)
    }

    /// Limits the data in flight to what fills the path, as buffers have no room for more. Has no
    /// effect without a cap.
    pub fn set_cap_without_slack(&mut self, without_slack: bool) {
        self.cap_without_slack = without_slack;
    }

    /// Returns `percent` of bandwidth times minimum RTT, plus `spare` packets.
    pub(super) fn flight_for(&self, percent: u64, spare: usize) -> Option<usize> {
        let rate = self.delivery_rate()?;
        let rtt = nanoseconds(self.usual_response_time()?) + self.return_wait();
        let product = u128::from(rate) * u128::from(rtt) / 1_000_000_000;
        let bytes = product * u128::from(percent) / 100;
        let spare = spare * self.mtu.current();
        Some(usize::try_from(bytes).unwrap_or(usize::MAX).saturating_add(spare))
    }

    /// Records the bytes that one SACK acknowledged.
    pub(super) fn note_acknowledged_at_once(&mut self, bytes: usize) {
        let packets = u16::try_from(bytes.div_ceil(self.mtu.current())).unwrap_or(u16::MAX);
        // A few dozen smaller ones end the effect of a large one.
        let decayed =
            self.plateau.acknowledged_at_once - self.plateau.acknowledged_at_once.div_ceil(32);
        self.plateau.acknowledged_at_once = decayed.max(packets);
    }

    /// Restarts the search, as the estimate is no longer valid.
    pub(super) fn restart_plateau(&mut self) {
        self.plateau = RatePlateau::default();
    }

    /// Updates the growth after a SACK.
    pub(super) fn update_plateau(&mut self, now: Duration) {
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
