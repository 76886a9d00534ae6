//! Responses, whose bodies are read on demand.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use eyas_http::{Response, version_name};
use pyo3::{exceptions::PyRuntimeError, prelude::*};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::{
    error::http_error,
    json,
    runtime::{Owned, runtime},
    wait::{awaitable, wait},
};

/// An [`eyas_http::Response`].
#[pyclass(frozen, module = "eyas._native")]
pub(crate) struct RawResponse {
    #[pyo3(get)]
    status: u16,
    #[pyo3(get)]
    version: &'static str,
    /// The final URL, after redirects.
    #[pyo3(get)]
    url: String,
    /// The redirects that were followed: status, from, to.
    #[pyo3(get)]
    redirects: Vec<(u16, String, String)>,
    #[pyo3(get)]
    headers: Vec<(String, Bytes)>,
    #[pyo3(get)]
    reused: bool,
    response: Owned<Arc<Mutex<Response>>>,
}

impl RawResponse {
    pub(crate) fn new(response: Response) -> Self {
        let field = |(name, value): (&http::HeaderName, &http::HeaderValue)| {
            (name.as_str().to_owned(), Bytes::copy_from_slice(value.as_bytes()))
        };
        let redirect = |redirect: &eyas_http::Redirect| {
            (redirect.status.as_u16(), redirect.from.to_string(), redirect.to.to_string())
        };
        Self {
            status: response.status().as_u16(),
            version: version_name(response.version()),
            url: response.url().to_string(),
            redirects: response.redirected().iter().map(redirect).collect(),
            headers: response.headers().iter().map(field).collect(),
            reused: response.connection_was_reused(),
            response: Owned::new(Arc::new(Mutex::new(response))),
        }
    }

    /// Returns the response; fails while another call reads it.
    fn lock(&self) -> PyResult<OwnedMutexGuard<Response>> {
        Arc::clone(self.response.get()?)
            .try_lock_owned()
            .map_err(|_| PyRuntimeError::new_err("the response is being read by another call"))
    }
}

async fn chunk(mut response: OwnedMutexGuard<Response>) -> PyResult<Option<Bytes>> {
    response.chunk().await.map_err(|error| http_error(&error))
}

async fn rest(mut response: OwnedMutexGuard<Response>) -> PyResult<Bytes> {
    let next = |outcome: Result<_, eyas_http::Error>| outcome.map_err(|error| http_error(&error));
    let Some(first) = next(response.chunk().await)? else { return Ok(Bytes::new()) };
    let Some(second) = next(response.chunk().await)? else { return Ok(first) };
    let mut whole = BytesMut::from(&first[..]);
    whole.extend_from_slice(&second);
    while let Some(chunk) = next(response.chunk().await)? {
        whole.extend_from_slice(&chunk);
    }
    Ok(whole.freeze())
}

#[pymethods]
impl RawResponse {
    /// Returns the next chunk of the body; `None` at its end.
    fn chunk(&self, py: Python<'_>) -> PyResult<Option<Bytes>> {
        wait(py, chunk(self.lock()?))
    }

    /// The awaitable form of `chunk`.
    fn achunk<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        awaitable(py, chunk(self.lock()?))
    }

    /// Returns the rest of the body.
    fn rest(&self, py: Python<'_>) -> PyResult<Bytes> {
        wait(py, rest(self.lock()?))
    }

    /// The awaitable form of `rest`.
    fn arest<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        awaitable(py, rest(self.lock()?))
    }

    /// Discards the rest of the body.
    fn close(&self) -> PyResult<()> {
        // Nothing happens in a child that was forked: the response is the parent's.
        let Ok(response) = self.response.get().cloned() else { return Ok(()) };
        let runtime = runtime()?;
        let _context = runtime.enter();
        match Arc::clone(&response).try_lock_owned() {
            Ok(mut response) => drop(std::mem::take(response.body_mut())),
            // A call that was just cancelled releases it in a moment.
            Err(_) => {
                runtime
                    .spawn(async move { drop(std::mem::take(response.lock().await.body_mut())) });
            }
        }
        Ok(())
    }

    /// Returns the connection that carried the response, as JSON.
    fn info(&self) -> PyResult<String> {
        Ok(json::connection(self.lock()?.connection()).to_string())
    }

    /// Returns the race for this connection, as JSON.
    fn race(&self, py: Python<'_>) -> PyResult<String> {
        let trace = self.lock()?.trace();
        py.detach(|| json::race(&trace)).map(|race| race.to_string())
    }
}
