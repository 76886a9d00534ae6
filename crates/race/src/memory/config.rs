//! How long evidence is valid, and how much of it is kept.

use core::time::Duration;

use serde::{Deserialize, Serialize};

/// The parameters of the memory. The defaults follow NEAT for successes and Chromium's
/// `broken_alternative_services` for failures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct MemoryConfig {
    /// How long a success counts in favour of a candidate: 10 min.
    pub good_for: Duration,
    /// The first back-off after a failure: 5 min.
    pub bad_first: Duration,
    /// The back-off after a silence that was cut short ([`FailureDoubt::CutShort`]): 30 s. A single lost
    /// packet looks the same, and must not exclude the preferred transport for minutes; still, the
    /// next race goes straight to what works. A second such silence in a row counts as a failure.
    ///
    /// [`FailureDoubt::CutShort`]: crate::evidence::FailureDoubt::CutShort
    pub bad_doubtful: Duration,
    /// The upper limit of the doubling back-off: 2 days.
    pub bad_max: Duration,
    /// If set, the fixed length of every back-off, regardless of the number of failures.
    pub retest_after: Option<Duration>,
    /// How many hosts in a row must be silent before the network is assumed to drop a transport,
    /// family and port: 3. One silent host says nothing about the network.
    pub silent_hosts: usize,
    /// How long one silent host counts towards that: 1 h.
    pub silent_for: Duration,
    /// One in this many races probes, in the background, what the network is assumed to drop: 4.
    pub probe_one_in: u32,
    /// How long a row is kept after its last evidence: 14 days.
    pub keep_for: Duration,
    /// The maximum number of rows; the oldest are deleted first: 10,000.
    pub max_rows: usize,
    /// The maximum number of rows of one host on one network, and of those about resolvers there; the oldest are deleted
    /// first: 64.
    pub max_rows_per_host: usize,
}

impl Default for MemoryConfig {
    fn default() -> Self {
        Self {
            good_for: Duration::from_mins(10),
            bad_first: Duration::from_mins(5),
            bad_doubtful: Duration::from_secs(30),
            bad_max: Duration::from_hours(48),
            retest_after: None,
            silent_hosts: 3,
            silent_for: Duration::from_hours(1),
            probe_one_in: 4,
            keep_for: Duration::from_hours(14 * 24),
            max_rows: 10_000,
            max_rows_per_host: 64,
        }
    }
}

impl MemoryConfig {
    /// Returns how long a candidate is avoided after this many consecutive failures; 0 stands for a
    /// doubtful failure.
    pub fn back_off(&self, strikes: u32) -> Duration {
        if let Some(fixed) = self.retest_after {
            return fixed;
        }
        if strikes == 0 {
            return self.bad_doubtful.min(self.bad_first);
        }
        let doublings = strikes.saturating_sub(1).min(31);
        self.bad_first.saturating_mul(1 << doublings).min(self.bad_max.max(self.bad_first))
    }
}
