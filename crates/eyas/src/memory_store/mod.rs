//! Stores the memory of the races: in an SQLite file shared by several processes, in this process
//! only, or nowhere.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eyas_race::evidence::{Evidence, NetworkId, Trust};
use eyas_race::memory::{Config, Memory, Record, View};
use eyas_race::target::Host;

#[cfg(feature = "sqlite")]
mod file;
#[cfg(feature = "sqlite")]
mod place;
mod secret;
#[cfg(feature = "sqlite")]
mod set_aside;
#[cfg(feature = "sqlite")]
mod sqlite;

#[cfg(feature = "sqlite")]
use file::File;
pub(crate) use secret::Secret;

/// Warnings kept for the caller; the oldest go first.
#[cfg(feature = "sqlite")]
const MAX_WARNINGS: usize = 32;

/// The maximum number of outcomes waiting to be written; beyond it, learning waits for the disk.
const MAX_QUEUED: usize = 256;

/// What earlier races learnt (RFC 9622 §6: cached state). Cheap to clone; clones share the store.
///
/// Its methods never fail: an error of the file becomes a warning, and what is learnt stays in this
/// process. The file amounts to a browsing history, so it is readable by its owner only.
#[derive(Clone, Debug)]
pub struct MemoryStore {
    handle: Arc<Handle>,
}

/// The state that clones share; the last one writes what is still pending.
#[derive(Debug)]
struct Handle(Arc<Inner>);

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.write_queued();
    }
}

#[derive(Debug)]
struct Inner {
    config: Config,
    keeps_nothing: bool,
    /// Whether writing waits for a disk.
    is_slow: bool,
    kept: Mutex<Kept>,
    /// Learnt and not yet written; emptied only while holding `kept`, which preserves the order.
    queued: Mutex<VecDeque<Lesson>>,
    warnings: Mutex<VecDeque<String>>,
}

/// One outcome, with the facts that a race does not know.
#[derive(Debug)]
pub(crate) struct Lesson {
    pub(crate) evidence: Evidence,
    /// Whom the attempt trusted.
    pub(crate) trust: Trust,
    /// What people call the network, if that is known.
    pub(crate) network_name: Option<String>,
}

#[derive(Debug)]
enum Kept {
    Nowhere,
    Here(Memory),
    #[cfg(feature = "sqlite")]
    File(Box<File>),
}

impl Default for MemoryStore {
    fn default() -> Self {
        Self::in_memory(Config::default())
    }
}

impl MemoryStore {
    /// Stores the memory in this SQLite file, which is created with mode 0600 if necessary. A
    /// memory that is damaged or of an unknown version is renamed, with a warning. Anything that is
    /// not a memory (a link, a text file, another program's database, another user's file) is left
    /// alone: there is a warning then, and [`is_persistent`](Self::is_persistent) returns false.
    #[cfg(feature = "sqlite")]
    pub fn open(path: impl AsRef<std::path::Path>) -> Self {
        Self::open_with(path, Config::default())
    }

    /// Like [`open`](Self::open), with custom lifetimes and limits.
    #[cfg(feature = "sqlite")]
    pub fn open_with(path: impl AsRef<std::path::Path>, config: Config) -> Self {
        let mut warnings = Vec::new();
        let file = File::open(path.as_ref(), &config, now(), &mut warnings);
        let store = Self::new(config, Kept::File(Box::new(file)));
        store.inner().warn(warnings);
        store
    }

    /// Keeps the memory until this process exits.
    pub fn in_memory(config: Config) -> Self {
        Self::in_memory_with(config, [])
    }

    /// Like [`in_memory`](Self::in_memory), with initial rows, as [`Self::entries`] of another
    /// store returns them.
    pub fn in_memory_with(config: Config, records: impl IntoIterator<Item = Record>) -> Self {
        let mut memory = Memory::new(config.clone());
        for Record { key, entry } in records {
            memory.insert(key, entry);
        }
        Self::new(config, Kept::Here(memory))
    }

    /// Stores nothing and knows nothing: private mode.
    pub fn none() -> Self {
        Self::new(Config::default(), Kept::Nowhere)
    }

    fn new(config: Config, kept: Kept) -> Self {
        let is_slow = !matches!(kept, Kept::Nowhere | Kept::Here(_));
        let inner = Inner {
            config,
            keeps_nothing: matches!(kept, Kept::Nowhere),
            is_slow,
            kept: Mutex::new(kept),
            queued: Mutex::default(),
            warnings: Mutex::default(),
        };
        Self { handle: Arc::new(Handle(Arc::new(inner))) }
    }

    /// Returns whether the memory outlives this process: there is a file, and it can be used.
    pub fn is_persistent(&self) -> bool {
        match &*self.kept() {
            Kept::Nowhere | Kept::Here(_) => false,
            #[cfg(feature = "sqlite")]
            Kept::File(file) => file.is_open(),
        }
    }

    /// Returns the secret for names that belong to this memory.
    pub(crate) fn secret(&self) -> Secret {
        match &*self.kept() {
            Kept::Nowhere | Kept::Here(_) => Secret::of_process(),
            #[cfg(feature = "sqlite")]
            Kept::File(file) => file.secret(),
        }
    }

    /// Returns the configuration.
    pub fn config(&self) -> &Config {
        &self.inner().config
    }

    /// Returns every row that has not expired, ordered by key.
    pub fn entries(&self) -> Vec<Record> {
        let now = now();
        let mut records = match &mut *self.kept() {
            Kept::Nowhere => Vec::new(),
            Kept::Here(memory) => memory.records().collect(),
            #[cfg(feature = "sqlite")]
            Kept::File(file) => self.heed(file.records()),
        };
        records.retain(|record| !record.entry.is_expired(now, &self.inner().config));
        records
    }

    /// Deletes what is known about this host on every network. Returns the number of rows deleted.
    pub fn forget(&self, host: &Host) -> usize {
        match &mut *self.kept() {
            Kept::Nowhere => 0,
            Kept::Here(memory) => memory.forget(host),
            #[cfg(feature = "sqlite")]
            Kept::File(file) => self.heed(file.forget(host)),
        }
    }

    /// Deletes everything. A file also gets a new secret, so that the network names of programs
    /// started from now on cannot be linked to those used before.
    pub fn clear(&self) {
        match &mut *self.kept() {
            Kept::Nowhere => {}
            Kept::Here(memory) => memory.clear(),
            #[cfg(feature = "sqlite")]
            Kept::File(file) => self.heed(file.clear()),
        }
    }

    /// Returns the problems with the file so far, as text for people. Each is returned once.
    pub fn warnings(&self) -> Vec<String> {
        // What is still to be written may go wrong too.
        self.inner().write_queued();
        lock(&self.inner().warnings).drain(..).collect()
    }

    /// Returns what a race with this host on this network, under this trust, needs to know.
    pub fn view(&self, network: &NetworkId, host: &Host, trust: &Trust) -> View {
        let now = now();
        match &mut *self.kept() {
            Kept::Nowhere => View::empty(),
            Kept::Here(memory) => memory.view(network, host, trust, now),
            #[cfg(feature = "sqlite")]
            Kept::File(file) => {
                let rows = self.heed(file.rows_for(network, host));
                View::from_rows(rows, trust, now, &self.inner().config)
            }
        }
    }

    /// Stores one outcome that was seen under this trust.
    pub fn learn(&self, evidence: &Evidence, trust: &Trust) {
        let (evidence, trust) = (evidence.clone(), trust.clone());
        let lesson = Lesson { evidence, trust, network_name: None };
        self.inner().learn(&mut self.kept(), &lesson);
    }

    /// Returns whether there is no point in reporting anything to it.
    pub(crate) fn keeps_nothing(&self) -> bool {
        self.inner().keeps_nothing
    }

    /// Takes one outcome in without waiting for the disk. Whoever looks into this store sees it.
    pub(crate) fn learn_soon(&self, lesson: Lesson) {
        let queued = {
            let mut queued = lock(&self.inner().queued);
            queued.push_back(lesson);
            queued.len()
        };
        let inner = Arc::clone(self.inner());
        match tokio::runtime::Handle::try_current() {
            Ok(runtime) if inner.is_slow && queued < MAX_QUEUED => {
                drop(runtime.spawn_blocking(move || inner.write_queued()));
            }
            _ => inner.write_queued(),
        }
    }

    /// Waits until all that was learnt so far is written.
    pub(crate) async fn settle(&self) {
        let inner = Arc::clone(self.inner());
        if inner.is_slow && !inner.is_settled() {
            // If the runtime is being shut down, the last handle writes.
            let _ = tokio::task::spawn_blocking(move || inner.write_queued()).await;
        }
    }

    fn inner(&self) -> &Arc<Inner> {
        &self.handle.0
    }

    /// Returns the stored rows, including everything learnt so far.
    fn kept(&self) -> MutexGuard<'_, Kept> {
        self.inner().up_to_date()
    }

    #[cfg(feature = "sqlite")]
    fn heed<T>(&self, outcome: file::Outcome<T>) -> T {
        self.inner().heed(outcome)
    }
}

impl Inner {
    fn write_queued(&self) {
        drop(self.up_to_date());
    }

    /// Returns whether nothing is queued or being written: a writer holds `kept` from before it
    /// takes something from the queue until it is on disk.
    fn is_settled(&self) -> bool {
        self.kept.try_lock().is_ok_and(|_kept| lock(&self.queued).is_empty())
    }

    fn up_to_date(&self) -> MutexGuard<'_, Kept> {
        let mut kept = lock(&self.kept);
        loop {
            let Some(lesson) = lock(&self.queued).pop_front() else { return kept };
            self.learn(&mut kept, &lesson);
        }
    }

    fn learn(&self, kept: &mut Kept, lesson: &Lesson) {
        match kept {
            Kept::Nowhere => {}
            Kept::Here(memory) => {
                let Lesson { evidence, trust, network_name } = lesson;
                memory.learn(evidence, trust);
                if let Some(name) = network_name {
                    memory.name_network(&evidence.network, name, evidence.at);
                }
            }
            #[cfg(feature = "sqlite")]
            Kept::File(file) => self.heed(file.learn(lesson, &self.config)),
        }
    }

    #[cfg(feature = "sqlite")]
    fn heed<T>(&self, outcome: file::Outcome<T>) -> T {
        self.warn(outcome.warnings);
        outcome.value
    }

    #[cfg(feature = "sqlite")]
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
