//! The one tokio runtime of the process, and what a fork leaves of it.
//!
//! Threads do not survive a fork: a child that was forked after the runtime had started has its memory
//! and none of its threads. Whatever belongs to it is left alone there, and calls are refused.

use std::{ops::Deref, sync::OnceLock};

use pyo3::{PyResult, exceptions::PyRuntimeError};
use tokio::runtime::{Builder, Runtime};

/// Threads that drive sockets and timers; what waits in Python waits on threads of its own.
const WORKERS: usize = 2;

static STARTED: OnceLock<Started> = OnceLock::new();

struct Started {
    runtime: &'static Runtime,
    process: u32,
}

impl Started {
    fn new() -> PyResult<Self> {
        let runtime = Builder::new_multi_thread()
            .worker_threads(WORKERS)
            .thread_name("eyas")
            .enable_all()
            .build()?;
        // Never shut down: calls may be under way in other threads when the interpreter ends.
        let runtime: &'static Runtime = Box::leak(Box::new(runtime));
        Ok(Self { runtime, process: std::process::id() })
    }

    fn is_here(&self) -> bool {
        self.process == std::process::id()
    }
}

/// The runtime, started when it is first needed. Callers hold the GIL, so it starts once.
pub(crate) fn runtime() -> PyResult<&'static Runtime> {
    let started = match STARTED.get() {
        Some(started) => started,
        None => {
            let new = Started::new()?;
            STARTED.get_or_init(|| new)
        }
    };
    if started.is_here() {
        return Ok(started.runtime);
    }
    Err(PyRuntimeError::new_err(
        "eyas was in use before this process was forked, and its threads stayed with the parent; use \
         it first in the child, or start processes with the method \"spawn\" or \"forkserver\"",
    ))
}

/// Whether the runtime was started in this very process.
pub(crate) fn is_here() -> bool {
    STARTED.get().is_some_and(Started::is_here)
}

/// What lives on the runtime. It is dropped inside of it, and never in a forked child, where the locks
/// of the parent's threads may be taken for good.
pub(crate) struct Owned<T>(Option<T>);

impl<T> Owned<T> {
    pub(crate) fn new(value: T) -> Self {
        Self(Some(value))
    }
}

impl<T> Deref for Owned<T> {
    type Target = T;

    fn deref(&self) -> &T {
        // Empty only while it is being dropped.
        self.0.as_ref().expect("a value until it is dropped")
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        let value = self.0.take();
        match STARTED.get() {
            Some(started) if started.is_here() => {
                let _inside = started.runtime.enter();
                drop(value);
            }
            Some(_) => std::mem::forget(value),
            None => drop(value),
        }
    }
}
