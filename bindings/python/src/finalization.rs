//! The end of the interpreter.
//!
//! Once finalization has started, Python ends every thread that tries to take the GIL: it unwinds the thread's stack,
//! whose destructors then drop Python objects without the GIL, and the process crashes. So code that calls into Python
//! on a thread of the runtime holds an [`InterpreterGuard`]. When Python is about to exit, an `atexit` function waits
//! until all guards are released, and no new ones are handed out. The sockets are closed with the process.
//!
//! Functions that were registered with `atexit` before ours run after it. Calls that start there are late: nothing
//! waits for them, and they work as usual.

use std::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicU8, Ordering},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use pyo3::prelude::*;

use crate::{closing, runtime};

/// How long the exit waits for a Python iterator that is computing a chunk of a body. Everything else is quick.
const MAX_WAIT: Duration = Duration::from_secs(1);

/// The guards of a process.
#[derive(Default)]
pub(crate) struct Guards {
    /// The number of guards that are held.
    held: Mutex<usize>,
    released: Condvar,
}

impl Guards {
    fn lock(&self) -> MutexGuard<'_, usize> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Read without the lock, because a forked child inherits that in whatever state its parent had it.
static PHASE: AtomicU8 = AtomicU8::new(RUNNING);
const RUNNING: u8 = 0;
/// The exit waits for the guards.
const EXITING: u8 = 1;
/// It has waited.
const EXITED: u8 = 2;

fn phase() -> u8 {
    PHASE.load(Ordering::SeqCst)
}

/// When a call started, relative to the exit.
#[derive(Clone, Copy)]
pub(crate) struct CallStart {
    late: bool,
}

impl CallStart {
    pub(crate) fn now() -> Self {
        Self { late: phase() == EXITED }
    }

    /// Called before the calling thread, which is not one of the runtime, returns to Python. If Python is exiting
    /// and does not wait for the thread, it stays here for good.
    pub(crate) fn park_if_exiting(self) {
        while !self.late && phase() != RUNNING {
            std::thread::park();
        }
    }
}

/// Keeps the interpreter from being finalized until it is dropped.
pub(crate) struct InterpreterGuard(&'static Guards);

impl InterpreterGuard {
    /// Returns `None` if Python is already exiting.
    pub(crate) fn acquire(start: CallStart) -> Option<Self> {
        let guards = &runtime::here()?.guards;
        let mut held = guards.lock();
        if phase() != RUNNING && !start.late {
            return None;
        }
        *held += 1;
        drop(held);
        Some(Self(guards))
    }
}

impl Drop for InterpreterGuard {
    fn drop(&mut self) {
        let mut held = self.0.lock();
        *held -= 1;
        // Nobody waits before: to notify would be a system call.
        if *held == 0 && phase() != RUNNING {
            self.0.released.notify_all();
        }
    }
}

/// A future that is polled under an [`InterpreterGuard`], and no longer polled once Python is exiting.
pub(crate) struct Guarded<F> {
    future: Pin<Box<F>>,
    start: CallStart,
}

impl<F> Guarded<F> {
    pub(crate) fn new(future: F) -> Self {
        Self { future: Box::pin(future), start: CallStart::now() }
    }
}

impl<F: Future> Future for Guarded<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        match InterpreterGuard::acquire(self.start) {
            Some(_guard) => self.future.as_mut().poll(context),
            None => Poll::Pending,
        }
    }
}

/// Registers [`at_exit`] with `atexit`.
pub(crate) fn register(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let at_exit = wrap_pyfunction!(at_exit, module)?;
    module.py().import("atexit")?.call_method1("register", (at_exit,))?;
    Ok(())
}

/// Waits until no thread of the runtime is in Python, and keeps all of them out from then on.
#[pyfunction]
fn at_exit(py: Python<'_>) {
    let Some(started) = runtime::here() else { return };
    py.detach(|| {
        closing::wait_at_exit(started);
        let held = started.guards.lock();
        PHASE.store(EXITING, Ordering::SeqCst);
        let _waited = started.guards.released.wait_timeout_while(held, MAX_WAIT, |held| *held > 0);
        PHASE.store(EXITED, Ordering::SeqCst);
    });
}
