//! The end of the interpreter.
//!
//! Python ends a thread that wants the GIL once it has begun to take the interpreter apart: it unwinds the
//! thread's stack, whose destructors then drop objects of Python without the GIL, and the process crashes. So
//! whatever calls into Python on a thread of the runtime is [`Inside`] meanwhile. When Python is about to end, which
//! `atexit` says, those that are inside are waited for, and nobody enters any more. The sockets go with the process.
//!
//! Functions of `atexit` that were registered before ours run after it. What they begin is late: nobody waits for it,
//! and it works as ever.

use std::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicU8, Ordering},
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use pyo3::prelude::*;

use crate::runtime;

/// How long the end waits for an iterator of Python that is asked for a chunk of a body. All others are quick.
const PATIENCE: Duration = Duration::from_secs(1);

/// How many are in Python, or may be.
static INSIDE: Mutex<usize> = Mutex::new(0);
static LEFT: Condvar = Condvar::new();

/// What is told without the lock, for a forked child finds that as it was in its parent.
static PHASE: AtomicU8 = AtomicU8::new(RUNNING);
const RUNNING: u8 = 0;
/// Those inside are waited for.
const ENDING: u8 = 1;
/// They were.
const OVER: u8 = 2;

fn phase() -> u8 {
    PHASE.load(Ordering::SeqCst)
}

fn inside() -> MutexGuard<'static, usize> {
    INSIDE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// When something was begun.
#[derive(Clone, Copy)]
pub(crate) struct Begun {
    late: bool,
}

impl Begun {
    pub(crate) fn now() -> Self {
        Self { late: phase() == OVER }
    }

    /// The calling thread, which is none of the runtime's, is about to go back to Python. If that ends without
    /// waiting for it, it stays here.
    pub(crate) fn stay_if_python_ends(self) {
        while !self.late && phase() != RUNNING {
            std::thread::park();
        }
    }
}

/// The interpreter does not end before this is dropped.
pub(crate) struct Inside(());

impl Inside {
    /// None if it has begun to.
    pub(crate) fn enter(begun: Begun) -> Option<Self> {
        let mut inside = inside();
        if phase() != RUNNING && !begun.late {
            return None;
        }
        *inside += 1;
        Some(Self(()))
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        let mut inside = inside();
        *inside -= 1;
        if *inside == 0 {
            LEFT.notify_all();
        }
    }
}

/// A future of which every step is inside; it takes none once the interpreter has begun to end.
pub(crate) struct Stepwise<F> {
    future: Pin<Box<F>>,
    begun: Begun,
}

impl<F> Stepwise<F> {
    pub(crate) fn new(future: F) -> Self {
        Self { future: Box::pin(future), begun: Begun::now() }
    }
}

impl<F: Future> Future for Stepwise<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        match Inside::enter(self.begun) {
            Some(_inside) => self.future.as_mut().poll(context),
            None => Poll::Pending,
        }
    }
}

/// Has Python say when it is about to end.
pub(crate) fn watch(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let end = wrap_pyfunction!(end, module)?;
    module.py().import("atexit")?.call_method1("register", (end,))?;
    Ok(())
}

/// Nobody calls into Python from a thread of the runtime after this.
#[pyfunction]
fn end(py: Python<'_>) {
    // In a forked child there are no such threads, and those of the parent may have held the lock.
    if !runtime::is_here() {
        return;
    }
    py.detach(|| {
        let inside = inside();
        PHASE.store(ENDING, Ordering::SeqCst);
        let _waited = LEFT.wait_timeout_while(inside, PATIENCE, |inside| *inside > 0);
        PHASE.store(OVER, Ordering::SeqCst);
    });
}
