//! When a load on a server is measured, and how often the server is sampled.

use std::time::Duration;

use super::error::LiveSetupError;

/// The times of sampling the server.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(all(target_os = "linux", feature = "live")),
    expect(dead_code, reason = "checked everywhere, but run only on Linux")
)]
pub(crate) struct LoadTimes {
    /// The duration of the warm-up.
    pub(crate) warm_up: Duration,
    /// The duration of the measurement.
    pub(crate) duration: Duration,
    /// The time between two samples.
    pub(crate) sample: Duration,
}

impl LoadTimes {
    /// Returns what is invalid, for a load with this rate per second.
    pub(crate) fn check(self, rate: f64) -> Result<(), LiveSetupError> {
        if !(rate.is_finite() && rate > 0.0) {
            return Err(LiveSetupError::Rate);
        }
        if self.sample.is_zero() || self.duration < self.sample {
            return Err(LiveSetupError::Duration);
        }
        Ok(())
    }

    /// Returns the number of samples after the first.
    #[cfg(all(target_os = "linux", feature = "live"))]
    pub(crate) fn samples(self) -> u32 {
        let samples = self.duration.as_nanos() / self.sample.as_nanos().max(1);
        u32::try_from(samples).unwrap_or(u32::MAX)
    }
}
