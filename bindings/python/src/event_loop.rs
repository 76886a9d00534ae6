//! The event loops of asyncio, and how each learns what has ended for it.
//!
//! An event loop watches a pipe. The first call that ends writes a byte; the loop reads it and resumes everything that
//! has ended by then. So a thread of the runtime does not need the GIL to end a call, and calls that end together wake
//! the loop once. Loops that cannot watch a pipe, such as the proactor of Windows, are called for each of them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use pyo3::{
    prelude::*,
    sync::PyOnceLock,
    types::{PyWeakrefMethods, PyWeakrefReference},
};

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
    Pipe(unix::Pipe),
    /// By its `call_soon_threadsafe`.
    Call(Py<PyAny>),
}

impl EventLoop {
    fn new(object: &Bound<'_, PyAny>) -> PyResult<Arc<Self>> {
        #[cfg(unix)]
        if let Ok(weak) = PyWeakrefReference::new(object)
            && let Some(event_loop) = unix::watch(object)?
        {
            let added = Watching {
                object: weak.unbind(),
                event_loop: Arc::downgrade(&event_loop),
                process: std::process::id(),
            };
            let mut watching = watching();
            watching.retain(|other| other.event_loop.strong_count() > 0);
            watching.push(added);
            return Ok(event_loop);
        }
        let wakeup = Wakeup::Call(object.clone().unbind());
        Ok(Arc::new(Self { ended: Mutex::default(), wakeup }))
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
    fn call_soon(self: &Arc<Self>) {
        let (this, start) = (Arc::clone(self), CallStart::now());
        tokio::task::spawn_blocking(move || {
            let Some(_guard) = InterpreterGuard::acquire(start) else { return };
            Python::attach(|py| {
                let Wakeup::Call(event_loop) = &this.wakeup else { return };
                // It fails if the loop was closed, and nobody awaits the call any more.
                let _ = event_loop.call_method1(
                    py,
                    "call_soon_threadsafe",
                    (Ended(Arc::clone(&this)),),
                );
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

/// An event loop that watches a pipe, for as long as it does.
struct Watching {
    object: Py<PyWeakrefReference>,
    event_loop: Weak<EventLoop>,
    /// In a child of a fork the pipe remains the parent's.
    process: u32,
}

impl Watching {
    fn is(&self, object: &Bound<'_, PyAny>) -> bool {
        let here = self.object.bind(object.py()).upgrade();
        self.process == std::process::id() && here.is_some_and(|here| here.is(object))
    }
}

/// Locked by threads with the GIL only, so that no child of a fork finds it locked.
static WATCHING: Mutex<Vec<Watching>> = Mutex::new(Vec::new());

fn watching() -> MutexGuard<'static, Vec<Watching>> {
    WATCHING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the running event loop, as an object and for the threads of the runtime.
pub(crate) fn running(py: Python<'_>) -> PyResult<(Bound<'_, PyAny>, Arc<EventLoop>)> {
    static RUNNING: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    let object = RUNNING.import(py, "asyncio", "get_running_loop")?.call0()?;
    let known = watching().iter().find(|known| known.is(&object)).map(|it| it.event_loop.upgrade());
    let event_loop = match known.flatten() {
        Some(event_loop) => event_loop,
        None => EventLoop::new(&object)?,
    };
    Ok((object, event_loop))
}

#[cfg(unix)]
mod unix {
    use std::{
        io::{PipeReader, PipeWriter, Read as _, Write as _},
        os::fd::AsRawFd as _,
    };

    use pyo3::exceptions::PyNotImplementedError;

    use super::*;

    /// It contains one byte at most, while calls have ended of which the loop does not know, so neither end blocks.
    pub(super) struct Pipe(PipeReader, PipeWriter);

    impl Pipe {
        pub(super) fn wake(&self) {
            // It fails if the loop was closed in a child of a fork; then nobody waits.
            let _ = (&self.1).write(&[0]);
        }

        pub(super) fn clear(&self) {
            let _ = (&self.0).read(&mut [0]);
        }
    }

    /// Has an event loop watch a pipe, if it can. It lives until the loop is closed.
    pub(super) fn watch(event_loop: &Bound<'_, PyAny>) -> PyResult<Option<Arc<EventLoop>>> {
        let (reader, writer) = std::io::pipe()?;
        let descriptor = reader.as_raw_fd();
        let wakeup = Wakeup::Pipe(Pipe(reader, writer));
        let watching = Arc::new(EventLoop { ended: Mutex::default(), wakeup });
        let arguments = (descriptor, Ended(Arc::clone(&watching)));
        match event_loop.call_method1("add_reader", arguments) {
            Ok(_) => Ok(Some(watching)),
            Err(error) if error.is_instance_of::<PyNotImplementedError>(event_loop.py()) => {
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
