//! Futures as blocking calls and as awaitables.

use std::{future::Future, pin::pin, time::Duration};

use pyo3::{exceptions::PyTimeoutError, prelude::*, types::PyAny};

use crate::runtime::runtime;

/// How often a blocking call looks for signals, such as that of Ctrl-C.
pub(crate) const SIGNALS: Duration = Duration::from_millis(50);

/// Runs a future to its end without the GIL. Ends it at once if the handler of a signal raises, and
/// with it whatever it had open.
pub(crate) fn wait<T: Send>(
    py: Python<'_>,
    future: impl Future<Output = PyResult<T>> + Send,
) -> PyResult<T> {
    let runtime = runtime()?;
    py.detach(|| {
        runtime.block_on(async {
            let mut future = pin!(future);
            loop {
                tokio::select! {
                    biased;
                    outcome = &mut future => return outcome,
                    () = tokio::time::sleep(SIGNALS) => Python::attach(|py| py.check_signals())?,
                }
            }
        })
    })
}

/// The same, within so many seconds.
pub(crate) async fn within<T>(
    limit: Option<Duration>,
    call: impl Future<Output = PyResult<T>> + Send,
) -> PyResult<T> {
    let Some(limit) = limit else { return call.await };
    tokio::time::timeout(limit, call).await.unwrap_or_else(|_| {
        Err(PyTimeoutError::new_err(format!("the peer let the call wait for {limit:?}")))
    })
}

/// The future as an awaitable of the running event loop. Cancelling the one drops the other.
pub(crate) fn awaitable<'py, T>(
    py: Python<'py>,
    future: impl Future<Output = PyResult<T>> + Send + 'static,
) -> PyResult<Bound<'py, PyAny>>
where
    T: for<'any> IntoPyObject<'any> + Send + 'static,
{
    // Also says that the process was forked, if so.
    runtime()?;
    pyo3_async_runtimes::tokio::future_into_py(py, future)
}
