//! Stores the memory of the races: in an SQLite file shared by several processes, in this process
//! only, or nowhere.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eyas_race::evidence::{Evidence, NetworkId, TrustContext};
use eyas_race::memory::{Memory, MemoryConfig, MemoryRecord, MemoryView};
#[cfg(feature = "encrypted-dns")]
use eyas_race::memory::{MemoryEntry, MemoryKey};
use eyas_race::target::TargetHost;

#[cfg(feature = "sqlite")]
mod file;
#[cfg(feature = "sqlite")]
mod inspection;
#[cfg(feature = "sqlite")]
mod platform;
mod recent;
#[cfg(feature = "sqlite")]
mod recent_rows;
mod secret;
#[cfg(feature = "sqlite")]
mod set_aside;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "sqlite")]
use file::MemoryFile;
use recent::{RecentLearning, WriteTime};
pub(crate) use secret::InstallationSecret;

/// The maximum number of warnings kept for the caller; beyond it, the oldest are dropped.
const MAX_WARNINGS: usize = 32;

/// What earlier races learnt (RFC 9622 §6: cached state). Cheap to clone; clones share the store.
///
/// Its methods never fail: an error of the file becomes a warning, and what is learnt stays in this
/// process. The file amounts to a browsing history, so it is readable by its owner only.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    handle: Arc<StoreHandle>,
}

/// The state that clones share; dropping the last one writes what is still queued.
#[derive(Debug)]
struct StoreHandle(Arc<StoreState>);

impl Drop for StoreHandle {
    fn drop(&mut self) {
        self.0.write_queued();
    }
}

#[derive(Debug)]
struct StoreState {
    config: MemoryConfig,
    is_disabled: bool,
    /// Whether writing waits for the disk.
    writes_to_disk: bool,
    storage: Mutex<StoreBackend>,
    /// What is not yet written; emptied only while holding `storage`, which preserves the order.
    recent: Mutex<RecentLearning>,
    warnings: Mutex<VecDeque<String>>,
}

/// The outcome of an attempt, with facts that the race does not know.
#[derive(Debug)]
pub(crate) struct ObservedOutcome {
    pub(crate) evidence: Evidence,
    /// Whom the attempt trusted.
    pub(crate) trust: TrustContext,
    /// The readable name of the network, if known.
    pub(crate) network_name: Option<String>,
}

/// What has been learnt, for the rows.
#[derive(Debug)]
enum Learning {
    Outcome(ObservedOutcome),
    /// A whole row, which replaces that of the same key.
    #[cfg(feature = "encrypted-dns")]
    Row(MemoryRecord),
}

#[derive(Debug)]
enum StoreBackend {
    Disabled,
    Memory(Memory),
    #[cfg(feature = "sqlite")]
    File(Box<MemoryFile>),
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::in_memory(MemoryConfig::default())
    }
}

impl MemoryStore {
    /// Stores the memory in this SQLite file, which is created with mode 0600 if necessary. What other
    /// processes learn or forget is noticed within a second. A
    /// memory that is damaged or of an unknown version is renamed, with a warning. Anything that is
    /// not a memory (a link, a text file, another program's database, another user's file) is left
    /// alone: there is a warning then, and [`is_persistent`](Self::is_persistent) returns false.
    #[cfg(feature = "sqlite")]
    pub fn open(path: impl AsRef<std::path::Path>) -> Self {
        Self::open_with(path, MemoryConfig::default())
    }

    /// Like [`open`](Self::open), with custom lifetimes and limits.
    #[cfg(feature = "sqlite")]
    pub fn open_with(path: impl AsRef<std::path::Path>, config: MemoryConfig) -> Self {
        let mut warnings = Vec::new();
        let file = MemoryFile::open(path.as_ref(), &config, now(), &mut warnings);
        let store = Self::new(config, StoreBackend::File(Box::new(file)));
        store.inner().warn(warnings);
        store
    }

    /// Keeps the memory until this process exits.
    pub fn in_memory(config: MemoryConfig) -> Self {
        Self::in_memory_with(config, [])
    }

    /// Like [`in_memory`](Self::in_memory), with initial rows, as [`Self::entries`] of another
    /// store returns them.
    pub fn in_memory_with(
        config: MemoryConfig,
        records: impl IntoIterator<Item = MemoryRecord>,
    ) -> Self {
        let mut memory = Memory::new(config.clone());
        for MemoryRecord { key, entry } in records {
            memory.insert(key, entry);
        }
        Self::new(config, StoreBackend::Memory(memory))
    }

    /// Adds a problem that [`Self::warnings`] returns, such as why there is no file.
    #[must_use]
    pub fn with_warning(self, warning: impl Into<String>) -> Self {
        self.inner().warn(vec![warning.into()]);
        self
    }

    /// Stores nothing and knows nothing: private mode.
    pub fn none() -> Self {
        Self::new(MemoryConfig::default(), StoreBackend::Disabled)
    }

    fn new(config: MemoryConfig, storage: StoreBackend) -> Self {
        let writes_to_disk = !matches!(storage, StoreBackend::Disabled | StoreBackend::Memory(_));
        let inner = StoreState {
            config,
            is_disabled: matches!(storage, StoreBackend::Disabled),
            writes_to_disk,
            storage: Mutex::new(storage),
            recent: Mutex::default(),
            warnings: Mutex::default(),
        };
        Self { handle: Arc::new(StoreHandle(Arc::new(inner))) }
    }

    /// Returns whether the memory outlives this process: there is a file, and it can be used.
    pub fn is_persistent(&self) -> bool {
        match &*self.storage() {
            StoreBackend::Disabled | StoreBackend::Memory(_) => false,
            #[cfg(feature = "sqlite")]
            StoreBackend::File(file) => file.is_open(),
        }
    }

    /// Returns the secret for the names in this memory.
    pub(crate) fn secret(&self) -> InstallationSecret {
        match &*self.storage() {
            StoreBackend::Disabled | StoreBackend::Memory(_) => InstallationSecret::for_process(),
            #[cfg(feature = "sqlite")]
            StoreBackend::File(file) => file.secret(),
        }
    }

    /// Returns the configuration.
    pub fn config(&self) -> &MemoryConfig {
        &self.inner().config
    }

    /// Returns every row that has not expired, ordered by key.
    pub fn entries(&self) -> Vec<MemoryRecord> {
        let now = now();
        let mut records = match &mut *self.storage() {
            StoreBackend::Disabled => Vec::new(),
            StoreBackend::Memory(memory) => memory.records().collect(),
            #[cfg(feature = "sqlite")]
            StoreBackend::File(file) => self.unwrap_outcome(file.records()),
        };
        records.retain(|record| !record.entry.is_expired(now, &self.inner().config));
        records
    }

    /// Deletes what is known about this host on every network. Returns the number of rows deleted.
    pub fn forget(&self, host: &TargetHost) -> usize {
        self.change_rows(|storage| match storage {
            StoreBackend::Disabled => 0,
            StoreBackend::Memory(memory) => memory.forget(host),
            #[cfg(feature = "sqlite")]
            StoreBackend::File(file) => self.unwrap_outcome(file.forget(host)),
        })
    }

    /// Deletes everything. A file also gets a new secret, so that the network names of programs
    /// started from now on cannot be linked to those used before.
    pub fn clear(&self) {
        self.change_rows(|storage| match storage {
            StoreBackend::Disabled => {}
            StoreBackend::Memory(memory) => memory.clear(),
            #[cfg(feature = "sqlite")]
            StoreBackend::File(file) => self.unwrap_outcome(file.clear()),
        });
    }

    /// Returns the problems with the memory so far, as text for people. Each is returned once.
    pub fn warnings(&self) -> Vec<String> {
        // Writing what is still queued may fail, too.
        self.inner().write_queued();
        lock(&self.inner().warnings).drain(..).collect()
    }

    /// Returns what a race with this host on this network, under this trust, needs to know.
    pub fn view(&self, network: &NetworkId, host: &TargetHost, trust: &TrustContext) -> MemoryView {
        let now = now();
        #[cfg(feature = "sqlite")]
        if self.inner().writes_to_disk {
            return self.inner().file_view(network, host, trust, now);
        }
        match &mut *self.storage() {
            StoreBackend::Disabled => MemoryView::empty(),
            StoreBackend::Memory(memory) => memory.view(network, host, trust, now),
            #[cfg(feature = "sqlite")]
            StoreBackend::File(_) => MemoryView::empty(),
        }
    }

    /// Stores one outcome that was seen under this trust.
    pub fn learn(&self, evidence: &Evidence, trust: &TrustContext) {
        let (evidence, trust) = (evidence.clone(), trust.clone());
        let observation = ObservedOutcome { evidence, trust, network_name: None };
        self.change_rows(|storage| self.inner().learn(storage, &[Learning::Outcome(observation)]));
    }

    /// Returns whether the store ignores everything that is reported to it.
    pub(crate) fn is_disabled(&self) -> bool {
        self.inner().is_disabled
    }

    /// Stores one outcome without waiting for the disk. It is visible in this store at once. Outcomes in quick
    /// succession are written together.
    pub(crate) fn learn_in_background(&self, observation: ObservedOutcome) {
        self.add_in_background(Learning::Outcome(observation));
    }

    /// Stores a row as it is, as [`Self::learn_in_background`] does.
    #[cfg(feature = "encrypted-dns")]
    pub(crate) fn insert_in_background(&self, record: MemoryRecord) {
        self.add_in_background(Learning::Row(record));
    }

    /// Returns a row, unless it has expired. It waits for the disk.
    #[cfg(feature = "encrypted-dns")]
    pub(crate) fn row(&self, key: &MemoryKey) -> Option<MemoryEntry> {
        let entry = match &mut *self.storage() {
            StoreBackend::Disabled => None,
            StoreBackend::Memory(memory) => memory.row(key).cloned(),
            #[cfg(feature = "sqlite")]
            StoreBackend::File(file) => self.unwrap_outcome(file.row(key)),
        };
        entry.filter(|entry| !entry.is_expired(now(), &self.inner().config))
    }

    fn add_in_background(&self, learning: Learning) {
        let inner = self.inner();
        if inner.is_disabled {
            return;
        }
        let runtime = tokio::runtime::Handle::try_current().ok().filter(|_| inner.writes_to_disk);
        let when = {
            let mut recent = lock(&inner.recent);
            recent.add(learning, &inner.config);
            if runtime.is_some() { recent.schedule_write() } else { WriteTime::AtOnce }
        };
        match (runtime, when) {
            (Some(runtime), WriteTime::After(time)) => {
                let writer = ScheduledWriter(Arc::clone(inner));
                drop(runtime.spawn(async move {
                    tokio::time::sleep(time).await;
                    drop(tokio::task::spawn_blocking(move || writer.write()));
                }));
            }
            (Some(_), WriteTime::Scheduled) => {}
            (_, WriteTime::AtOnce) | (None, _) => inner.write_queued(),
        }
    }

    /// Waits until everything learnt so far is written.
    pub(crate) async fn flush(&self) {
        let inner = Arc::clone(self.inner());
        if inner.writes_to_disk && !inner.is_flushed() {
            // If the runtime is being shut down, the last handle writes.
            let _ = tokio::task::spawn_blocking(move || inner.write_queued()).await;
        }
    }

    fn inner(&self) -> &Arc<StoreState> {
        &self.handle.0
    }

    /// Returns the stored rows, including everything learnt so far.
    fn storage(&self) -> MutexGuard<'_, StoreBackend> {
        self.inner().write_and_lock()
    }

    /// Changes the stored rows directly.
    fn change_rows<T>(&self, change: impl FnOnce(&mut StoreBackend) -> T) -> T {
        let mut storage = self.storage();
        let changed = change(&mut storage);
        lock(&self.inner().recent).forget_rows();
        changed
    }

    #[cfg(feature = "sqlite")]
    fn unwrap_outcome<T>(&self, outcome: file::WithWarnings<T>) -> T {
        self.inner().unwrap_outcome(outcome)
    }
}

/// Writes what is queued, later.
struct ScheduledWriter(Arc<StoreState>);

impl ScheduledWriter {
    fn write(self) {
        let state = Arc::clone(&self.0);
        // What is learnt from now on needs another one.
        drop(self);
        state.write_queued();
    }
}

impl Drop for ScheduledWriter {
    fn drop(&mut self) {
        // Also where its runtime ends first.
        lock(&self.0.recent).end_schedule();
    }
}

impl StoreState {
    fn write_queued(&self) {
        drop(self.write_and_lock());
    }

    /// Returns whether nothing is queued or being written: a writer holds `storage` from before it
    /// takes something from the queue until it is on disk.
    fn is_flushed(&self) -> bool {
        self.storage.try_lock().is_ok_and(|_storage| lock(&self.recent).is_empty())
    }

    fn write_and_lock(&self) -> MutexGuard<'_, StoreBackend> {
        let mut storage = lock(&self.storage);
        while self.write_some(&mut storage) {}
        storage
    }

    /// Writes what is queued. Returns whether there was something.
    fn write_some(&self, storage: &mut StoreBackend) -> bool {
        let queued = lock(&self.recent).drain_queue();
        if !queued.is_empty() {
            self.learn(storage, &queued);
        }
        !queued.is_empty()
    }

    fn learn(&self, storage: &mut StoreBackend, learnt: &[Learning]) {
        match storage {
            StoreBackend::Disabled => {}
            StoreBackend::Memory(memory) => {
                for learning in learnt {
                    match learning {
                        Learning::Outcome(ObservedOutcome { evidence, trust, network_name }) => {
                            memory.learn(evidence, trust);
                            if let Some(name) = network_name {
                                memory.name_network(&evidence.network, name, evidence.at);
                            }
                        }
                        #[cfg(feature = "encrypted-dns")]
                        Learning::Row(MemoryRecord { key, entry }) => {
                            memory.insert(key.clone(), entry.clone());
                        }
                    }
                }
            }
            #[cfg(feature = "sqlite")]
            StoreBackend::File(file) => self.unwrap_outcome(file.learn(learnt, &self.config)),
        }
    }

    /// Returns what a race needs to know from the file, which is read only for hosts that no race asked for lately.
    #[cfg(feature = "sqlite")]
    fn file_view(
        &self,
        network: &NetworkId,
        host: &TargetHost,
        trust: &TrustContext,
        now: Duration,
    ) -> MemoryView {
        let known = lock(&self.recent).rows(network, host);
        if let Some(rows) = known {
            return MemoryView::from_rows(rows, trust, now, &self.config);
        }
        let mut storage = lock(&self.storage);
        loop {
            // Locked until the rows are kept, so that they lack nothing that is learnt meanwhile.
            let mut recent = lock(&self.recent);
            if !recent.concerns_others(network, host) {
                drop(recent);
                self.write_some(&mut storage);
                continue;
            }
            let StoreBackend::File(file) = &mut *storage else { return MemoryView::empty() };
            let rows = self.unwrap_outcome(file.rows_for(network, host));
            recent.keep_rows(network, host, &rows);
            return MemoryView::from_rows(rows, trust, now, &self.config);
        }
    }

    #[cfg(feature = "sqlite")]
    fn unwrap_outcome<T>(&self, outcome: file::WithWarnings<T>) -> T {
        self.warn(outcome.warnings);
        outcome.value
    }

    fn warn(&self, new: Vec<String>) {
        let mut warnings = lock(&self.warnings);
        for warning in new {
            tracing::warn!("{warning}");
            if warnings.len() >= MAX_WARNINGS {
                warnings.pop_front();
            }
            warnings.push_back(warning);
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the wall-clock time as used by the memory.
pub(crate) fn now() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(all(test, feature = "sqlite"))]
mod tests;
