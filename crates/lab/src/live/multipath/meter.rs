//! Records what arrived, and when.

use std::time::Duration;

/// The number of equal parts of the measured time; each is a trial.
pub(super) const PARTS: usize = 12;

/// Records what arrives at the receiving application. Times are relative to an arbitrary origin.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    warm_up: Duration,
    duration: Duration,
    /// When the first bytes arrived.
    first: Option<Duration>,
    parts: [u64; PARTS],
    last: Duration,
    longest_gap: Duration,
}

impl Meter {
    pub(super) const fn new(warm_up: Duration, duration: Duration) -> Self {
        Self {
            warm_up,
            duration,
            first: None,
            parts: [0; PARTS],
            last: Duration::ZERO,
            longest_gap: Duration::ZERO,
        }
    }

    /// Returns when the measurement begins: not before anything has arrived.
    pub(super) fn begins(&self) -> Option<Duration> {
        Some(self.first? + self.warm_up)
    }

    /// Records an arrival.
    pub(super) fn record(&mut self, now: Duration, bytes: usize) {
        let begins = *self.first.get_or_insert(now) + self.warm_up;
        let ends = begins + self.duration;
        if now < begins || now >= ends {
            // A late arrival ends a gap that began in time.
            self.note_gap(begins, now.min(ends));
            self.last = now;
            return;
        }
        self.note_gap(begins, now);
        self.last = now;
        let part = (now - begins).as_nanos() * PARTS as u128 / self.duration.as_nanos().max(1);
        self.parts[(part as usize).min(PARTS - 1)] += bytes as u64;
    }

    fn note_gap(&mut self, begins: Duration, until: Duration) {
        self.longest_gap = self.longest_gap.max(until.saturating_sub(self.last.max(begins)));
    }

    /// Records that nothing more arrives.
    pub(super) fn end(&mut self) {
        if let Some(begins) = self.begins() {
            self.note_gap(begins, begins + self.duration);
        }
    }

    /// Returns the rate of each part in Mbit/s.
    pub(super) fn rates(&self) -> [f64; PARTS] {
        let seconds = self.duration.as_secs_f64() / PARTS as f64;
        self.parts.map(|bytes| bytes as f64 * 8.0 / 1e6 / seconds)
    }

    /// Returns the longest time without new data during the measurement.
    pub(super) const fn longest_gap(&self) -> Duration {
        self.longest_gap
    }
}
