//! Futures as blocking calls.

use std::{future::Future, pin::pin, time::Duration};

use pyo3::{exceptions::PyTimeoutError, prelude::*};

use crate::{finalization::CallStart, runtime::runtime};

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
