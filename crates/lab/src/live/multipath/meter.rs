//! Records what arrived, and when.

use std::time::Duration;

use crate::run::with_waiting_keystrokes;

/// The number of equal parts of the measured time; each is a trial.
pub(super) const PARTS: usize = 12;

/// Records what arrives at the receiving application. Times are relative to an arbitrary origin.
#[derive(Clone, Debug)]
pub(super) struct PayloadMeter {
    warm_up: Duration,
    duration: Duration,
    /// When the first bytes arrived.
    first: Option<Duration>,
    parts: [u64; PARTS],
    last: Duration,
    longest_gap: Duration,
    /// What arrived at the sender, if both send.
    back: [u64; PARTS],
    /// The delays of keystrokes, in ms.
    keystrokes: Vec<f64>,
    /// When the last keystroke that has arrived fell.
    last_keystroke: Option<Duration>,
}

impl PayloadMeter {
    pub(super) const fn new(warm_up: Duration, duration: Duration) -> Self {
        Self {
            warm_up,
            duration,
            first: None,
            parts: [0; PARTS],
            last: Duration::ZERO,
            longest_gap: Duration::ZERO,
            back: [0; PARTS],
            keystrokes: Vec::new(),
            last_keystroke: None,
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
        self.parts[self.part(now - begins)] += bytes as u64;
    }

    /// Records an arrival at the sender.
    pub(super) fn record_back(&mut self, now: Duration, bytes: usize) {
        if let Some(time) = self.time_measured(now) {
            self.back[self.part(time)] += bytes as u64;
        }
    }

    /// Records the arrival of a keystroke that fell at this time.
    pub(super) fn record_keystroke(&mut self, now: Duration, fell: Duration) {
        self.last_keystroke = Some(fell);
        if self.time_measured(now).is_some() {
            self.keystrokes.push(now.saturating_sub(fell).as_secs_f64() * 1e3);
        }
    }

    /// Returns the time since the measurement began, if it has begun and is not over.
    fn time_measured(&self, now: Duration) -> Option<Duration> {
        now.checked_sub(self.begins()?).filter(|time| *time < self.duration)
    }

    fn part(&self, time: Duration) -> usize {
        let part = time.as_nanos() * PARTS as u128 / self.duration.as_nanos().max(1);
        (part as usize).min(PARTS - 1)
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
        self.megabits(self.parts)
    }

    /// Returns the rate of each part at the sender, in Mbit/s.
    pub(super) fn back_rates(&self) -> [f64; PARTS] {
        self.megabits(self.back)
    }

    fn megabits(&self, parts: [u64; PARTS]) -> [f64; PARTS] {
        let seconds = self.duration.as_secs_f64() / PARTS as f64;
        parts.map(|bytes| bytes as f64 * 8.0 / 1e6 / seconds)
    }

    /// Returns the delays of keystrokes, of which one falls each time this has passed, in ms.
    pub(super) fn keystrokes(&self, every: Duration) -> Vec<f64> {
        let begins = self.begins().unwrap_or_default();
        let last = self.last_keystroke.unwrap_or(begins);
        let waiting = (begins + self.duration).saturating_sub(last);
        with_waiting_keystrokes(self.keystrokes.clone(), waiting, every)
    }

    /// Returns the longest time without new data during the measurement.
    pub(super) const fn longest_gap(&self) -> Duration {
        self.longest_gap
    }
}
