//! Request bodies: bytes, the items of an iterator, or chunks sent by a coroutine.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use eyas_http::Body;
use futures_util::{Stream, stream};
use pyo3::{exceptions::PyRuntimeError, prelude::*, types::PyIterator};
use tokio::sync::mpsc;

use crate::{
    awaitable::{Awaitable, awaitable},
    finalization::{CallStart, InterpreterGuard},
};

/// The number of chunks that may wait until the connection has room for them.
const CHUNKS_AHEAD: usize = 4;

/// Makes a body from a Python object: none, bytes, an [`Upload`], or an iterable of bytes, whose length may be known,
/// and which may give the same bytes whenever it is iterated over.
pub(crate) fn from_python(
    object: Option<&Bound<'_, PyAny>>,
    length: Option<u64>,
    is_repeatable: bool,
) -> PyResult<Body> {
    let Some(object) = object else { return Ok(Body::empty()) };
    if let Ok(bytes) = object.extract::<Bytes>() {
        return Ok(bytes.into());
    }
    if let Ok(upload) = object.cast::<Upload>() {
        return upload.get().body();
    }
    let iterable = Arc::new(object.clone().unbind());
    let body = match is_repeatable {
        true => Body::from_repeatable_stream(move || chunks(Arc::clone(&iterable))),
        false => Body::from_stream(chunks(iterable)),
    };
    Ok(match length {
        Some(length) => body.with_length(length),
        None => body,
    })
}

/// How far an iterable has been read.
enum Reading {
    Fresh(Arc<Py<PyAny>>),
    Begun(Py<PyIterator>),
}

impl Reading {
    /// Returns the next chunk, and what is read after it.
    fn next(self, py: Python<'_>) -> Option<(PyResult<Bytes>, Option<Self>)> {
        let iterator = match self {
            Self::Begun(iterator) => Ok(iterator.into_bound(py)),
            Self::Fresh(iterable) => iterable.bind(py).try_iter(),
        };
        let chunk = match iterator {
            Ok(mut iterator) => match iterator.next()? {
                Ok(chunk) => {
                    let chunk = chunk.extract::<Bytes>().map_err(PyErr::from);
                    return Some((chunk, Some(Self::Begun(iterator.unbind()))));
                }
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        };
        Some((chunk, None))
    }
}

/// Gets a chunk from the iterable whenever there is room for one, on a thread that may block.
fn chunks(iterable: Arc<Py<PyAny>>) -> impl Stream<Item = PyResult<Bytes>> + Send {
    stream::unfold(Some(Reading::Fresh(iterable)), |reading| async move {
        let reading = reading?;
        let start = CallStart::now();
        let next = tokio::task::spawn_blocking(move || {
            let Some(_guard) = InterpreterGuard::acquire(start) else {
                // The peer must not mistake the partial body for a complete one.
                return Some((Err(PyRuntimeError::new_err("Python is exiting")), None));
            };
            Python::attach(|py| reading.next(py))
        });
        match next.await {
            Ok(chunk) => chunk,
            Err(panic) => Some((Err(PyRuntimeError::new_err(panic.to_string())), None)),
        }
    })
}

/// A body whose chunks are sent one by one.
#[pyclass(frozen, module = "eyas._native")]
pub(crate) struct Upload {
    sender: Mutex<Option<Sender>>,
    receiver: Mutex<Option<mpsc::Receiver<Result<Bytes, String>>>>,
}

type Sender = mpsc::Sender<Result<Bytes, String>>;

impl Upload {
    fn body(&self) -> PyResult<Body> {
        let receiver = self.receiver.lock().unwrap_or_else(PoisonError::into_inner).take();
        let receiver = receiver
            .ok_or_else(|| PyRuntimeError::new_err("a streamed body can be sent only once"))?;
        let chunks = stream::unfold(receiver, |mut receiver| async move {
            receiver.recv().await.map(|chunk| (chunk, receiver))
        });
        Ok(Body::from_stream(chunks))
    }

    fn sender(&self) -> Option<Sender> {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

#[pymethods]
impl Upload {
    #[new]
    fn new() -> Self {
        let (sender, receiver) = mpsc::channel(CHUNKS_AHEAD);
        Self { sender: Mutex::new(Some(sender)), receiver: Mutex::new(Some(receiver)) }
    }

    /// Sends a chunk once there is room; returns false if the request no longer reads its body.
    fn asend(&self, py: Python<'_>, chunk: Bytes) -> PyResult<Awaitable> {
        let sender = self.sender();
        awaitable(py, async move {
            Ok(match sender {
                Some(sender) => sender.send(Ok(chunk)).await.is_ok(),
                None => false,
            })
        })
    }

    /// Ends the body.
    fn finish(&self) {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// Ends the body with an error, because it is not complete.
    fn afail(&self, py: Python<'_>, reason: String) -> PyResult<Awaitable> {
        let sender = self.sender();
        self.finish();
        awaitable(py, async move {
            if let Some(sender) = sender {
                // This fails only if the request has already ended.
                let _ = sender.send(Err(reason)).await;
            }
            Ok(())
        })
    }
}
