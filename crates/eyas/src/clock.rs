//! The race's clock: time since the UNIX epoch, but monotonic.

use std::time::{Duration, Instant};

/// The wall clock of one moment, carried on by the monotonic one, so that what is learnt can be
/// compared with what other processes learnt and a clock that is set disturbs no race.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    epoch: Duration,
    origin: Instant,
}

impl Clock {
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

    /// Returns how long after the start a time is.
    pub(crate) fn since_start(&self, time: Duration) -> Duration {
        time.saturating_sub(self.epoch)
    }

    /// Converts a time of the race to an instant.
    pub(crate) fn instant(&self, time: Duration) -> Instant {
        let since = self.since_start(time);
        self.origin.checked_add(since).unwrap_or(self.origin)
    }
}
