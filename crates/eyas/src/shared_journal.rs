//! Records a race while it runs.

use std::sync::{Arc, Mutex, PoisonError};

use eyas_race::trace::RaceJournal;

/// The journal of a race so far, written by its driver.
#[derive(Clone, Debug)]
pub(crate) struct SharedJournal(Arc<Mutex<RaceJournal>>);

impl SharedJournal {
    pub(crate) fn new(journal: RaceJournal) -> Self {
        Self(Arc::new(Mutex::new(journal)))
    }

    pub(crate) fn with_journal<T>(&self, action: impl FnOnce(&mut RaceJournal) -> T) -> T {
        action(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns a copy, which can be examined without blocking the driver.
    pub(crate) fn copy(&self) -> RaceJournal {
        self.with_journal(|journal| journal.clone())
    }
}
