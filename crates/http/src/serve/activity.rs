//! Tracks the activity on a connection, and when it has been idle for too long.

use std::{
    convert::Infallible,
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::{Notify, oneshot},
};

use super::pace::{Progress, Rate};

/// The pulse of one connection. Counters instead of clock readings: the watch samples them, so
/// that a read or a write costs one addition.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Bytes moved either way, where the connection carries nothing but its one exchange.
    moved: AtomicU64,
    /// Requests begun.
    begun: AtomicU64,
    /// Requests begun and not yet answered to the end.
    open: AtomicU32,
    /// Requests whose response, or more of it, is still being made: the peer is not to blame for the
    /// silence.
    working: AtomicU32,
    /// Requests that wait for more of their body: for these the peer is responsible.
    reading: AtomicU32,
    /// An exchange has ended.
    ended: Notify,
}

/// Why a connection is closed by the watch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quiet {
    /// No request for the idle time.
    Idle,
    /// A request or a response waits for the peer, and too little of it moved for the idle time.
    Stalled,
}

impl Activity {
    /// Notes bytes moved.
    pub(super) fn moved(&self, bytes: usize) {
        self.moved.fetch_add(bytes as u64, Relaxed);
    }

    /// Notes a request.
    pub(super) fn begin(&self) {
        self.begun.fetch_add(1, Relaxed);
        self.open.fetch_add(1, Relaxed);
    }

    /// Notes that a request's exchange has ended.
    pub(super) fn end(&self) {
        if self.open.fetch_sub(1, Relaxed) == 1 {
            self.ended.notify_waiters();
        }
    }

    /// Notes that a response is waited for, or no longer.
    pub(super) fn note_working(&self, begins: bool) {
        count(&self.working, begins);
    }

    /// Notes that more of a request is waited for, or no longer.
    pub(super) fn note_reading(&self, begins: bool) {
        count(&self.reading, begins);
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

    /// Waits until the connection has been without a request for the time of this
    /// rate at least, one and a half times that at most. Bytes count for nothing: a ping keeps no connection open.
    pub(super) async fn idle(&self, rate: Rate) {
        let mut begun = self.begun.load(Relaxed);
        let mut calm = 0;
        while calm < 2 {
            tokio::time::sleep(rate.step()).await;
            let now = self.begun.load(Relaxed);
            calm = if now == begun && self.open() == 0 { calm + 1 } else { 0 };
            begun = now;
        }
    }

    /// Waits until a connection that carries one exchange at a time has been idle, or until too
    /// little of its exchange has moved.
    pub(super) async fn quiet(&self, rate: Rate) -> Quiet {
        tokio::select! {
            () = self.idle(rate) => Quiet::Idle,
            () = self.stalled(rate) => Quiet::Stalled,
        }
    }

    async fn stalled(&self, rate: Rate) {
        let mut progress = Progress::default();
        let mut begun = self.begun.load(Relaxed);
        loop {
            tokio::time::sleep(rate.step()).await;
            let (now, moved) = (self.begun.load(Relaxed), self.moved.load(Relaxed));
            let is_working = self.working.load(Relaxed) > 0 && self.reading.load(Relaxed) == 0;
            if self.open() == 0 || is_working || now != begun {
                begun = now;
                progress.restart(moved);
            } else if progress.has_stalled(rate, moved) {
                return;
            }
        }
    }
}

fn count(counter: &AtomicU32, up: bool) {
    if up {
        counter.fetch_add(1, Relaxed);
    } else {
        counter.fetch_sub(1, Relaxed);
    }
}

/// A byte stream that records its activity, and signals when it is dropped.
#[derive(Debug)]
pub(super) struct Metered<T> {
    inner: T,
    activity: Arc<Activity>,
    _open: oneshot::Sender<Infallible>,
}

impl<T> Metered<T> {
    /// Wraps the stream, and returns a handle that signals its end.
    pub(super) fn new(inner: T, activity: Arc<Activity>) -> (Self, oneshot::Receiver<Infallible>) {
        let (open, dropped) = oneshot::channel();
        (Self { inner, activity, _open: open }, dropped)
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
