//! What was received for calls that were cancelled in the meantime: the next call gets it.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync;

/// Received items that no call has taken yet: at most one for each call that waited.
pub(crate) struct Inbox<T> {
    queue: Mutex<VecDeque<T>>,
    /// Held by the call that waits for the next item; the others wait for their turn.
    turn: sync::Mutex<()>,
}

impl<T> Inbox<T> {
    fn queue(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take(&self) -> Option<T> {
        self.queue().pop_front()
    }

    /// Waits until there is an item to take; returns false once no more will arrive. A call that was
    /// cancelled may still receive an item until its future is dropped; the next call that waits finds it.
    pub(crate) async fn wait<E>(
        &self,
        receive: impl Future<Output = Result<Option<T>, E>>,
    ) -> Result<bool, E> {
        let _turn = self.turn.lock().await;
        if !self.queue().is_empty() {
            return Ok(true);
        }
        let item = receive.await?;
        let received = item.is_some();
        self.queue().extend(item);
        Ok(received)
    }
}

impl<T> Default for Inbox<T> {
    fn default() -> Self {
        Self { queue: Mutex::default(), turn: sync::Mutex::default() }
    }
}
