//! The tokio runtime of the process, which has one thread at a time, and what a fork leaves of it.
//!
//! A blocking call drives the runtime itself, so that nothing is handed to another thread and back. While there is
//! none, a thread in the background does (`driving`).
//!
//! Threads do not survive a fork: a child that was forked after the runtime had started has its memory but none of
//! its threads. There everything that belongs to the runtime is leaked, and calls are refused.

use std::{
    future::Future,
    ops::Deref,
    sync::{Arc, OnceLock},
};

use pyo3::{PyResult, exceptions::PyRuntimeError};
use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::task::JoinHandle;

use crate::driving::{Call, Driver};

static STARTED: OnceLock<Started> = OnceLock::new();

/// The runtime, once it is started.
pub(crate) struct Started {
    driving: Arc<Driver>,
    process: u32,
}

impl Started {
    fn new() -> PyResult<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self { driving: Driver::start(runtime)?, process: std::process::id() })
    }

    fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    fn runtime(&self) -> &Runtime {
        self.driving.runtime()
    }

    /// Enters the runtime's context, which sockets, timers and tasks need.
    pub(crate) fn enter(&self) -> EnterGuard<'_> {
        self.runtime().enter()
    }

    /// Spawns a task.
    pub(crate) fn spawn<F>(&self, future: F) -> JoinHandle<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.runtime().spawn(future)
    }

    /// Runs a function on a thread where it may block.
    pub(crate) fn spawn_blocking<T: Send + 'static>(
        &self,
        function: impl FnOnce() -> T + Send + 'static,
    ) -> JoinHandle<T> {
        self.runtime().spawn_blocking(function)
    }

    /// Begins a blocking call, which drives the runtime from the calling thread.
    pub(crate) fn call(&self) -> Call<'_> {
        self.driving.call()
    }
}

/// Returns the runtime, which is started when it is first needed. Callers hold the GIL, so it starts once.
pub(crate) fn runtime() -> PyResult<&'static Started> {
    let started = match STARTED.get() {
        Some(started) => started,
        None => {
            let new = Started::new()?;
            STARTED.get_or_init(|| new)
        }
    };
    if started.is_here() {
        return Ok(started);
    }
    Err(PyRuntimeError::new_err(
        "eyas was in use before this process was forked, and its threads stayed with the parent; use \
         it first in the child, or start processes with the method \"spawn\" or \"forkserver\"",
    ))
}

/// Returns whether the runtime was started in this process, rather than in one that it was forked from.
pub(crate) fn is_here() -> bool {
    STARTED.get().is_some_and(Started::is_here)
}

/// A value that belongs to the runtime. It is dropped in the runtime's context, and never in a forked child, where
/// locks that other threads of the parent held stay locked forever.
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
                let _context = started.enter();
                drop(value);
            }
            Some(_) => std::mem::forget(value),
            None => drop(value),
        }
    }
}
