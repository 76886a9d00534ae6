//! What is estimated of a path for those who choose between paths: its least round trip, and how
//! fast it delivers. All from what is acknowledged, nothing from the configuration.

use core::time::Duration;

use super::one_way::RttsByReturnPath;
use super::{Path, Progress};
use crate::congestion::{DeliveryRate, nanoseconds};
use crate::identifier::PathId;

/// Round trips without a queue of ours after which a path that became longer is believed to be.
const LONGER_SAMPLES: u8 = 8;

/// Bytes under way, in MTUs, that make no queue.
const NO_QUEUE: usize = 3;

/// A part of a round trip by which it is longer where there is a queue for sure.
const QUEUED_PART: u64 = 4;

/// Round trips for which the fastest delivery counts, half of them at least.
const RATE_ROUND_TRIPS: u64 = 10;

/// The least time for which the fastest delivery counts, in nanoseconds.
const LEAST_RATE_TIME: u64 = 500_000_000;

/// The least of what was measured, without what queues add. In nanoseconds, 0 for none.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Least {
    least: u64,
    /// Measurements in a row that were longer, though nothing was in the way: how many, and the
    /// least of them.
    longer: (u8, u64),
}

impl Least {
    pub(super) fn get(&self) -> Option<Duration> {
        (self.least != 0).then(|| Duration::from_nanos(self.least))
    }

    /// Something was measured; `alone`: there was no queue of ours in the way.
    ///
    /// The least one stands. It may only have been that of another route if measurements without a
    /// queue say so: in a full queue all are longer. True if that is so now.
    pub(super) fn on_sample(&mut self, time: Duration, alone: bool) -> bool {
        let time = nanoseconds(time).max(1);
        if self.least == 0 || time <= self.least {
            (self.least, self.longer) = (time, (0, 0));
            return false;
        }
        // What is as long but for jitter is no other route.
        if time <= self.least + self.least / 8 {
            self.longer = (0, 0);
        } else if alone {
            let (count, least) = self.longer;
            self.longer = (count + 1, if count == 0 { time } else { least.min(time) });
            if self.longer.0 >= LONGER_SAMPLES {
                (self.least, self.longer) = (self.longer.1, (0, 0));
                return true;
            }
        }
        false
    }
}

/// The estimates of one path. Times are in nanoseconds, 0 for none.
#[derive(Clone, Debug, Default)]
pub(super) struct Estimates {
    least_rtt: Least,
    /// The round-trip times by the path that SACKs came back on.
    pub(super) return_rtts: RttsByReturnPath,
    /// The fastest delivery of the span that runs and of the one before, in bytes a second.
    rates: [u64; 2],
    /// When the span ends.
    span_end: u64,
}

impl Estimates {
    /// The path delivered at this rate; what was sent took so long to be acknowledged.
    fn on_delivery(&mut self, now: Duration, delivery: &DeliveryRate, rtt: Option<Duration>) {
        if delivery.too_short {
            return;
        }
        let now = nanoseconds(now);
        if now >= self.span_end {
            // What the application left unused says nothing of the path.
            let says_nothing = delivery.sent.app_limited && !self.has_queued(delivery, rtt);
            self.rates = match says_nothing {
                true => [self.rates[0].max(self.rates[1]), 0],
                false => [self.rates[1], 0],
            };
            self.span_end = now.saturating_add(self.rate_counts_for() / 2);
        }
        self.rates[1] = self.rates[1].max(delivery.rate());
    }

    /// How long the fastest delivery counts at most, in nanoseconds.
    pub(super) fn rate_counts_for(&self) -> u64 {
        (self.least_rtt.least * RATE_ROUND_TRIPS).max(2 * LEAST_RATE_TIME)
    }

    /// Whether what was under way took longer than it should at the estimated rate, and was not little:
    /// the application left nothing unused, the path is slower.
    fn has_queued(&self, delivery: &DeliveryRate, rtt: Option<Duration>) -> bool {
        let (Some(rtt), Some(rate)) = (rtt.map(nanoseconds), self.rates.into_iter().max()) else {
            return false;
        };
        let should = delivery.sent.in_flight as u128 * 1_000_000_000 / u128::from(rate.max(1));
        let should = u64::try_from(should).unwrap_or(u64::MAX);
        let longest = should.max(self.least_rtt.least);
        should >= self.least_rtt.least / 2 && rtt > longest.saturating_add(longest / QUEUED_PART)
    }
}

impl Path {
    /// The least round trip, without queues as far as it was ever seen without.
    #[must_use]
    pub fn least_rtt(&self) -> Option<Duration> {
        self.estimates.least_rtt.get()
    }

    /// How soon something that was sent here can be acknowledged: the least round trip, or less if
    /// SACKs come back on a quicker path and are not taken as round trips of this one
    /// ([`crate::config::RttSampling`]).
    pub(super) fn least_answer(&self) -> Option<Duration> {
        self.least_rtt().into_iter().chain(self.estimates.return_rtts.least()).min()
    }

    /// How fast the path delivered at best of late, in bytes of user data a second.
    #[must_use]
    pub fn delivery_rate(&self) -> Option<u64> {
        let rate = self.estimates.rates.into_iter().max().unwrap_or(0);
        (rate != 0).then_some(rate)
    }

    /// Nothing comes back on another path any more. What was acknowledged soonest may have been so over
    /// that one, and a flight held to that round trip would leave this path ever emptier.
    pub(super) fn forget_answers_over(&mut self, back: PathId) {
        if self.estimates.return_rtts.forget(back) {
            let least = self.estimates.return_rtts.least().map_or(0, nanoseconds);
            self.estimates.least_rtt = Least { least, ..Least::default() };
            self.find_plateau_anew();
        }
    }

    /// A round trip of something small was measured: of the handshake, or of a heartbeat.
    pub fn on_round_trip(&mut self, now: Duration, rtt: Duration) {
        self.rto.on_sample(now, rtt);
        self.estimates.least_rtt.on_sample(rtt, self.outstanding == 0);
    }

    /// What a SACK measured.
    pub(super) fn note_estimates(
        &mut self,
        now: Duration,
        progress: &Progress,
        delivery: Option<&DeliveryRate>,
    ) {
        let in_flight = delivery.map_or(usize::MAX, |delivery| delivery.sent.in_flight);
        let no_queue = (NO_QUEUE * self.mtu.current())
            .max(self.look_cap().map_or(0, |cap| cap + self.mtu.current()));
        let alone = in_flight <= no_queue;
        if let Some(rtt) = progress.rtt {
            self.estimates.least_rtt.on_sample(rtt, alone);
        }
        if let Some((back, time)) = progress.answered {
            self.estimates.return_rtts.on_sample(back, time, alone);
        }
        if let Some(delivery) = delivery {
            self.estimates.on_delivery(now, delivery, progress.rtt);
        }
    }
}

#[cfg(test)]
mod tests;
