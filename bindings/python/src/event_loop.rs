//! The event loops of asyncio, and how each learns what has ended for it.
//!
//! An event loop watches a pipe. The first call that ends writes a byte; the loop reads it and resumes everything that
//! has ended by then. So a thread of the runtime does not need the GIL to end a call, and calls that end together wake
//! the loop once. Loops that cannot watch a pipe, such as the proactor of Windows, are called for each of them.

#[cfg(unix)]
mod pipe;

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::{prelude::*, sync::PyOnceLock};

use crate::finalization::{CallStart, InterpreterGuard};

/// A call that an event loop waits for.
pub(crate) trait Awaited: Send + Sync {
    /// Has the task that awaits the call run again.
    fn resume(&self, py: Python<'_>) -> PyResult<()>;
}

/// An event loop, for the threads of the runtime.
pub(crate) struct EventLoop {
    /// The calls that have ended, and of which the loop does not know yet.
    ended: Mutex<Vec<Arc<dyn Awaited>>>,
    wakeup: Wakeup,
}

/// How a loop is woken.
enum Wakeup {
    #[cfg(unix)]
    Pipe(pipe::Pipe),
    /// By its `call_soon_threadsafe`.
    Call(Py<PyAny>),
}

impl EventLoop {
    fn new(wakeup: Wakeup) -> Arc<Self> {
        Arc::new(Self { ended: Mutex::default(), wakeup })
    }

    /// Adds a call that has ended. This is called on threads of the runtime.
    pub(crate) fn end(self: &Arc<Self>, call: Arc<dyn Awaited>) {
        let is_first = {
            let mut ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
            ended.push(call);
            ended.len() == 1
        };
        if !is_first {
            // Whoever added the first has woken the loop, which has not taken it yet.
            return;
        }
        match &self.wakeup {
            #[cfg(unix)]
            Wakeup::Pipe(pipe) => pipe.wake(),
            Wakeup::Call(_) => self.call_soon(),
        }
    }

    /// Calls the loop from a thread that may wait for the GIL.
    #[cfg_attr(not(unix), expect(irrefutable_let_patterns, reason = "there are no pipes"))]
    fn call_soon(self: &Arc<Self>) {
        let (this, start) = (Arc::clone(self), CallStart::now());
        tokio::task::spawn_blocking(move || {
            let Some(_guard) = InterpreterGuard::acquire(start) else { return };
            let Wakeup::Call(event_loop) = &this.wakeup else { return };
            Python::attach(|py| {
                let ended = (Ended(Arc::clone(&this)),);
                // It fails if the loop was closed, and nobody awaits the call any more.
                let _ = event_loop.call_method1(py, "call_soon_threadsafe", ended);
            });
        });
    }

    fn resume_ended(&self, py: Python<'_>) {
        let ended = std::mem::take(&mut *self.ended.lock().unwrap_or_else(PoisonError::into_inner));
        for call in ended {
            // An error of one call must not keep the others from being resumed.
            if let Err(error) = call.resume(py) {
                error.write_unraisable(py, None);
            }
        }
    }
}

/// Resumes what has ended; the event loop calls it.
#[pyclass(frozen, module = "eyas._native")]
struct Ended(Arc<EventLoop>);

#[pymethods]
impl Ended {
    fn __call__(&self, py: Python<'_>) {
        #[cfg(unix)]
        if let Wakeup::Pipe(pipe) = &self.0.wakeup {
            pipe.clear();
        }
        self.0.resume_ended(py);
    }
}

/// Returns the running event loop, as an object and for the threads of the runtime.
pub(crate) fn running(py: Python<'_>) -> PyResult<(Bound<'_, PyAny>, Arc<EventLoop>)> {
    static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let object = RUNNING.import(py, "asyncio", "get_running_loop")?.call0()?;
    #[cfg(unix)]
    if let Some(event_loop) = pipe::watched_by(&object)? {
        return Ok((object, event_loop));
    }
    let event_loop = EventLoop::new(Wakeup::Call(object.clone().unbind()));
    Ok((object, event_loop))
}
