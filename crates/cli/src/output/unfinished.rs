//! Counts bytes of a body written to a file that is removed, or kept for another run, unless it is completed.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::failure::Failure;
use crate::terminal::count;

/// Counts what would be lost if the run ended now; clones share the count.
#[derive(Clone, Default)]
pub(crate) struct UnfinishedBytes(Arc<ReceivedBytes>);

#[derive(Default)]
struct ReceivedBytes {
    bytes: AtomicU64,
    is_kept: AtomicBool,
}

impl UnfinishedBytes {
    pub(super) fn add(&self, bytes: usize) {
        self.0.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Records that the body is complete.
    pub(super) fn completed(&self) {
        self.0.bytes.store(0, Ordering::Relaxed);
    }

    /// Records whether the data is kept if the body is not completed.
    pub(super) fn set_kept(&self, is_kept: bool) {
        self.0.is_kept.store(is_kept, Ordering::Relaxed);
    }

    /// Adds to the failure of an interrupted run what happened to the received data.
    pub(crate) fn explain(&self, failure: Failure) -> Failure {
        let is_kept = self.0.is_kept.load(Ordering::Relaxed);
        let received = self.0.bytes.load(Ordering::Relaxed);
        let bytes = match received {
            0 => return failure,
            1 => "the byte".to_owned(),
            bytes => format!("the {} bytes", count(bytes)),
        };
        let is_one = received == 1;
        match failure.kind.is_interruption() {
            is_interruption if is_kept && (is_interruption || failure.hint.is_none()) => {
                let are = if is_one { "is" } else { "are" };
                failure.hint(format!(
                    "{bytes} received so far {are} kept: -C - continues the download"
                ))
            }
            true => {
                let were = if is_one { "was" } else { "were" };
                failure.hint(format!("{bytes} received so far {were} removed"))
            }
            false => failure,
        }
    }
}
