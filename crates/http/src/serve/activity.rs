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

/// The activity of one connection, in counters that timeouts sample periodically, so that a read or
/// a write costs one addition instead of a clock reading.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Bytes transferred in either direction, if the connection carries one exchange at a time.
    moved: AtomicU64,
    /// Requests started.
    started: AtomicU64,
    /// Requests in flight.
    open: AtomicU32,
    /// Requests whose service is still producing the response, or the next part of it: the peer is
    /// not responsible for the silence.
    working: AtomicU32,
    /// Requests that wait for more of their body: here the peer is responsible.
    reading: AtomicU32,
    /// Notified when the last exchange in flight ends.
    ended: Notify,
}

/// The reason why a connection is closed for lack of activity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quiet {
    /// There was no request for the idle time.
    Idle,
    /// A request or a response waits for the peer, and too little of it was transferred within the
    /// idle time.
    Stalled,
}

impl Activity {
    /// Records transferred bytes.
    pub(super) fn moved(&self, bytes: usize) {
        self.moved.fetch_add(bytes as u64, Relaxed);
    }

    /// Records the start of a request.
    pub(super) fn begin(&self) {
        self.started.fetch_add(1, Relaxed);
        self.open.fetch_add(1, Relaxed);
    }

    /// Records the end of a request's exchange.
    pub(super) fn end(&self) {
        if self.open.fetch_sub(1, Relaxed) == 1 {
            self.ended.notify_waiters();
        }
    }

    /// Records that the exchange starts or stops waiting for its service.
    pub(super) fn note_working(&self, begins: bool) {
        count(&self.working, begins);
    }

    /// Records that the exchange starts or stops waiting for the request's body.
    pub(super) fn note_reading(&self, begins: bool) {
        count(&self.reading, begins);
    }

    /// Returns the number of requests in flight.
    pub(super) fn open(&self) -> u32 {
        self.open.load(Relaxed)
    }

    /// Waits until no request is in flight.
    pub(super) async fn answered(&self) {
        loop {
            let ended = self.ended.notified();
            if self.open() == 0 {
                return;
            }
            ended.await;
        }
    }

    /// Waits until the connection has been without a request for at least the time of this rate,
    /// and at most one and a half times that. Bytes do not count: a PING does not keep a connection
    /// open.
    pub(super) async fn idle(&self, rate: Rate) {
        let mut started = self.started.load(Relaxed);
        let mut idle_checks = 0;
        while idle_checks < 2 {
            tokio::time::sleep(rate.step()).await;
            let now = self.started.load(Relaxed);
            idle_checks = if now == started && self.open() == 0 { idle_checks + 1 } else { 0 };
            started = now;
        }
    }

    /// Waits until a connection that carries one exchange at a time has been idle, or has
    /// transferred too little of its exchange.
    pub(super) async fn quiet(&self, rate: Rate) -> Quiet {
        tokio::select! {
            () = self.idle(rate) => Quiet::Idle,
            () = self.stalled(rate) => Quiet::Stalled,
        }
    }

    async fn stalled(&self, rate: Rate) {
        let mut progress = Progress::default();
        let mut started = self.started.load(Relaxed);
        loop {
            tokio::time::sleep(rate.step()).await;
            let (now, moved) = (self.started.load(Relaxed), self.moved.load(Relaxed));
            let is_working = self.working.load(Relaxed) > 0 && self.reading.load(Relaxed) == 0;
            if self.open() == 0 || is_working || now != started {
                started = now;
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

    fn note(&self, result: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = result {
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
        let result = Pin::new(&mut self.inner).poll_read(cx, buf);
        self.activity.moved(buf.filled().len() - before);
        result
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Metered<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write(cx, buf);
        self.note(&result);
        result
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = Pin::new(&mut self.inner).poll_write_vectored(cx, bufs);
        self.note(&result);
        result
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
