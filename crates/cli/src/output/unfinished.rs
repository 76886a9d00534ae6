//! What of a body was written to a place from which it is removed unless it is whole.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::failure::Failure;
use crate::terminal::count;

/// Counts what would be lost if the run ended now; clones count the same.
#[derive(Clone, Default)]
pub(crate) struct Unfinished(Arc<AtomicU64>);

impl Unfinished {
    pub(super) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// The body stands under its name.
    pub(super) fn is_whole(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// The failure of a run that was interrupted, with what became of what had come.
    pub(crate) fn explain(&self, failure: Failure) -> Failure {
        match self.0.load(Ordering::Relaxed) {
            bytes if bytes > 0 && failure.kind.is_interruption() => {
                let bytes = count(bytes);
                failure.hint(format!("the {bytes} bytes that had come were removed"))
            }
            _ => failure,
        }
    }
}
