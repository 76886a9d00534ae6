//! Whether the least round trip still holds. What is under way is held to it ([`super::flight_cap`]),
//! so once the route has become longer, or others fill a queue on it, too little is under way, for ever:
//! a queue of ours looks the same.
//!
//! Round trips that are longer than what the cap lets under way explains are a reason to look. Then only
//! half of what fills the path is under way, which makes no queue, as long as a round trip is as short as
//! before or has been longer often enough to be believed ([`super::estimates::Least`]). A path whose
//! round trips can be explained is never held up.

use core::time::Duration;

use super::{Path, Progress};
use crate::congestion::nanoseconds;

/// Round trips without a short one after which is looked.
const PATIENCE_ROUND_TRIPS: u64 = 8;

/// The least time from the end of one look to the next, in nanoseconds: `ProbeRTTInterval`
/// (draft-ietf-ccwg-bbr §2.5).
const INTERVAL: u64 = 5_000_000_000;

/// What is as long as what explains it, but for jitter: a part of it.
const JITTER_PART: u64 = 8;

/// How much of what fills the path is under way while it is looked, in percent: `ProbeRTTCwndGain`.
const LOOK_PERCENT: u64 = 50;

/// Packets that are under way at least while it is looked: acknowledgements come for two.
const LEAST_PACKETS: usize = 2;

/// When it is looked, unless a round trip comes before that can be explained: in nanoseconds, 0 while
/// nothing is known.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Doubt(u64);

/// It is looked just now.
const NOW: u64 = u64::MAX;

impl Path {
    /// The most that may be under way while it is looked whether the least round trip still holds, in
    /// bytes of user data.
    pub(super) fn look_cap(&self) -> Option<usize> {
        if self.doubt.0 != NOW {
            return None;
        }
        Some(self.flight_for(LOOK_PERCENT, 0)?.max(LEAST_PACKETS * self.mtu.current()))
    }

    /// A SACK measured a round trip, which the estimates have taken in.
    pub(super) fn note_doubt(&mut self, now: Duration, progress: &Progress) {
        let time = progress.answered.map(|(_, time)| time).or(progress.rtt);
        let (Some(time), Some(cap), Some(rate)) =
            (time.map(nanoseconds), self.full_cap(), self.delivery_rate())
        else {
            return;
        };
        let now = nanoseconds(now);
        let least = self.least_answer().map_or(0, nanoseconds);
        let filled = u64::try_from(cap as u128 * 1_000_000_000 / u128::from(rate.max(1)));
        let looks = self.doubt.0 == NOW;
        let expected = if looks { least } else { filled.unwrap_or(u64::MAX).max(least) };
        if self.doubt.0 == 0 || time <= expected.saturating_add(expected / JITTER_PART) {
            // A path that became slower fills no queue by what was known when it was quicker.
            let patience = self.rto.smoothed().map_or(0, nanoseconds) * PATIENCE_ROUND_TRIPS;
            let patience = now.saturating_add(patience + self.estimates.rate_counts_for());
            self.doubt.0 = match looks {
                true => patience.max(now.saturating_add(INTERVAL)),
                // The time after a look is not shortened.
                false if self.doubt.0 > patience => self.doubt.0,
                false => patience,
            };
        } else if now >= self.doubt.0 {
            self.doubt.0 = NOW;
        }
    }
}

#[cfg(test)]
mod tests;
