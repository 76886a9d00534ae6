//! Records a race while it runs.

use std::sync::{Arc, Mutex, PoisonError};

use eyas_race::trace::Journal;

/// The journal of a race so far, written by its driver.
#[derive(Clone, Debug)]
pub(crate) struct Record(Arc<Mutex<Journal>>);

impl Record {
    pub(crate) fn new(journal: Journal) -> Self {
        Self(Arc::new(Mutex::new(journal)))
    }

    pub(crate) fn with<T>(&self, action: impl FnOnce(&mut Journal) -> T) -> T {
        action(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Returns a copy, which can be examined without blocking the driver.
    pub(crate) fn copy(&self) -> Journal {
        self.with(|journal| journal.clone())
    }
}
