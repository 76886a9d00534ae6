//! Tracks the activity on a connection, and when it has been idle for too long.

use std::{
    io,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering::Relaxed},
    },
    task::{Context, Poll},
};

use tokio::{
    io::{AsyncRead, AsyncWrite, ReadBuf},
    sync::{Notify, oneshot},
    task::yield_now,
    time::{Duration, sleep},
};
use tokio_util::sync::CancellationToken;

use super::pace::{Progress, Rate};

/// How long a connection that was evicted may take to tell its client that nothing was processed: until then it
/// still has its descriptor.
pub(super) const EVICTION_TIME: Duration = Duration::from_millis(100);

/// The claims of a connection that was evicted: no further one can be added.
const EVICTED: u64 = u64::MAX;

/// The activity of one connection, in counters that timeouts sample periodically, so that a read or
/// a write costs one addition instead of a clock reading.
#[derive(Debug, Default)]
pub(super) struct Activity {
    /// Bytes transferred in either direction, if the connection carries one exchange at a time.
    moved: AtomicU64,
    /// The requests for which the connection keeps its place, or [`EVICTED`]. Both are decided here, so that no
    /// request is served on a connection that is cut off.
    claims: AtomicU64,
    /// Whether it keeps its place whatever comes.
    is_settled: AtomicBool,
    /// Cancelled when another connection gets the place of this one.
    evicted: CancellationToken,
    /// Requests started, without those of unknown clients.
    started: AtomicU64,
    /// Those of them that are in flight.
    open: AtomicU32,
    /// Exchanges in flight, also those whose requests have not begun or were refused.
    exchanges: AtomicU32,
    /// Requests whose service is still producing the response, or the next part of it: the peer is
    /// not responsible for the silence.
    working: AtomicU32,
    /// Requests that wait for more of their body: here the peer is responsible.
    reading: AtomicU32,
    /// Whether the service has dropped the body of a request before its end.
    has_unread_request: AtomicBool,
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

    /// Records the start of a request. Returns false if the connection was evicted: then it must not be served.
    #[must_use]
    pub(super) fn begin(&self) -> bool {
        if self.claims.fetch_update(Relaxed, Relaxed, |claims: u64| claims.checked_add(1)).is_err()
        {
            return false;
        }
        self.started.fetch_add(1, Relaxed);
        self.open.fetch_add(1, Relaxed);
        true
    }

    /// Takes back the start of a request, which keeps the place until its exchange ends.
    pub(super) fn forget(&self) {
        self.started.fetch_sub(1, Relaxed);
        self.end();
    }

    /// Gives up the place that a request kept.
    pub(super) fn release(&self) {
        self.claims.fetch_sub(1, Relaxed);
    }

    /// Records the end of a request.
    pub(super) fn end(&self) {
        self.open.fetch_sub(1, Relaxed);
    }

    /// Records the start or the end of an exchange.
    pub(super) fn note_exchange(&self, begins: bool) {
        if count(&self.exchanges, begins) == 1 && !begins {
            self.ended.notify_waiters();
        }
    }

    /// Records that the connection keeps its place from now on.
    pub(super) fn settle(&self) {
        self.is_settled.store(true, Relaxed);
    }

    /// Returns whether the connection keeps its place whatever comes.
    pub(super) fn is_settled(&self) -> bool {
        self.is_settled.load(Relaxed)
    }

    /// Returns whether the connection has no request, and has its place.
    pub(super) fn may_be_evicted(&self) -> bool {
        self.claims.load(Relaxed) == 0
    }

    /// Takes the place of the connection, unless it has a request. It must then close.
    pub(super) fn evict(&self) -> bool {
        let is_evicted = self.claims.compare_exchange(0, EVICTED, Relaxed, Relaxed).is_ok();
        if is_evicted {
            self.evicted.cancel();
        }
        is_evicted
    }

    /// Returns whether another connection has got the place of this one.
    pub(super) fn is_evicted(&self) -> bool {
        self.evicted.is_cancelled()
    }

    /// Waits until another connection gets the place of this one, and what its client has sent can be read.
    pub(super) async fn evicted(&self) {
        self.evicted.cancelled().await;
        // The runtime looks meanwhile for what has arrived.
        yield_now().await;
    }

    /// Waits until the time is over that a connection has after its eviction: none, if nothing was received from
    /// its client.
    pub(super) async fn eviction_ends(&self) {
        self.evicted().await;
        if self.moved.load(Relaxed) > 0 {
            sleep(EVICTION_TIME).await;
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

    /// Records that the body of a request will not be read.
    pub(super) fn note_unread_request(&self) {
        self.has_unread_request.store(true, Relaxed);
    }

    /// Returns whether there is a body of a request that will not be read.
    pub(super) fn has_unread_request(&self) -> bool {
        self.has_unread_request.load(Relaxed)
    }

    /// Returns the number of requests in flight.
    fn open(&self) -> u32 {
        self.open.load(Relaxed)
    }

    /// Waits until no exchange is in flight.
    pub(super) async fn answered(&self) {
        loop {
            let ended = self.ended.notified();
            if self.exchanges.load(Relaxed) == 0 {
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
            sleep(rate.step()).await;
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
            sleep(rate.step()).await;
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

/// Counts up or down, and returns the previous count.
fn count(counter: &AtomicU32, up: bool) -> u32 {
    if up { counter.fetch_add(1, Relaxed) } else { counter.fetch_sub(1, Relaxed) }
}

/// A byte stream that records its activity, and is returned when it is dropped.
#[derive(Debug)]
pub(super) struct Metered<T> {
    /// `None` while it is dropped.
    inner: Option<T>,
    activity: Arc<Activity>,
    is_shut_down: bool,
    peer_has_ended: bool,
    dropped: Option<oneshot::Sender<Option<T>>>,
}

const UNTIL_DROPPED: &str = "a stream until it is dropped";

impl<T> Metered<T> {
    /// Wraps the stream, and returns a handle that signals its end. It returns the stream if that
    /// was shut down and the peer has not ended its side.
    pub(super) fn new(inner: T, activity: Arc<Activity>) -> (Self, oneshot::Receiver<Option<T>>) {
        let (sender, dropped) = oneshot::channel();
        let metered = Self {
            inner: Some(inner),
            activity,
            is_shut_down: false,
            peer_has_ended: false,
            dropped: Some(sender),
        };
        (metered, dropped)
    }

    fn note(&self, result: &Poll<io::Result<usize>>) {
        if let Poll::Ready(Ok(bytes)) = result {
            self.activity.moved(*bytes);
        }
    }
}

impl<T: Unpin> Metered<T> {
    fn inner(&mut self) -> Pin<&mut T> {
        Pin::new(self.inner.as_mut().expect(UNTIL_DROPPED))
    }
}

impl<T> Drop for Metered<T> {
    fn drop(&mut self) {
        let inner = self.inner.take().filter(|_| self.is_shut_down && !self.peer_has_ended);
        if let Some(dropped) = self.dropped.take() {
            // Nobody waits for it if the server has stopped.
            let _ = dropped.send(inner);
        }
    }
}

impl<T: AsyncRead + Unpin> AsyncRead for Metered<T> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let (before, has_room) = (buf.filled().len(), buf.remaining() > 0);
        let result = self.inner().poll_read(cx, buf);
        let bytes = buf.filled().len() - before;
        self.activity.moved(bytes);
        self.peer_has_ended |= has_room && bytes == 0 && result.is_ready();
        result
    }
}

impl<T: AsyncWrite + Unpin> AsyncWrite for Metered<T> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        let result = self.inner().poll_write(cx, buf);
        self.note(&result);
        result
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let result = self.inner().poll_write_vectored(cx, bufs);
        self.note(&result);
        result
    }

    fn is_write_vectored(&self) -> bool {
        self.inner.as_ref().is_some_and(AsyncWrite::is_write_vectored)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let result = self.inner().poll_shutdown(cx);
        self.is_shut_down |= matches!(result, Poll::Ready(Ok(())));
        result
    }
}
