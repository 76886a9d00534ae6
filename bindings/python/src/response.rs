//! Responses, whose bodies are read on demand.

use std::{collections::VecDeque, sync::Arc};

use bytes::{Bytes, BytesMut};
use eyas_http::{Response, version_name};
use futures_util::FutureExt;
use pyo3::{exceptions::PyRuntimeError, prelude::*};
use tokio::sync::{Mutex, OwnedMutexGuard};

use crate::{
    awaitable::{Awaitable, awaitable},
    error::http_error,
    json,
    runtime::{Owned, runtime},
    wait::wait,
};

/// What is read of a body together with the head: a small one is one chunk, and its end.
const READS_AHEAD: usize = 2;

type Read = Result<Option<Bytes>, eyas_http::Error>;

/// A response, and what of its body was there when its head was. To read that later would wake the connection, which is
/// in another thread, once for each chunk.
struct Incoming {
    response: Response,
    ahead: VecDeque<Read>,
}

impl Incoming {
    fn new(mut response: Response) -> Self {
        let mut ahead = VecDeque::new();
        while ahead.len() < READS_AHEAD
            && let Some(read) = response.chunk().now_or_never()
        {
            let is_last = !matches!(read, Ok(Some(_)));
            ahead.push_back(read);
            if is_last {
                break;
            }
        }
        Self { response, ahead }
    }

    async fn chunk(&mut self) -> Read {
        match self.ahead.pop_front() {
            Some(read) => read,
            None => self.response.chunk().await,
        }
    }

    /// Returns the rest of the body, if all of it is there.
    fn whole(&mut self) -> Option<Bytes> {
        let Some(Ok(None)) = self.ahead.back() else { return None };
        match self.ahead.pop_front()? {
            Ok(chunk) => Some(chunk.unwrap_or_default()),
            // Nothing is read after an error.
            Err(_) => None,
        }
    }

    fn discard(&mut self) {
        self.ahead.clear();
        drop(std::mem::take(self.response.body_mut()));
    }
}

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
    incoming: Owned<Arc<Mutex<Incoming>>>,
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
            incoming: Owned::new(Arc::new(Mutex::new(Incoming::new(response)))),
        }
    }

    /// Returns the response; fails while another call reads it.
    fn lock(&self) -> PyResult<OwnedMutexGuard<Incoming>> {
        Arc::clone(self.incoming.get()?)
            .try_lock_owned()
            .map_err(|_| PyRuntimeError::new_err("the response is being read by another call"))
    }
}

async fn chunk(mut incoming: OwnedMutexGuard<Incoming>) -> PyResult<Option<Bytes>> {
    incoming.chunk().await.map_err(|error| http_error(&error))
}

async fn rest(mut incoming: OwnedMutexGuard<Incoming>) -> PyResult<Bytes> {
    let next = |read: Read| read.map_err(|error| http_error(&error));
    let Some(first) = next(incoming.chunk().await)? else { return Ok(Bytes::new()) };
    let Some(second) = next(incoming.chunk().await)? else { return Ok(first) };
    let mut whole = BytesMut::from(&first[..]);
    whole.extend_from_slice(&second);
    while let Some(chunk) = next(incoming.chunk().await)? {
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
    fn achunk(&self, py: Python<'_>) -> PyResult<Awaitable> {
        awaitable(py, chunk(self.lock()?))
    }

    /// Returns the rest of the body.
    fn rest(&self, py: Python<'_>) -> PyResult<Bytes> {
        let mut incoming = self.lock()?;
        match incoming.whole() {
            Some(whole) => Ok(whole),
            None => wait(py, rest(incoming)),
        }
    }

    /// The awaitable form of `rest`.
    fn arest(&self, py: Python<'_>) -> PyResult<Awaitable> {
        let mut incoming = self.lock()?;
        match incoming.whole() {
            Some(whole) => Ok(Awaitable::ended(Ok(whole))),
            None => awaitable(py, rest(incoming)),
        }
    }

    /// Discards the rest of the body.
    fn close(&self) -> PyResult<()> {
        // Nothing happens in a child that was forked: the response is the parent's.
        let Ok(incoming) = self.incoming.get().cloned() else { return Ok(()) };
        let runtime = runtime()?;
        let _context = runtime.enter();
        match Arc::clone(&incoming).try_lock_owned() {
            Ok(mut incoming) => incoming.discard(),
            // A call that was just cancelled releases it in a moment.
            Err(_) => {
                runtime.spawn(async move { incoming.lock().await.discard() });
            }
        }
        Ok(())
    }

    /// Returns the connection that carried the response, as JSON.
    fn info(&self) -> PyResult<String> {
        Ok(json::connection(self.lock()?.response.connection()).to_string())
    }

    /// Returns the race for this connection, as JSON.
    fn race(&self, py: Python<'_>) -> PyResult<String> {
        let trace = self.lock()?.response.trace();
        py.detach(|| json::race(&trace)).map(|race| race.to_string())
    }
}
