//! A connection that several threads read, write and close.

use std::{
    mem::MaybeUninit,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard},
    task::{Context, Poll, ready},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    runtime::Handle,
    task::AbortHandle,
};

use crate::{
    code::EYAS_CLOSED,
    error::Failure,
    wait::{WaitLimit, lock},
};

/// The state of a connection.
pub(crate) enum StreamState {
    Open(eyas::Connection),
    /// Its handle has closed or aborted it.
    Closed,
    /// It was converted to a descriptor or an association.
    Converted,
}

impl StreamState {
    fn open(&mut self) -> Result<&mut eyas::Connection, Failure> {
        match self {
            Self::Open(connection) => Ok(connection),
            Self::Closed => Err(Failure::new(EYAS_CLOSED, "the connection was closed here")),
            Self::Converted => Err(Failure::misuse(
                "the connection has been converted to a descriptor or an association; use that",
            )),
        }
    }
}

/// The stream, shared with the task that flushes it.
#[derive(Clone)]
pub(crate) struct SharedStream(Arc<Mutex<StreamState>>);

impl SharedStream {
    pub(crate) fn new(connection: eyas::Connection) -> Self {
        Self(Arc::new(Mutex::new(StreamState::Open(connection))))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, StreamState> {
        lock(&self.0)
    }

    /// Takes the connection and sets the new state.
    pub(crate) fn replace(&self, new_state: StreamState) -> Result<eyas::Connection, Failure> {
        let mut stream = self.lock();
        stream.open()?;
        match std::mem::replace(&mut *stream, new_state) {
            StreamState::Open(connection) => Ok(connection),
            StreamState::Closed | StreamState::Converted => {
                Err(Failure::misuse("the connection is gone"))
            }
        }
    }

    /// Puts the connection back.
    pub(crate) fn restore(&self, connection: eyas::Connection) {
        *self.lock() = StreamState::Open(connection);
    }

    /// Returns the number of bytes read; 0 at the end.
    pub(crate) fn poll_read(
        &self,
        cx: &mut Context<'_>,
        buffer: &mut [MaybeUninit<u8>],
    ) -> Poll<Result<usize, Failure>> {
        let mut stream = self.lock();
        let mut buffer = ReadBuf::uninit(buffer);
        ready!(Pin::new(stream.open()?).poll_read(cx, &mut buffer))?;
        Poll::Ready(Ok(buffer.filled().len()))
    }

    fn poll_write(&self, cx: &mut Context<'_>, data: &[u8]) -> Poll<Result<usize, Failure>> {
        let written = ready!(Pin::new(self.lock().open()?).poll_write(cx, data))?;
        Poll::Ready(match written {
            0 => Err(Failure::new(EYAS_CLOSED, "the connection accepts no more data")),
            written => Ok(written),
        })
    }

    fn poll_flush(&self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        ready!(Pin::new(self.lock().open()?).poll_flush(cx))?;
        Poll::Ready(Ok(()))
    }

    pub(crate) fn poll_shutdown(&self, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        ready!(Pin::new(self.lock().open()?).poll_shutdown(cx))?;
        Poll::Ready(Ok(()))
    }
}

/// Bytes being written, and how many of them have been.
pub(crate) struct PendingWrite<'a> {
    pub(crate) data: &'a [u8],
    pub(crate) written: usize,
}

impl PendingWrite<'_> {
    /// Writes everything, or with [`WaitLimit::Now`] what can be written without waiting.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        stream: &SharedStream,
        limit: WaitLimit,
        flusher: &Mutex<Option<AbortHandle>>,
    ) -> Poll<Result<(), Failure>> {
        while self.written < self.data.len() {
            match stream.poll_write(cx, &self.data[self.written..]) {
                Poll::Ready(written) => self.written += written?,
                Poll::Pending if limit == WaitLimit::Now && self.written > 0 => break,
                Poll::Pending => return Poll::Pending,
            }
        }
        match stream.poll_flush(cx) {
            Poll::Pending if limit == WaitLimit::Now => {
                flush_later(stream.clone(), flusher);
                Poll::Ready(Ok(()))
            }
            flushed => flushed,
        }
    }
}

/// Sends data buffered by TLS even if there are no further writes. Called inside the runtime.
fn flush_later(stream: SharedStream, flusher: &Mutex<Option<AbortHandle>>) {
    let flush = std::future::poll_fn(move |cx| stream.poll_flush(cx));
    let task = Handle::current().spawn(async move {
        // The next read or write reports the error.
        let _ = flush.await;
    });
    if let Some(previous) = lock(flusher).replace(task.abort_handle()) {
        previous.abort();
    }
}
