//! When a load on a server counts, and how often the server is looked at meanwhile.

use std::time::Duration;

/// When the server is looked at.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(
    not(all(target_os = "linux", feature = "load")),
    expect(dead_code, reason = "checked everywhere, run on Linux alone")
)]
pub(crate) struct Times {
    /// Before anything counts.
    pub(crate) warm_up: Duration,
    /// For how long it counts.
    pub(crate) duration: Duration,
    /// From one look to the next.
    pub(crate) sample: Duration,
}

impl Times {
    /// What makes no sense of them and of a load of so many requests a second, in words.
    pub(crate) fn check(self, rate: f64) -> Result<(), String> {
        if !(rate.is_finite() && rate > 0.0) {
            return Err("live.rate: above 0 requests a second".to_owned());
        }
        if self.sample.is_zero() || self.duration < self.sample {
            return Err("live.duration: at least one live.sample".to_owned());
        }
        Ok(())
    }

    /// How many looks there are after the first.
    #[cfg(all(target_os = "linux", feature = "load"))]
    pub(crate) fn samples(self) -> u32 {
        let samples = self.duration.as_nanos() / self.sample.as_nanos().max(1);
        u32::try_from(samples).unwrap_or(u32::MAX)
    }
}
