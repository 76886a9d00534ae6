//! The whole memory as a value, with limits and expiry.

use alloc::{collections::BTreeMap, vec::Vec};
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    MemoryConfig, MemoryEntry, MemoryKey, MemorySubject, MemoryView, forget_row, learn_rows,
    name_row,
};
use crate::evidence::{Evidence, NetworkId, TrustContext};
use crate::target::TargetHost;

/// One row with its key: the unit of storage and display.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemoryRecord {
    /// The subject of the row.
    pub key: MemoryKey,
    /// What is known about it.
    pub entry: MemoryEntry,
}

/// Everything learnt, on every network.
#[derive(Clone, Debug, Default)]
pub struct Memory {
    config: MemoryConfig,
    rows: BTreeMap<MemoryKey, MemoryEntry>,
}

impl Memory {
    /// Creates an empty memory.
    pub fn new(config: MemoryConfig) -> Self {
        Self { config, rows: BTreeMap::new() }
    }

    /// Returns the configuration.
    pub fn config(&self) -> &MemoryConfig {
        &self.config
    }

    /// Stores one outcome observed under this trust.
    pub fn learn(&mut self, evidence: &Evidence, trust: &TrustContext) {
        let existing = &mut |key: &MemoryKey| self.rows.get(key).cloned();
        let changed = learn_rows(existing, evidence, trust, &self.config);
        for (key, entry) in changed {
            self.insert(key, entry);
        }
    }

    /// Stores a readable name of a network.
    pub fn name_network(&mut self, network: &NetworkId, name: &str, now: Duration) {
        let existing = self.rows.get(&MemoryKey::network(network));
        if let Some((key, entry)) = name_row(existing, network, name, now) {
            self.insert(key, entry);
        }
    }

    /// Inserts a row unchanged, for instance one read from a file, within the limits.
    pub fn insert(&mut self, key: MemoryKey, entry: MemoryEntry) {
        if !self.rows.contains_key(&key) {
            match &key.subject {
                MemorySubject::Peer { host, .. } => self.evict_for_host(&key.network, host),
                MemorySubject::Resolver { .. } => self.evict_for_resolver(&key.network),
                MemorySubject::Path { .. } | MemorySubject::Network => {}
            }
            self.evict();
        }
        self.rows.insert(key, entry);
    }

    /// Returns the row with this key.
    pub fn row(&self, key: &MemoryKey) -> Option<&MemoryEntry> {
        self.rows.get(key)
    }

    /// Returns what a race with this host on this network, under this trust, needs to know.
    pub fn view(
        &self,
        network: &NetworkId,
        host: &TargetHost,
        trust: &TrustContext,
        now: Duration,
    ) -> MemoryView {
        let rows = self.rows_of_host(network, host).chain(self.paths_of(network));
        MemoryView::of_rows(rows, trust, now, &self.config)
    }

    /// Returns every row, ordered by key.
    pub fn records(&self) -> impl Iterator<Item = MemoryRecord> + '_ {
        self.rows.iter().map(|(key, entry)| MemoryRecord { key: key.clone(), entry: entry.clone() })
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Returns whether the memory is empty.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// Deletes what is known about this host on every network, including that it was silent.
    /// Returns the number of rows deleted.
    pub fn forget(&mut self, host: &TargetHost) -> usize {
        let before = self.rows.len();
        let rows = core::mem::take(&mut self.rows);
        self.rows = rows
            .into_iter()
            .filter_map(|(key, entry)| forget_row(&key, entry, host).map(|entry| (key, entry)))
            .collect();
        before - self.rows.len()
    }

    /// Deletes everything.
    pub fn clear(&mut self) {
        self.rows.clear();
    }

    /// Deletes the rows that have expired at `now`.
    pub fn expire(&mut self, now: Duration) {
        self.rows.retain(|_, entry| !entry.is_expired(now, &self.config));
    }

    fn rows_of_host<'a>(
        &'a self,
        network: &'a NetworkId,
        host: &'a TargetHost,
    ) -> impl Iterator<Item = (&'a MemoryKey, &'a MemoryEntry)> + Clone {
        self.rows.range(MemoryKey::first_of_host(network, host)..).take_while(move |(key, _)| {
            let is_peer = matches!(key.subject, MemorySubject::Peer { .. });
            is_peer && key.network == *network && key.host() == Some(host)
        })
    }

    fn paths_of<'a>(
        &'a self,
        network: &'a NetworkId,
    ) -> impl Iterator<Item = (&'a MemoryKey, &'a MemoryEntry)> {
        self.rows.range(MemoryKey::first_path(network)..).take_while(move |(key, _)| {
            key.network == *network && matches!(key.subject, MemorySubject::Path { .. })
        })
    }

    fn evict_for_host(&mut self, network: &NetworkId, host: &TargetHost) {
        let rows = self.rows_of_host(network, host);
        if let Some(oldest) = oldest_of_too_many(rows, &self.config) {
            self.rows.remove(&oldest);
        }
    }

    fn evict_for_resolver(&mut self, network: &NetworkId) {
        let is_one = |key: &MemoryKey| {
            key.network == *network && matches!(key.subject, MemorySubject::Resolver { .. })
        };
        let rows = self.rows.iter().filter(|(key, _)| is_one(key));
        if let Some(oldest) = oldest_of_too_many(rows, &self.config) {
            self.rows.remove(&oldest);
        }
    }

    /// Evicts an eighth at a time, so that a full memory does not search for its oldest row on
    /// every insertion.
    fn evict(&mut self) {
        let limit = self.config.max_rows.max(1);
        if self.rows.len() < limit {
            return;
        }
        let mut by_age: Vec<(Duration, MemoryKey)> =
            self.rows.iter().map(|(key, entry)| (entry.updated_at(), key.clone())).collect();
        by_age.sort_unstable();
        for (_, key) in by_age.into_iter().take((limit / 8).max(1)) {
            self.rows.remove(&key);
        }
    }
}

/// Returns the oldest of these rows if there is no place for one more among them.
fn oldest_of_too_many<'a>(
    rows: impl Iterator<Item = (&'a MemoryKey, &'a MemoryEntry)> + Clone,
    config: &MemoryConfig,
) -> Option<MemoryKey> {
    if rows.clone().count() < config.max_rows_per_host.max(1) {
        return None;
    }
    let oldest = rows.min_by_key(|(_, entry)| entry.updated_at());
    oldest.map(|(key, _)| key.clone())
}
