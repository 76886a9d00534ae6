//! Limits the attempts in flight over all races of an endpoint.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

/// The default limit: enough for a burst of a browser's size, and well below the usual limit of
/// 1024 descriptors.
pub(crate) const DEFAULT_ATTEMPTS: usize = 256;

/// Counts the attempts of all races.
#[derive(Clone, Debug)]
pub(crate) struct AttemptLimit {
    free: Arc<Semaphore>,
    freed: watch::Sender<()>,
}

/// One attempt in flight; dropping it frees the slot.
#[derive(Debug)]
pub(crate) struct AttemptSlot {
    permit: Option<OwnedSemaphorePermit>,
    freed: watch::Sender<()>,
}

impl AttemptLimit {
    pub(crate) fn new(attempts: usize) -> Self {
        let attempts = attempts.clamp(1, Semaphore::MAX_PERMITS);
        Self { free: Arc::new(Semaphore::new(attempts)), freed: watch::Sender::new(()) }
    }

    /// Returns how many more may start now.
    pub(crate) fn free(&self) -> usize {
        self.free.available_permits()
    }

    /// Returns a receiver that is notified whenever an attempt has ended.
    pub(crate) fn freed(&self) -> watch::Receiver<()> {
        self.freed.subscribe()
    }

    /// Takes a slot if one is free.
    pub(crate) fn try_take(&self) -> Option<AttemptSlot> {
        let permit = Arc::clone(&self.free).try_acquire_owned().ok()?;
        Some(AttemptSlot { permit: Some(permit), freed: self.freed.clone() })
    }

    /// Waits for a free slot.
    pub(crate) async fn acquire(&self) -> AttemptSlot {
        // The semaphore is never closed.
        let permit = Arc::clone(&self.free).acquire_owned().await.ok();
        AttemptSlot { permit, freed: self.freed.clone() }
    }
}

impl Drop for AttemptSlot {
    fn drop(&mut self) {
        drop(self.permit.take());
        // Usually there are enough slots, and nothing waits.
        if self.freed.receiver_count() > 0 {
            self.freed.send_replace(());
        }
    }
}
