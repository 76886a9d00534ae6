//! How long evidence speaks, and how much of it is kept.

use core::time::Duration;

use serde::{Deserialize, Serialize};

/// The numbers of the memory. The defaults follow NEAT for good news and Chromium's
/// `broken_alternative_services` for bad news.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Config {
    /// How long a success speaks for a candidate: 10 min.
    pub good_for: Duration,
    /// The first back-off after a failure: 5 min.
    pub bad_first: Duration,
    /// The back-off after a silence that was cut short ([`Doubt::CutShort`]): 30 s. One lost
    /// packet looks the same, and must not keep the most wanted transport out for minutes; still
    /// the next race goes straight to what works. The second such silence in a row is no chance.
    ///
    /// [`Doubt::CutShort`]: crate::evidence::Doubt::CutShort
    pub bad_doubtful: Duration,
    /// What the back-off doubles up to: 2 days.
    pub bad_max: Duration,
    /// If set, every back-off lasts this long, whatever the number of failures.
    pub retest_after: Option<Duration>,
    /// How many hosts in a row must be silent before the network is held to swallow a transport,
    /// family and port: 3. One silent host says nothing about the network.
    pub silent_hosts: usize,
    /// How long one silent host counts towards that: 1 h.
    pub silent_for: Duration,
    /// One race in so many tries, in the background, what the network is held to swallow: 4.
    pub probe_one_in: u32,
    /// How long a row is kept after its last evidence: 14 days.
    pub keep_for: Duration,
    /// Rows kept in all; the oldest go first: 10,000.
    pub max_rows: usize,
    /// Rows kept of one host on one network; the oldest go first: 64.
    pub max_rows_per_host: usize,
}

impl Default for Config {
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

impl Config {
    /// How long a candidate is left alone after so many failures in a row; none is a failure that
    /// is in doubt.
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
