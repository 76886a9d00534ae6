//! The tokio runtime of the process, which has one thread at a time, and what a fork leaves of it.
//!
//! A blocking call drives the runtime itself, so that nothing is handed to another thread and back. While there is
//! none, a thread in the background does (`driving`).
//!
//! Threads do not survive a fork: a child that was forked after the runtime had started has its memory but none of
//! its threads. The child gets a runtime of its own. What belongs to the parent's is leaked there, and refuses calls.

use std::{
    future::Future,
    sync::{Arc, OnceLock, atomic::AtomicUsize},
};

use pyo3::{PyResult, exceptions::PyRuntimeError};
use tokio::runtime::{Builder, EnterGuard, Runtime};
use tokio::task::JoinHandle;

use crate::{
    driving::{Call, Driver},
    finalization::Guards,
};

/// The runtime of the first process that needed one, which leads to those of its children.
static STARTED: OnceLock<Box<Started>> = OnceLock::new();

/// The runtime, once it is started.
pub(crate) struct Started {
    driving: Arc<Driver>,
    process: u32,
    /// Those of the process: in a child, the parent's may be locked for good.
    pub(crate) guards: Guards,
    /// The number of connections that are being closed.
    pub(crate) closing: AtomicUsize,
    /// The runtime of a child that was forked from this process. Only the child ever sees it.
    in_child: OnceLock<Box<Self>>,
}

impl Started {
    fn new() -> PyResult<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        Ok(Self {
            driving: Driver::start(runtime)?,
            process: std::process::id(),
            guards: Guards::default(),
            closing: AtomicUsize::new(0),
            in_child: OnceLock::new(),
        })
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

    /// Begins a blocking call, which drives the runtime from the calling thread.
    pub(crate) fn call(&self) -> Call<'_> {
        self.driving.call()
    }
}

/// Returns the place of this process's runtime, which may be empty.
fn place() -> &'static OnceLock<Box<Started>> {
    let process = std::process::id();
    let mut place = &STARTED;
    while let Some(other) = place.get().filter(|started| started.process != process) {
        place = &other.in_child;
    }
    place
}

/// Returns the runtime, which is started when it is first needed. Callers hold the GIL, so it starts once.
pub(crate) fn runtime() -> PyResult<&'static Started> {
    let place = place();
    match place.get() {
        Some(started) => Ok(started),
        None => {
            let new = Box::new(Started::new()?);
            Ok(place.get_or_init(|| new))
        }
    }
}

/// Returns the runtime, if it was started in this process, rather than in one that it was forked from.
pub(crate) fn here() -> Option<&'static Started> {
    place().get().map(|started| &**started)
}

/// Returns whether this process was forked from one that had a runtime.
pub(crate) fn is_forked() -> bool {
    STARTED.get().is_some_and(|first| first.process != std::process::id())
}

/// A value that belongs to the runtime. It is dropped in the runtime's context, and never in a forked child, where
/// locks that other threads of the parent held stay locked forever, and where closing it would end connections that
/// the parent uses.
pub(crate) struct Owned<T> {
    value: Option<T>,
    process: u32,
}

impl<T> Owned<T> {
    pub(crate) fn new(value: T) -> Self {
        Self { value: Some(value), process: std::process::id() }
    }

    /// Returns whether the value belongs to this process.
    pub(crate) fn is_here(&self) -> bool {
        self.process == std::process::id()
    }

    /// Returns the value; fails in a child of the process that it belongs to.
    pub(crate) fn get(&self) -> PyResult<&T> {
        self.value.as_ref().filter(|_| self.is_here()).ok_or_else(|| {
            PyRuntimeError::new_err(
                "this was opened before the process was forked, and stayed with the parent; open \
                 another one in the child",
            )
        })
    }
}

impl<T> Drop for Owned<T> {
    fn drop(&mut self) {
        let value = self.value.take();
        if !self.is_here() {
            std::mem::forget(value);
            return;
        }
        let _context = here().map(Started::enter);
        drop(value);
    }
}
