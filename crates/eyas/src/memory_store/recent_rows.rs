//! The rows of the hosts that races asked for lately, with what has been learnt since.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use eyas_race::evidence::NetworkId;
use eyas_race::memory::{MemoryConfig, MemoryEntry, MemoryKey, learn_rows};
use eyas_race::target::TargetHost;

use super::ObservedOutcome;

/// For how long rows are used before they are read again: another process may have changed them.
const READ_EVERY: Duration = Duration::from_secs(1);
/// The maximum number of hosts whose rows are kept.
const MAX_HOSTS: usize = 256;

pub(super) type Rows = BTreeMap<MemoryKey, MemoryEntry>;

/// Rows of one network.
#[derive(Debug, Default)]
pub(super) struct RecentRows {
    network: Option<NetworkId>,
    hosts: BTreeMap<TargetHost, DatedRows>,
    /// Those about the network itself.
    paths: Option<DatedRows>,
}

#[derive(Debug)]
struct DatedRows {
    read_at: Instant,
    rows: Rows,
}

impl DatedRows {
    fn is_recent(&self) -> bool {
        self.read_at.elapsed() < READ_EVERY
    }
}

impl RecentRows {
    /// Returns the rows of the network, if they were read recently.
    pub(super) fn paths(&self, network: &NetworkId) -> Option<&Rows> {
        let paths = self.paths.as_ref().filter(|paths| paths.is_recent())?;
        (self.network.as_ref() == Some(network)).then_some(&paths.rows)
    }

    /// Returns the rows of this host and of the network, if they were read recently.
    pub(super) fn read_lately(
        &self,
        network: &NetworkId,
        host: &TargetHost,
    ) -> Option<impl Iterator<Item = (&MemoryKey, &MemoryEntry)>> {
        let paths = self.paths(network)?;
        let of_host = self.hosts.get(host).filter(|dated| dated.is_recent())?;
        Some(of_host.rows.iter().chain(paths))
    }

    /// Inserts rows of this host and of the network; the latter are known better if it `has_paths`.
    pub(super) fn insert(
        &mut self,
        network: &NetworkId,
        host: &TargetHost,
        rows: &Rows,
        has_paths: bool,
    ) {
        if self.network.as_ref() != Some(network) {
            *self = Self { network: Some(network.clone()), ..Self::default() };
        }
        if self.hosts.len() >= MAX_HOSTS {
            self.hosts.retain(|_, dated| dated.is_recent());
        }
        if self.hosts.len() >= MAX_HOSTS {
            self.hosts.clear();
        }
        let read_at = Instant::now();
        let dated = |of_host: bool| {
            let rows = rows.iter().filter(|(key, _)| key.host().is_some() == of_host);
            let rows = rows.map(|(key, entry)| (key.clone(), entry.clone())).collect();
            DatedRows { read_at, rows }
        };
        self.hosts.insert(host.clone(), dated(true));
        if !has_paths {
            self.paths = Some(dated(false));
        }
    }

    /// Applies what was learnt, as the file will.
    pub(super) fn learn(&mut self, observation: &ObservedOutcome, config: &MemoryConfig) {
        let ObservedOutcome { evidence, trust, network_name: _ } = observation;
        if self.network.as_ref() != Some(&evidence.network) {
            return;
        }
        let (Some(of_host), Some(paths)) = (self.hosts.get_mut(&evidence.host), &mut self.paths)
        else {
            // What it says about the network depends on what is known about the host.
            *self = Self::default();
            return;
        };
        let (peers, paths) = (&mut of_host.rows, &mut paths.rows);
        let existing = &mut |key: &MemoryKey| peers.get(key).or_else(|| paths.get(key)).cloned();
        let changed = learn_rows(existing, evidence, trust, config);
        for (key, entry) in changed {
            match key.host() {
                Some(_) => peers.insert(key, entry),
                None => paths.insert(key, entry),
            };
        }
        if peers.len() > config.max_rows_per_host {
            // The file keeps the newest.
            self.hosts.remove(&evidence.host);
        }
    }
}
