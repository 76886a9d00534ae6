//! Request bodies, for all versions of HTTP.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError, atomic::Ordering::Relaxed},
    task::{Context, Poll, Waker, ready},
};

use bytes::Bytes;
use eyas_h3::message::check_trailers;
use h2::RecvStream;
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::{body_error::BodyError, exchange::Exchange, stats::Counters, turn::Turn};
use crate::http3::Receiving;

/// The body of a request as it arrives. If it is not read, the peer soon stops sending, because its
/// flow-control window stays closed. It fails with [`RequestBodyError`] at the limit of
/// [`Limits::body_bytes`](super::Limits::body_bytes).
pub struct RequestBody {
    source: Source,
    state: State,
    left: u64,
    limit: u64,
    /// Whether the end of the body is checked even if the service does not read it.
    checks_rest: bool,
    counters: Arc<Counters>,
    turn: Arc<Turn>,
    /// The exchange of a tunnel, which lasts as long as either direction.
    exchange: Option<Arc<Exchange>>,
}

/// The maximum number of frames that are still checked after the service has dropped a body.
const LAST_FRAMES: usize = 64;

enum Source {
    Hyper(Incoming),
    Http2(RecvStream),
    Http3(Box<Receiving<quinn::Connection>>),
    Shared(SharedBody),
}

/// The body of a request that may become one direction of a tunnel.
pub(super) struct TunnelBody {
    body: Mutex<RequestBody>,
    /// Cancelled when the client reads no more of the other direction.
    abandoned: CancellationToken,
}

impl TunnelBody {
    pub(super) fn new(body: RequestBody) -> Self {
        Self { body: body.into(), abandoned: CancellationToken::new() }
    }

    /// Locks the body for one poll.
    pub(super) fn lock(&self) -> MutexGuard<'_, RequestBody> {
        self.body.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns what is cancelled when the client reads no more of the other direction.
    pub(super) fn abandoned(&self) -> &CancellationToken {
        &self.abandoned
    }
}

/// A body that belongs to a tunnel, which ends when the client abandons its other direction.
struct SharedBody {
    tunnel: Arc<TunnelBody>,
    abandoned: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl SharedBody {
    fn poll_counted(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        match self.tunnel.lock().poll_counted(cx) {
            Poll::Pending => {
                self.abandoned.as_mut().poll(cx).map(|()| Some(Err(BodyError::Abandoned)))
            }
            polled => polled,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Data,
    Trailers,
    Ended,
}

/// Why the body of a request ended prematurely.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct RequestBodyError(#[from] BodyError);

impl RequestBodyError {
    /// Returns whether the body exceeds the server's limit, as opposed to being broken.
    pub fn is_too_large(&self) -> bool {
        matches!(self.0, BodyError::TooLarge(_))
    }
}

impl RequestBody {
    /// Creates the body of an HTTP/1 request.
    pub(super) fn http1(
        body: Incoming,
        limit: u64,
        counters: Arc<Counters>,
        turn: Arc<Turn>,
    ) -> Self {
        Self::new(Source::Hyper(body), limit, counters, turn)
    }

    /// Creates the body of an HTTP/2 request.
    pub(super) fn http2(
        body: RecvStream,
        limit: u64,
        counters: Arc<Counters>,
        turn: Arc<Turn>,
    ) -> Self {
        Self::new(Source::Http2(body), limit, counters, turn)
    }

    /// Creates the body of an HTTP/3 request, which may announce its length.
    pub(super) fn http3(
        body: Receiving<quinn::Connection>,
        has_length: bool,
        limit: u64,
        counters: Arc<Counters>,
        turn: Arc<Turn>,
    ) -> Self {
        let mut body = Self::new(Source::Http3(Box::new(body)), limit, counters, turn);
        body.checks_rest = has_length;
        body
    }

    fn new(source: Source, limit: u64, counters: Arc<Counters>, turn: Arc<Turn>) -> Self {
        let checks_rest = false;
        let (state, left, exchange) = (State::Data, limit, None);
        Self { source, state, left, limit, checks_rest, counters, turn, exchange }
    }

    /// Creates another handle to the body of a tunnel.
    pub(super) fn shared(tunnel: Arc<TunnelBody>) -> Self {
        let abandoned = Box::pin(tunnel.abandoned().clone().cancelled_owned());
        let (limit, counters, turn) = {
            let body = tunnel.lock();
            (body.limit, Arc::clone(&body.counters), Arc::clone(&body.turn))
        };
        Self::new(Source::Shared(SharedBody { tunnel, abandoned }), limit, counters, turn)
    }

    /// Holds the exchange of a tunnel open until the body is dropped.
    pub(super) fn hold_exchange(&mut self, exchange: Arc<Exchange>) {
        self.exchange = Some(exchange);
    }

    /// Returns the turn of its exchange.
    pub(super) fn turn(&self) -> &Arc<Turn> {
        &self.turn
    }

    /// Returns the number of bytes, if known.
    pub(super) fn length(&self) -> Option<u64> {
        match &self.source {
            Source::Hyper(body) => body.size_hint().exact(),
            Source::Http2(body) => body.is_end_stream().then_some(0),
            Source::Http3(_) => None,
            Source::Shared(shared) => shared.tunnel.lock().length(),
        }
    }

    /// Returns the next frame, counted against the limit.
    fn poll_counted(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.state == State::Ended {
            return Poll::Ready(None);
        }
        if let Source::Shared(shared) = &mut self.source {
            let polled = ready!(shared.poll_counted(cx));
            if !matches!(&polled, Some(Ok(frame)) if frame.is_data()) {
                self.state = State::Ended;
            }
            return Poll::Ready(polled);
        }
        let polled = self.poll_source(cx);
        self.turn.set_request(polled.is_pending());
        let frame = ready!(polled?);
        let Some(frame) = frame else { return Poll::Ready(None) };
        let length = frame.data_ref().map_or(0, Bytes::len) as u64;
        self.turn.note_received(length);
        self.counters.body_bytes_received.fetch_add(length, Relaxed);
        let Some(left) = self.left.checked_sub(length) else {
            self.state = State::Ended;
            return Poll::Ready(Some(Err(BodyError::TooLarge(self.limit))));
        };
        self.left = left;
        Poll::Ready(Some(Ok(frame)))
    }

    /// Checks what has arrived of a body that the service does not read, without waiting.
    fn check_rest(&mut self) {
        if !self.checks_rest || self.state == State::Ended {
            return;
        }
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..LAST_FRAMES {
            match self.poll_counted(&mut cx) {
                Poll::Ready(Some(Ok(_))) => {}
                Poll::Ready(Some(Err(_)) | None) | Poll::Pending => return,
            }
        }
    }

    fn poll_source(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
        if self.state == State::Ended {
            return Poll::Ready(None);
        }
        let polled = match &mut self.source {
            Source::Hyper(body) => {
                ready!(Pin::new(body).poll_frame(cx)).map(|frame| frame.map_err(BodyError::from))
            }
            Source::Http2(body) => {
                let polled = ready!(poll_http2(body, &mut self.state, cx));
                if let Some(Err(BodyError::Trailers(_))) = polled {
                    self.turn.note_malformed();
                }
                polled
            }
            Source::Shared(shared) => return shared.poll_counted(cx),
            Source::Http3(body) => ready!(body.poll_frame(cx)).map(|frame| {
                frame.map_err(|error| {
                    if error.is_violation() {
                        self.turn.note_malformed();
                    }
                    BodyError::Http3(error)
                })
            }),
        };
        // Nothing follows trailers and errors.
        if !matches!(&polled, Some(Ok(frame)) if frame.is_data()) {
            self.state = State::Ended;
        }
        Poll::Ready(polled)
    }
}

fn poll_http2(
    body: &mut RecvStream,
    state: &mut State,
    cx: &mut Context<'_>,
) -> Poll<Option<Result<Frame<Bytes>, BodyError>>> {
    if *state == State::Data {
        if let Some(data) = ready!(body.poll_data(cx)?) {
            // The body is read only when there is room for its data.
            body.flow_control().release_capacity(data.len())?;
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        *state = State::Trailers;
    }
    Poll::Ready(ready!(body.poll_trailers(cx)?).map(trailers))
}

/// Checks trailers, whose rules are those of HTTP/3 (RFC 9113 §8.2, §8.2.1, §8.2.2).
fn trailers(fields: HeaderMap) -> Result<Frame<Bytes>, BodyError> {
    let lines = fields.iter().map(|(name, value)| (name.as_str().as_bytes(), value.as_bytes()));
    check_trailers(lines).map_err(BodyError::Trailers)?;
    Ok(Frame::trailers(fields))
}

impl Body for RequestBody {
    type Data = Bytes;
    type Error = RequestBodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, RequestBodyError>>> {
        self.turn.request_body_read();
        self.poll_counted(cx).map_err(RequestBodyError::from)
    }

    fn is_end_stream(&self) -> bool {
        self.state == State::Ended
            || match &self.source {
                Source::Hyper(body) => body.is_end_stream(),
                Source::Http2(body) => body.is_end_stream(),
                Source::Http3(_) => false,
                Source::Shared(shared) => shared.tunnel.lock().is_end_stream(),
            }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.source {
            Source::Hyper(body) => body.size_hint(),
            // Over HTTP/3 no lower layer enforces the announced length.
            Source::Http2(_) | Source::Http3(_) | Source::Shared(_) => {
                self.length().map_or_else(SizeHint::default, SizeHint::with_exact)
            }
        }
    }
}

impl Drop for RequestBody {
    fn drop(&mut self) {
        if matches!(self.source, Source::Shared(_)) {
            return;
        }
        self.check_rest();
        self.turn.set_request(false);
        if self.state != State::Ended && !self.is_end_stream() {
            self.turn.note_unread_request();
        }
    }
}

impl fmt::Debug for RequestBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RequestBody").field("left", &self.left).finish_non_exhaustive()
    }
}
