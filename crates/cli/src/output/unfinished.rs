//! Counts bytes of a body written to a file that is removed unless it is completed.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::failure::Failure;
use crate::terminal::count;

/// Counts what would be lost if the run ended now; clones share the count.
#[derive(Clone, Default)]
pub(crate) struct Unfinished(Arc<AtomicU64>);

impl Unfinished {
    pub(super) fn add(&self, bytes: usize) {
        self.0.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Records that the body is complete.
    pub(super) fn completed(&self) {
        self.0.store(0, Ordering::Relaxed);
    }

    /// Adds to the failure of an interrupted run what happened to the received data.
    pub(crate) fn explain(&self, failure: Failure) -> Failure {
        match self.0.load(Ordering::Relaxed) {
            bytes if bytes > 0 && failure.kind.is_interruption() => failure.hint(match bytes {
                1 => "the byte received so far was removed".to_owned(),
                bytes => format!("the {} bytes received so far were removed", count(bytes)),
            }),
            _ => failure,
        }
    }
}
