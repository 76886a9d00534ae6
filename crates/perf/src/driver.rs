//! What both ends do with sockets.
//!
//! | file | purpose |
//! | --- | --- |
//! | `channel` | channels over each transport |
//! | `control` | frames on a channel |
//! | `data` | data on channels, as fast as it goes or at a rate |
//! | `gauge` | the counters of the process and of the transport |

pub(crate) mod channel;
pub(crate) mod control;
pub(crate) mod data;
pub(crate) mod gauge;

use std::time::Duration;

use tokio::time::Instant;

/// The time since the start of a test, in whole microseconds, as frames have it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TestClock(Instant);

impl TestClock {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn now(self) -> Duration {
        self.time(Instant::now())
    }

    /// Returns the time of an instant.
    pub(crate) fn time(self, instant: Instant) -> Duration {
        let micros = instant.saturating_duration_since(self.0).as_micros();
        Duration::from_micros(u64::try_from(micros).unwrap_or(u64::MAX))
    }

    /// Waits until this time.
    pub(crate) async fn sleep_until(self, time: Duration) {
        tokio::time::sleep_until(self.0 + time).await;
    }
}
