//! The retransmission timeout of a path (RFC 9260 §6.3.1, with the gains of RFC 6298).

use core::time::Duration;

use crate::config::AssociationConfig;
use crate::congestion::nanoseconds;

/// The retransmission timeout. Times are in nanoseconds.
#[derive(Clone, Debug)]
pub struct RetransmissionTimeout {
    current: u64,
    smoothed: u64,
    variance: u64,
    min: u64,
    max: u64,
    /// The minimum RTT measured; 0 for none.
    minimum: u64,
    /// The latest RTT measured; 0 for none.
    latest: u64,
    /// When a measurement was last used.
    updated: u64,
}

impl RetransmissionTimeout {
    /// Starts with `RTO.Initial`, bounded by `RTO.Min` and `RTO.Max`.
    #[must_use]
    pub fn new(config: &AssociationConfig) -> Self {
        let min = nanoseconds(config.rto_min).max(1);
        let max = nanoseconds(config.rto_max).max(min);
        let current = nanoseconds(config.rto_initial).clamp(min, max);
        Self { current, smoothed: 0, variance: 0, min, max, minimum: 0, latest: 0, updated: 0 }
    }

    /// Applies other bounds, and another initial timeout if no RTT has been measured.
    pub(crate) fn configure(&mut self, config: &AssociationConfig) {
        let fresh = Self::new(config);
        (self.min, self.max) = (fresh.min, fresh.max);
        let current = if self.smoothed == 0 { fresh.current } else { self.current };
        self.current = current.clamp(self.min, self.max);
    }

    /// Returns the current timeout, including back-off.
    #[must_use]
    pub fn current(&self) -> Duration {
        Duration::from_nanos(self.current)
    }

    /// Returns the smoothed RTT (`SRTT`), once one was measured.
    #[must_use]
    pub fn smoothed(&self) -> Option<Duration> {
        known(self.smoothed)
    }

    /// Returns the RTT variation (`RTTVAR`).
    #[must_use]
    pub fn variance(&self) -> Duration {
        Duration::from_nanos(self.variance)
    }

    /// Returns the minimum RTT measured on the path.
    #[must_use]
    pub fn min_rtt(&self) -> Option<Duration> {
        known(self.minimum)
    }

    /// Returns the latest RTT measured.
    #[cfg(any(test, feature = "internals"))]
    #[must_use]
    pub fn latest(&self) -> Option<Duration> {
        known(self.latest)
    }

    /// Adds an RTT sample of something that was sent once (the caller applies Karn's algorithm,
    /// C5). Ends a back-off. One sample is used per round trip (C4): what was sent before the last
    /// one ended only changes [`Self::latest`] and [`Self::min_rtt`].
    pub fn on_sample(&mut self, now: Duration, rtt: Duration) {
        let (now, rtt) = (nanoseconds(now), nanoseconds(rtt).max(1));
        self.latest = rtt;
        self.minimum = if self.minimum == 0 { rtt } else { self.minimum.min(rtt) };
        let sent = now.saturating_sub(rtt);
        if self.smoothed != 0 && sent < self.updated {
            return;
        }
        self.updated = now;
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

    /// Doubles the timeout after it expired (rule E2).
    pub fn back_off(&mut self) {
        self.current = self.current.saturating_mul(2).min(self.max);
    }
}

fn known(nanoseconds: u64) -> Option<Duration> {
    (nanoseconds != 0).then(|| Duration::from_nanos(nanoseconds))
}

#[cfg(test)]
mod tests;
