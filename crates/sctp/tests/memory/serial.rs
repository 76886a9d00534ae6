//! Runs one test at a time: all threads share the allocator's count.
#![expect(clippy::disallowed_types, reason = "tests share the allocator, whatever the crate does")]

use std::sync::{Mutex, MutexGuard, PoisonError};

static LOCK: Mutex<()> = Mutex::new(());

/// Waits for the other tests, which wait until the guard is dropped.
pub(crate) fn lock() -> MutexGuard<'static, ()> {
    LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}
