//! Futures as blocking calls and as awaitables.

use std::{
    future::Future,
    pin::{Pin, pin},
    time::Duration,
};

use pyo3::{exceptions::PyTimeoutError, prelude::*, types::PyAny};
use pyo3_async_runtimes::{
    TaskLocals,
    generic::{self, ContextExt},
};
use tokio::task::{JoinError, JoinHandle};

use crate::{
    finalization::{CallStart, Guarded, InterpreterGuard},
    runtime::{Started, runtime},
};

/// How often a blocking call checks for signals, such as that of Ctrl-C.
pub(crate) const SIGNALS: Duration = Duration::from_millis(50);

/// Runs a future to completion without the GIL. If the handler of a signal raises, the future is dropped at once, and
/// with it whatever it had open.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    future: impl Future<Output = PyResult<T>> + Send,
) -> PyResult<T> {
    let runtime = runtime()?;
    let start = CallStart::now();
    py.detach(|| {
        let call = runtime.call();
        // The future is dropped in it.
        let _context = runtime.enter();
        let mut future = pin!(future);
        loop {
            // Handlers run Python code, which may call eyas: this thread must not drive the runtime meanwhile.
            let outcome =
                call.block_on(async { tokio::time::timeout(SIGNALS, future.as_mut()).await });
            start.park_if_exiting();
            match outcome {
                Ok(outcome) => return outcome,
                Err(_) => Python::attach(|py| py.check_signals())?,
            }
        }
    })
}

/// Limits the duration of a call.
pub(crate) async fn within<T>(
    limit: Option<Duration>,
    call: impl Future<Output = PyResult<T>> + Send,
) -> PyResult<T> {
    let Some(limit) = limit else { return call.await };
    tokio::time::timeout(limit, call).await.unwrap_or_else(|_| {
        Err(PyTimeoutError::new_err(format!("the call timed out after {limit:?}")))
    })
}

/// Returns an awaitable of the running event loop. Cancelling it drops the future.
pub(crate) fn awaitable<'py, T>(
    py: Python<'py>,
    future: impl Future<Output = PyResult<T>> + Send + 'static,
) -> PyResult<Bound<'py, PyAny>>
where
    T: for<'any> IntoPyObject<'any> + Send + 'static,
{
    // Fails if the runtime cannot be started.
    runtime()?;
    generic::future_into_py::<Tasks, _, T>(py, future)
}

/// The runtime of awaitables, which does not call into Python once that is exiting.
struct Tasks;

tokio::task_local! {
    static LOCALS: TaskLocals;
}

impl generic::Runtime for Tasks {
    type JoinError = JoinError;
    type JoinHandle = JoinHandle<()>;

    fn spawn<F: Future<Output = ()> + Send + 'static>(future: F) -> JoinHandle<()> {
        started().spawn(Guarded::new(future))
    }

    fn spawn_blocking<F: FnOnce() + Send + 'static>(call: F) -> JoinHandle<()> {
        let start = CallStart::now();
        started().spawn_blocking(move || {
            if let Some(_guard) = InterpreterGuard::acquire(start) {
                call();
            }
        })
    }
}

impl ContextExt for Tasks {
    fn scope<F, R>(locals: TaskLocals, future: F) -> Pin<Box<dyn Future<Output = R> + Send>>
    where
        F: Future<Output = R> + Send + 'static,
    {
        Box::pin(LOCALS.scope(locals, future))
    }

    fn get_task_locals() -> Option<TaskLocals> {
        LOCALS.try_with(Clone::clone).ok()
    }
}

/// Returns the runtime of a task, or of an awaitable that is being made: [`awaitable`] has started it.
fn started() -> &'static Started {
    runtime().expect("the runtime has started")
}
