//! One test at a time: the allocator's count is one for all threads.
#![expect(clippy::disallowed_types, reason = "tests share the allocator, whatever the crate does")]

use std::sync::{Mutex, MutexGuard, PoisonError};

static TURN: Mutex<()> = Mutex::new(());

/// Waits for the other tests; the turn ends when what is given is dropped.
pub(crate) fn take() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
