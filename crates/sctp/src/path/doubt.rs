//! Checks of whether the minimum RTT is still valid. The data in flight is limited by it
//! ([`super::flight_cap`]), so once the route has become longer, or others fill a queue on it, too
//! little stays in flight forever: a queue of our own would look the same.
//!
//! RTTs that are longer than the cap explains trigger a check. Then only half of what fills the
//! path is in flight, which causes no queue, until an RTT is as short as before or has been longer
//! often enough to be accepted ([`super::estimates::MinTracker`]). A path whose RTTs can be
//! explained is never slowed down.

use core::time::Duration;

use super::{Path, PathProgress};
use crate::congestion::nanoseconds;

/// The number of round trips without a short one after which a check starts.
const ROUND_TRIPS_BEFORE_CHECK: u64 = 8;

/// The minimum time between two checks in nanoseconds: `ProbeRTTInterval` (draft-ietf-ccwg-bbr
/// §2.5).
const INTERVAL: u64 = 5_000_000_000;

/// The tolerance for jitter, as a fraction.
const JITTER_PART: u64 = 8;

/// The data in flight during a check, in percent of what fills the path: `ProbeRTTCwndGain`.
const CHECK_PERCENT: u64 = 50;

/// The minimum number of packets in flight during a check: acknowledgements cover two.
const MIN_PACKETS: usize = 2;

/// When the next check starts, unless an RTT can be explained before: in nanoseconds, 0 while
/// nothing is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct DoubtTimer(u64);

/// A check is in progress.
const IN_PROGRESS: u64 = u64::MAX;

impl Path {
    /// Returns the limit of the data in flight during a check, in bytes of user data.
    pub(super) fn check_cap(&self) -> Option<usize> {
        if self.doubt.0 != IN_PROGRESS {
            return None;
        }
        Some(self.flight_for(CHECK_PERCENT, 0)?.max(MIN_PACKETS * self.mtu.current()))
    }

    /// Updates the check after a SACK whose RTT has been added to the estimates.
    pub(super) fn update_doubt(&mut self, now: Duration, progress: &PathProgress) {
        let time = progress.answered.map(|(_, time)| time).or(progress.rtt);
        let (Some(time), Some(cap), Some(rate)) =
            (time.map(nanoseconds), self.full_cap(), self.delivery_rate())
        else {
            return;
        };
        let now = nanoseconds(now);
        let minimum = self.min_response_time().map_or(0, nanoseconds);
        let filled = u64::try_from(cap as u128 * 1_000_000_000 / u128::from(rate.max(1)));
        let is_checking = self.doubt.0 == IN_PROGRESS;
        let expected = if is_checking { minimum } else { filled.unwrap_or(u64::MAX).max(minimum) };
        if self.doubt.0 == 0 || time <= expected.saturating_add(expected / JITTER_PART) {
            // A path that became slower fills no queue by the estimates from before.
            let deadline = self.rto.smoothed().map_or(0, nanoseconds) * ROUND_TRIPS_BEFORE_CHECK;
            let deadline = now.saturating_add(deadline + self.estimates.rate_counts_for());
            self.doubt.0 = match is_checking {
                true => deadline.max(now.saturating_add(INTERVAL)),
                // The interval after a check is not shortened.
                false if self.doubt.0 > deadline => self.doubt.0,
                false => deadline,
            };
        } else if now >= self.doubt.0 {
            self.doubt.0 = IN_PROGRESS;
        }
    }
}

#[cfg(test)]
mod tests;
