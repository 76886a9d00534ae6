//! What arrived, and when.

use std::time::Duration;

/// Equal parts of the time that is measured; each is a trial.
pub(super) const PARTS: usize = 12;

/// Notes what arrives at the receiving application. Times count from any one moment.
#[derive(Clone, Debug)]
pub(super) struct Meter {
    warm_up: Duration,
    duration: Duration,
    /// When the first bytes came.
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

    /// When measuring begins; not before anything came.
    pub(super) fn begins(&self) -> Option<Duration> {
        Some(self.first? + self.warm_up)
    }

    /// Something arrived.
    pub(super) fn take(&mut self, now: Duration, bytes: usize) {
        let begins = *self.first.get_or_insert(now) + self.warm_up;
        let ends = begins + self.duration;
        if now < begins || now >= ends {
            // What is late ends a gap that began in time.
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

    /// Nothing more arrives.
    pub(super) fn end(&mut self) {
        if let Some(begins) = self.begins() {
            self.note_gap(begins, begins + self.duration);
        }
    }

    /// Mbit/s in each part.
    pub(super) fn rates(&self) -> [f64; PARTS] {
        let seconds = self.duration.as_secs_f64() / PARTS as f64;
        self.parts.map(|bytes| bytes as f64 * 8.0 / 1e6 / seconds)
    }

    /// The longest time without anything new while it was measured.
    pub(super) const fn longest_gap(&self) -> Duration {
        self.longest_gap
    }
}
