//! The race's clock: time since the UNIX epoch, but monotonic.

use std::time::{Duration, Instant};

/// The wall-clock time at the start, advanced by the monotonic clock. So observations can be
/// compared with those of other processes, and setting the wall clock does not disturb a race.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RaceClock {
    epoch: Duration,
    origin: Instant,
}

impl RaceClock {
    pub(crate) fn start() -> Self {
        Self { epoch: crate::memory_store::now(), origin: Instant::now() }
    }

    /// Returns when the clock was started.
    pub(crate) fn origin(&self) -> Instant {
        self.origin
    }

    pub(crate) fn now(&self) -> Duration {
        self.epoch.saturating_add(self.origin.elapsed())
    }

    /// Returns the time from the start until `time`.
    pub(crate) fn since_start(&self, time: Duration) -> Duration {
        time.saturating_sub(self.epoch)
    }

    /// Converts a time of the race to an instant.
    pub(crate) fn instant(&self, time: Duration) -> Instant {
        let elapsed = self.since_start(time);
        self.origin.checked_add(elapsed).unwrap_or(self.origin)
    }
}
