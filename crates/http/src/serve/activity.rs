//! Whether a connection still lives: what moves on it, and when it has been quiet for too long.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
    time::Duration,
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::Notify,
};

/// The pulse of one connection. Counters instead of clock readings: the watch samples them, so
/// that a read or a write costs one addition.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Bytes moved either way.
    moved: AtomicU64,
    /// Requests begun.
    begun: AtomicU64,
    /// Requests begun and not yet answered to the end.
    open: AtomicU32,
    /// Requests whose response is still being made: the peer is not to blame for the silence.
    working: AtomicU32,
    /// An exchange has ended.
    ended: Notify,
}

/// Why a connection is closed by the watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quiet {
    /// No request for the idle time.
    Idle,
    /// A response waits for the peer, and nothing moved for the idle time.
    Stalled,
}

impl Activity {
    /// Notes bytes moved.
    pub(super) fn moved(&self, bytes: usize) {
        self.moved.fetch_add(bytes as u64, Relaxed);
    }

    /// Notes a request; the exchange lasts until the guard is dropped.
    pub(super) fn begin(self: &Arc<Self>) -> Exchange {
        self.begun.fetch_add(1, Relaxed);
        self.open.fetch_add(1, Relaxed);
        Exchange(Arc::clone(self))
    }

    /// Requests not yet answered to the end.
    pub(super) fn open(&self) -> u32 {
        self.open.load(Relaxed)
    }

    /// Waits until no request is open.
    pub(super) async fn answered(&self) {
        loop {
            let ended = self.ended.notified();
            if self.open() == 0 {
                return;
            }
            ended.await;
        }
    }

    /// Waits until the connection has been quiet for `limit` at least, one and a half times that
    /// at most.
    pub(super) async fn quiet(&self, limit: Duration) -> Quiet {
        let step = (limit / 2).max(SHORTEST_STEP);
        let mut last = (self.begun.load(Relaxed), self.moved.load(Relaxed));
        let mut calm = 0;
        loop {
            tokio::time::sleep(step).await;
            let now = (self.begun.load(Relaxed), self.moved.load(Relaxed));
            let waiting = self.open() > 0;
            // Without a request bytes count for nothing: a ping keeps no connection open.
            let is_calm = if waiting {
                self.working.load(Relaxed) == 0 && now == last
            } else {
                now.0 == last.0
            };
            last = now;
            calm = if is_calm { calm + 1 } else { 0 };
            if calm >= 2 {
                return if waiting { Quiet::Stalled } else { Quiet::Idle };
            }
        }
    }
}

/// The watch looks no more often than this.
const SHORTEST_STEP: Duration = Duration::from_millis(5);

/// One request and its response, from its head to the last byte.
#[derive(Debug)]
pub(super) struct Exchange(Arc<Activity>);

impl Exchange {
    /// Marks the time in which the response is made.
    pub(super) fn work(&self) -> Work {
        self.0.working.fetch_add(1, Relaxed);
        Work(Arc::clone(&self.0))
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        if self.0.open.fetch_sub(1, Relaxed) == 1 {
            self.0.ended.notify_waiters();
        }
    }
}

/// A response is being made.
#[derive(Debug)]
pub(super) struct Work(Arc<Activity>);

impl Drop for Work {
    fn drop(&mut self) {
        self.0.working.fetch_sub(1, Relaxed);
    }
}

/// A byte stream that notes what moves on it.
#[derive(Debug)]
pub(super) struct Metered<T> {
    inner: T,
    activity: Arc<Activity>,
}

impl<T> Metered<T> {
    pub(super) fn new(inner: T, activity: Arc<Activity>) -> Self {
        Self { inner, activity }
    }

    fn note(&self, done: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = done {
            self.activity.moved(*bytes);
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Metered<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let done = Pin::new(&mut self.inner).poll_read(cx, buf);
        self.activity.moved(buf.filled().len() - before);
        done
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Metered<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.note(&done);
        done
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.note(&done);
        done
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}
