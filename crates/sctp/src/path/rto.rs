//! The retransmission timeout of a path (RFC 9260 §6.3.1, with the gains of RFC 6298).

use core::time::Duration;

use crate::config::AssociationConfig;
use crate::congestion::nanoseconds;

/// How long to wait for an acknowledgement. Times are kept in nanoseconds.
#[derive(Clone, Debug)]
pub struct Rto {
    current: u64,
    smoothed: u64,
    variance: u64,
    min: u64,
    max: u64,
    /// The least round trip measured; 0 without any.
    least: u64,
    /// The latest round trip measured; 0 without any.
    latest: u64,
    /// When a measurement was last taken in.
    taken: u64,
}

impl Rto {
    /// Begins with `RTO.Initial`, bounded by `RTO.Min` and `RTO.Max`.
    #[must_use]
    pub fn new(config: &AssociationConfig) -> Self {
        let min = nanoseconds(config.rto_min).max(1);
        let max = nanoseconds(config.rto_max).max(min);
        let current = nanoseconds(config.rto_initial).clamp(min, max);
        Self { current, smoothed: 0, variance: 0, min, max, least: 0, latest: 0, taken: 0 }
    }

    /// Takes over other bounds, and another initial timeout if no round trip was measured yet.
    pub(crate) fn configure(&mut self, config: &AssociationConfig) {
        let fresh = Self::new(config);
        (self.min, self.max) = (fresh.min, fresh.max);
        let current = if self.smoothed == 0 { fresh.current } else { self.current };
        self.current = current.clamp(self.min, self.max);
    }

    /// The timeout now, back-off included.
    #[must_use]
    pub fn current(&self) -> Duration {
        Duration::from_nanos(self.current)
    }

    /// The smoothed round trip (`SRTT`), once one was measured.
    #[must_use]
    pub fn smoothed(&self) -> Option<Duration> {
        known(self.smoothed)
    }

    /// How much round trips vary (`RTTVAR`).
    #[must_use]
    pub fn variance(&self) -> Duration {
        Duration::from_nanos(self.variance)
    }

    /// The least round trip measured so far on the path.
    #[must_use]
    pub fn least(&self) -> Option<Duration> {
        known(self.least)
    }

    /// The latest round trip measured.
    #[must_use]
    pub fn latest(&self) -> Option<Duration> {
        known(self.latest)
    }

    /// A round trip was measured, on something that was sent once (Karn's rule, C5, is the
    /// caller's). Ends a back-off. One measurement is taken in for each round trip (C4): what was
    /// sent before the last one ended only shows in [`Self::latest`] and [`Self::least`].
    pub fn on_sample(&mut self, now: Duration, rtt: Duration) {
        let (now, rtt) = (nanoseconds(now), nanoseconds(rtt).max(1));
        self.latest = rtt;
        self.least = if self.least == 0 { rtt } else { self.least.min(rtt) };
        let sent = now.saturating_sub(rtt);
        if self.smoothed != 0 && sent < self.taken {
            return;
        }
        self.taken = now;
        if self.smoothed == 0 {
            self.smoothed = rtt;
            self.variance = rtt / 2;
        } else {
            // RTO.Beta is 1/4 and RTO.Alpha 1/8.
            let deviation = self.smoothed.abs_diff(rtt);
            self.variance = self.variance - self.variance / 4 + deviation / 4;
            self.smoothed = (self.smoothed - self.smoothed / 8 + rtt / 8).max(1);
        }
        let timeout = self.smoothed.saturating_add(self.variance.saturating_mul(4));
        self.current = timeout.clamp(self.min, self.max);
    }

    /// A timer of this length ran out: it doubles (rule E2).
    pub fn back_off(&mut self) {
        self.current = self.current.saturating_mul(2).min(self.max);
    }
}

fn known(nanoseconds: u64) -> Option<Duration> {
    (nanoseconds != 0).then(|| Duration::from_nanos(nanoseconds))
}

#[cfg(test)]
mod tests;
