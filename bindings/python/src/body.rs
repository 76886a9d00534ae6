//! Bodies of requests: bytes, what an iterator gives, what a coroutine hands over.

use std::sync::{Mutex, PoisonError};

use bytes::Bytes;
use eyas_http::Body;
use futures_util::stream;
use pyo3::{exceptions::PyRuntimeError, prelude::*, types::PyIterator};
use tokio::sync::mpsc;

use crate::{
    ending::{Begun, Inside},
    wait::awaitable,
};

/// Chunks that wait until the connection has room for them.
const CHUNKS_AHEAD: usize = 4;

/// A body of what Python gave: nothing, bytes, an [`Upload`], or an iterable of bytes.
pub(crate) fn of(object: Option<&Bound<'_, PyAny>>) -> PyResult<Body> {
    let Some(object) = object else { return Ok(Body::empty()) };
    if let Ok(bytes) = object.extract::<Bytes>() {
        return Ok(bytes.into());
    }
    if let Ok(upload) = object.cast::<Upload>() {
        return upload.get().body();
    }
    Ok(of_iterator(object.try_iter()?.unbind()))
}

/// Asks the iterator for a chunk whenever there is room for one, on a thread that may wait.
fn of_iterator(iterator: Py<PyIterator>) -> Body {
    let chunks = stream::unfold(Some(iterator), |iterator: Option<Py<PyIterator>>| async move {
        let iterator = iterator?;
        let begun = Begun::now();
        let asked = tokio::task::spawn_blocking(move || {
            let Some(_inside) = Inside::enter(begun) else {
                // The peer is not to take for a whole body what is none.
                return Some((Err(PyRuntimeError::new_err("Python is ending")), None));
            };
            Python::attach(|py| match iterator.bind(py).clone().next()? {
                Ok(chunk) => Some((chunk.extract::<Bytes>().map_err(PyErr::from), Some(iterator))),
                Err(error) => Some((Err(error), None)),
            })
        });
        match asked.await {
            Ok(answer) => answer,
            Err(panic) => Some((Err(PyRuntimeError::new_err(panic.to_string())), None)),
        }
    });
    Body::from_stream(chunks)
}

/// A body whose chunks are handed over one by one.
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
            .ok_or_else(|| PyRuntimeError::new_err("a body that is handed over has one go"))?;
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

    /// Hands a chunk over once there is room; false if nobody wants it any more.
    fn asend<'py>(&self, py: Python<'py>, chunk: Bytes) -> PyResult<Bound<'py, PyAny>> {
        let sender = self.sender();
        awaitable(py, async move {
            Ok(match sender {
                Some(sender) => sender.send(Ok(chunk)).await.is_ok(),
                None => false,
            })
        })
    }

    /// There is no more.
    fn finish(&self) {
        self.sender.lock().unwrap_or_else(PoisonError::into_inner).take();
    }

    /// There is no more, and the body is not complete.
    fn afail<'py>(&self, py: Python<'py>, why: String) -> PyResult<Bound<'py, PyAny>> {
        let sender = self.sender();
        self.finish();
        awaitable(py, async move {
            if let Some(sender) = sender {
                // Nobody wants to know if the request is over.
                let _ = sender.send(Err(why)).await;
            }
            Ok(())
        })
    }
}
