//! What came for a call that was cancelled at that moment: it waits for the next one.

use std::{
    collections::VecDeque,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync;

/// What came and was not taken: no more than one for each call that waited.
pub(crate) struct Arrived<T> {
    queue: Mutex<VecDeque<T>>,
    /// Who waits for the next one: the others go on when it is there.
    turn: sync::Mutex<()>,
}

impl<T> Arrived<T> {
    fn queue(&self) -> MutexGuard<'_, VecDeque<T>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn take(&self) -> Option<T> {
        self.queue().pop_front()
    }

    /// Waits until there is something to take; false if nothing comes any more. A call that was
    /// cancelled may still get what comes until it is dropped, and whoever waits hears of that.
    pub(crate) async fn wait<E>(
        &self,
        coming: impl Future<Output = Result<Option<T>, E>>,
    ) -> Result<bool, E> {
        let _turn = self.turn.lock().await;
        if !self.queue().is_empty() {
            return Ok(true);
        }
        let one = coming.await?;
        let is_there = one.is_some();
        self.queue().extend(one);
        Ok(is_there)
    }
}

impl<T> Default for Arrived<T> {
    fn default() -> Self {
        Self { queue: Mutex::default(), turn: sync::Mutex::default() }
    }
}
