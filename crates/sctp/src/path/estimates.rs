//! Estimates of a path for path selection: its minimum RTT and its delivery rate. They come only
//! from acknowledgements, not from the configuration.

use core::time::Duration;

use super::one_way::RttsByReturnPath;
use super::{Path, PathProgress};
use crate::congestion::{DeliveryRate, nanoseconds};
use crate::identifier::PathId;

/// The number of longer round trips without a queue of ours after which a path counts as longer.
const LONGER_SAMPLES: u8 = 8;

/// The data in flight that causes no queue, in MTUs.
const NO_QUEUE: usize = 3;

/// The fraction by which an RTT must be longer to prove a queue.
const QUEUED_PART: u64 = 4;

/// The number of round trips for which the fastest delivery counts, and at least for half of them.
const RATE_ROUND_TRIPS: u64 = 10;

/// The minimum time for which the fastest delivery counts, in nanoseconds.
const MIN_RATE_TIME: u64 = 500_000_000;

/// The minimum of measurements without queueing delay. In nanoseconds, 0 for none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MinTracker {
    minimum: u64,
    /// Consecutive longer measurements without a queue: their number and their minimum.
    longer: (u8, u64),
}

impl MinTracker {
    pub(super) fn get(&self) -> Option<Duration> {
        (self.minimum != 0).then(|| Duration::from_nanos(self.minimum))
    }

    /// Records a sample; `is_unqueued`: our own traffic caused no queueing delay.
    ///
    /// The minimum is only replaced by a longer value if measurements without a queue show that the
    /// route has changed: in a full queue all are longer. Returns whether that is the case.
    pub(super) fn on_sample(&mut self, time: Duration, is_unqueued: bool) -> bool {
        let time = nanoseconds(time).max(1);
        if self.minimum == 0 || time <= self.minimum {
            (self.minimum, self.longer) = (time, (0, 0));
            return false;
        }
        // Jitter does not indicate another route.
        if time <= self.minimum + self.minimum / 8 {
            self.longer = (0, 0);
        } else if is_unqueued {
            let (count, minimum) = self.longer;
            self.longer = (count + 1, if count == 0 { time } else { minimum.min(time) });
            if self.longer.0 >= LONGER_SAMPLES {
                (self.minimum, self.longer) = (self.longer.1, (0, 0));
                return true;
            }
        }
        false
    }
}

/// The estimates of one path. Times are in nanoseconds, 0 for none.
#[derive(Clone, Debug, Default)]
pub(super) struct PathEstimates {
    min_rtt: MinTracker,
    /// The RTTs by the path that SACKs returned on.
    pub(super) return_rtts: RttsByReturnPath,
    /// The fastest delivery of the current and of the previous span, in bytes per second.
    rates: [u64; 2],
    /// When the current span ends.
    span_end: u64,
}

impl PathEstimates {
    /// Adds a delivery rate sample, with its RTT.
    fn on_delivery(&mut self, now: Duration, delivery: &DeliveryRate, rtt: Option<Duration>) {
        if delivery.too_short {
            return;
        }
        let now = nanoseconds(now);
        if now >= self.span_end {
            // An idle application is no evidence about the path.
            let is_inconclusive = delivery.sent.app_limited && !self.has_queued(delivery, rtt);
            self.rates = match is_inconclusive {
                true => [self.rates[0].max(self.rates[1]), 0],
                false => [self.rates[1], 0],
            };
            self.span_end = now.saturating_add(self.rate_counts_for() / 2);
        }
        self.rates[1] = self.rates[1].max(delivery.rate());
    }

    /// Returns how long the fastest delivery counts at most, in nanoseconds.
    pub(super) fn rate_counts_for(&self) -> u64 {
        (self.min_rtt.minimum * RATE_ROUND_TRIPS).max(2 * MIN_RATE_TIME)
    }

    /// Returns whether the data in flight took longer than expected at the estimated rate, and was
    /// not little: then the application was not idle, and the path is slower.
    fn has_queued(&self, delivery: &DeliveryRate, rtt: Option<Duration>) -> bool {
        let (Some(rtt), Some(rate)) = (rtt.map(nanoseconds), self.rates.into_iter().max()) else {
            return false;
        };
        let expected = delivery.sent.in_flight as u128 * 1_000_000_000 / u128::from(rate.max(1));
        let expected = u64::try_from(expected).unwrap_or(u64::MAX);
        let longest = expected.max(self.min_rtt.minimum);
        expected >= self.min_rtt.minimum / 2 && rtt > longest.saturating_add(longest / QUEUED_PART)
    }
}

impl Path {
    /// Returns the minimum RTT, as far as possible without queueing delay.
    #[must_use]
    pub fn min_rtt(&self) -> Option<Duration> {
        self.estimates.min_rtt.get()
    }

    /// Returns how soon data sent here can be acknowledged: after the minimum RTT, or earlier if
    /// SACKs return on a faster path and are not used as RTT samples of this one
    /// ([`crate::config::RttSampling`]).
    pub(super) fn min_response_time(&self) -> Option<Duration> {
        self.min_rtt().into_iter().chain(self.estimates.return_rtts.minimum()).min()
    }

    /// Returns how soon data sent here is usually acknowledged without queues: over several return
    /// paths, the mean. The shortest would be wrong where only some of the SACKs return on the
    /// fastest path, and data limited by it would leave the path ever emptier.
    pub(super) fn usual_response_time(&self) -> Option<Duration> {
        self.estimates.return_rtts.mean().or_else(|| self.min_response_time())
    }

    /// Returns the fastest recent delivery rate of the path, in bytes of user data per second.
    #[must_use]
    pub fn delivery_rate(&self) -> Option<u64> {
        let rate = self.estimates.rates.into_iter().max().unwrap_or(0);
        (rate != 0).then_some(rate)
    }

    /// Handles the loss of a return path. The fastest acknowledgements may have returned on it, and
    /// a flight limited by that RTT would leave this path ever emptier.
    pub(super) fn forget_return_path(&mut self, return_path: PathId) {
        if self.estimates.return_rtts.forget(return_path) {
            let minimum = self.estimates.return_rtts.minimum().map_or(0, nanoseconds);
            self.estimates.min_rtt = MinTracker { minimum, ..MinTracker::default() };
            self.restart_plateau();
        }
    }

    /// Adds the RTT of a small packet: of the handshake, or of a heartbeat.
    pub fn on_round_trip(&mut self, now: Duration, rtt: Duration) {
        self.rto.on_sample(now, rtt);
        self.estimates.min_rtt.on_sample(rtt, self.outstanding == 0);
    }

    /// Updates the estimates with what a SACK measured that acknowledged `bytes`.
    pub(super) fn update_estimates(
        &mut self,
        now: Duration,
        progress: &PathProgress,
        delivery: Option<&DeliveryRate>,
        bytes: usize,
    ) {
        let in_flight = delivery.map_or(usize::MAX, |delivery| delivery.sent.in_flight);
        let small_flight = (NO_QUEUE * self.mtu.current())
            .max(self.check_cap().map_or(0, |cap| cap + self.mtu.current()));
        let is_unqueued = in_flight <= small_flight;
        if let Some(rtt) = progress.rtt {
            self.estimates.min_rtt.on_sample(rtt, is_unqueued);
        }
        if let Some((return_path, time)) = progress.answered {
            self.estimates.return_rtts.on_sample(return_path, time, bytes, is_unqueued);
        }
        if let Some(delivery) = delivery {
            self.estimates.on_delivery(now, delivery, progress.rtt);
        }
    }
}

#[cfg(test)]
mod tests;
