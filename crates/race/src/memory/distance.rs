//! Distances to hosts over one path: the most recent round-trip times.
//!
//! The distances to other hosts on a network give at least a hint for a host that has not been
//! contacted yet, especially behind a slow access link.

use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

/// The latest round-trip times to the hosts heard most recently over one path.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct PathDistances {
    /// In the order in which they were last heard, most recent last.
    hosts: Vec<HostDistance>,
}

/// The round trip to one host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct HostDistance {
    /// A hash of the host's name, to tell hosts apart.
    host: u64,
    round_trip: Duration,
}

impl PathDistances {
    /// The maximum number of hosts per path.
    pub const MAX_HOSTS: usize = 8;
    /// The minimum number of hosts for a prediction about others.
    const MIN_HOSTS: usize = 3;

    /// Returns these samples with this host's, if a round-trip time was measured.
    #[must_use]
    pub(super) fn and(mut self, host: u64, round_trip: Option<Duration>) -> Self {
        let Some(round_trip) = round_trip else { return self };
        self.forget(host);
        let surplus = (self.hosts.len() + 1).saturating_sub(Self::MAX_HOSTS);
        self.hosts.drain(..surplus);
        self.hosts.push(HostDistance { host, round_trip });
        self
    }

    /// Removes this host.
    pub(super) fn forget(&mut self, host: u64) {
        self.hosts.retain(|known| known.host != host);
    }

    /// Returns the number of hosts.
    pub fn len(&self) -> usize {
        self.hosts.len()
    }

    /// Returns whether there are no hosts.
    pub fn is_empty(&self) -> bool {
        self.hosts.is_empty()
    }

    /// Returns the longest round-trip time of all these paths, if enough hosts are known.
    pub(super) fn longest<'a>(paths: impl Iterator<Item = &'a Self>) -> Option<Duration> {
        let mut hosts: Vec<u64> = Vec::new();
        let mut longest = Duration::ZERO;
        for known in paths.flat_map(|path| path.hosts.iter().take(Self::MAX_HOSTS)) {
            longest = longest.max(known.round_trip);
            hosts.push(known.host);
        }
        hosts.sort_unstable();
        hosts.dedup();
        (hosts.len() >= Self::MIN_HOSTS).then_some(longest)
    }
}
