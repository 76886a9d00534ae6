//! Futures as awaitables of asyncio.
//!
//! A future runs on the runtime, without the GIL. Once it has ended, the event loop resumes the task that awaits it
//! (`event_loop`), and only then what it returned becomes a Python object, on the thread of the loop.

use std::{
    future::Future,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use pyo3::{
    IntoPyObjectExt,
    exceptions::{PyRuntimeError, PyStopIteration},
    prelude::*,
};
use tokio::task::AbortHandle;

use crate::{
    event_loop::{self, Awaited, EventLoop},
    finalization::Guarded,
    runtime::{Owned, runtime},
};

/// What a future returned, until it becomes a Python object.
type Outcome = Box<dyn FnOnce(Python<'_>) -> PyResult<Py<PyAny>> + Send>;

fn outcome<T>(outcome: PyResult<T>) -> Outcome
where
    T: for<'any> IntoPyObject<'any> + Send + 'static,
{
    Box::new(move |py| outcome?.into_py_any(py))
}

enum Progress {
    Running,
    Ended(Outcome),
    Taken,
}

/// A future that is awaited.
struct Call {
    progress: Mutex<Progress>,
    /// The future of asyncio for which the awaiting task waits. Only threads with the GIL put it here and remove it.
    waiter: Mutex<Option<Py<PyAny>>>,
}

impl Call {
    fn new(progress: Progress) -> Arc<Self> {
        Arc::new(Self { progress: Mutex::new(progress), waiter: Mutex::default() })
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn waiter(&self) -> MutexGuard<'_, Option<Py<PyAny>>> {
        self.waiter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Awaited for Call {
    fn resume(&self, py: Python<'_>) -> PyResult<()> {
        let Some(waiter) = self.waiter().take() else { return Ok(()) };
        let waiter = waiter.bind(py);
        // It was cancelled, if the task was.
        if !waiter.call_method0(pyo3::intern!(py, "done"))?.is_truthy()? {
            waiter.call_method1(pyo3::intern!(py, "set_result"), (py.None(),))?;
        }
        Ok(())
    }
}

/// Ends a call when its task does, also by a panic.
struct End {
    call: Arc<Call>,
    event_loop: Arc<EventLoop>,
}

impl Drop for End {
    fn drop(&mut self) {
        {
            let mut progress = self.call.progress();
            if matches!(*progress, Progress::Running) {
                let panicked = PyRuntimeError::new_err("the call ended in a panic");
                *progress = Progress::Ended(outcome::<()>(Err(panicked)));
            }
        }
        self.event_loop.end(Arc::<Call>::clone(&self.call));
    }
}

/// A call that Python awaits, once.
#[pyclass(frozen, module = "eyas._native")]
pub(crate) struct Awaitable(Owned<Running>);

struct Running {
    call: Arc<Call>,
    /// The event loop that waits, and the task that runs the future, unless there was nothing to wait for.
    background: Option<(Py<PyAny>, AbortHandle)>,
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some((_, task)) = &self.background {
            task.abort();
        }
        // The task may have the call for longer, and drops it without the GIL.
        drop(self.call.waiter().take());
    }
}

impl Awaitable {
    /// Returns one that has ended already.
    pub(crate) fn ended<T>(returned: PyResult<T>) -> Self
    where
        T: for<'any> IntoPyObject<'any> + Send + 'static,
    {
        let call = Call::new(Progress::Ended(outcome(returned)));
        Self(Owned::new(Running { call, background: None }))
    }
}

#[pymethods]
impl Awaitable {
    fn __await__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    fn __iter__(this: PyRef<'_, Self>) -> PyRef<'_, Self> {
        this
    }

    /// Returns what the task of asyncio has to wait for, or ends with the outcome.
    fn __next__(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        let running = self.0.get()?;
        let progress = {
            let mut progress = running.call.progress();
            match *progress {
                Progress::Running => Progress::Running,
                _ => std::mem::replace(&mut *progress, Progress::Taken),
            }
        };
        match (progress, &running.background) {
            (Progress::Ended(outcome), _) => Err(PyStopIteration::new_err((outcome(py)?,))),
            (Progress::Running, Some((event_loop, _))) => {
                let waiter = event_loop.call_method0(py, pyo3::intern!(py, "create_future"))?;
                *running.call.waiter() = Some(waiter.clone_ref(py));
                let steps = waiter.call_method0(py, pyo3::intern!(py, "__await__"))?;
                steps.call_method0(py, pyo3::intern!(py, "__next__"))
            }
            _ => Err(PyRuntimeError::new_err("this was awaited already")),
        }
    }
}

/// Returns an awaitable of the running event loop. Dropping it, as cancelling the task does, drops the future.
pub(crate) fn awaitable<T>(
    py: Python<'_>,
    future: impl Future<Output = PyResult<T>> + Send + 'static,
) -> PyResult<Awaitable>
where
    T: for<'any> IntoPyObject<'any> + Send + 'static,
{
    let runtime = runtime()?;
    let (object, event_loop) = event_loop::running(py)?;
    let call = Call::new(Progress::Running);
    let end = End { call: Arc::clone(&call), event_loop };
    let task = runtime.spawn(Guarded::new(async move {
        let end = end;
        let returned = outcome(future.await);
        *end.call.progress() = Progress::Ended(returned);
    }));
    let background = Some((object.unbind(), task.abort_handle()));
    Ok(Awaitable(Owned::new(Running { call, background })))
}
