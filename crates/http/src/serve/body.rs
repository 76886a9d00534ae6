//! Response bodies, for all versions of HTTP.

use std::{
    pin::Pin,
    sync::{Arc, atomic::Ordering::Relaxed},
    task::{Context, Poll, ready},
};

use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};
use tokio_util::sync::CancellationToken;

use super::{
    access::Entry,
    body_error::BodyError,
    content::Content,
    exchange::OpenExchange,
    fault::{Fault, Trigger},
    piece::{PIECE, Piece},
    stats::Counters,
};

/// The body of a response. It holds the exchange open until it is dropped.
pub(super) struct ResponseBody {
    content: Content,
    /// What was read but exceeded the available room.
    rest: Option<Piece>,
    fault: Option<Trigger>,
    counters: Arc<Counters>,
    exchange: Option<OpenExchange>,
    /// Cancelled if the body of a tunnel is dropped before its end.
    abandoned: Option<CancellationToken>,
    /// Written to the access log when the body is dropped.
    entry: Option<Entry>,
}

impl ResponseBody {
    pub(super) fn new(
        content: Content,
        fault: Option<Fault>,
        counters: Arc<Counters>,
        exchange: Option<OpenExchange>,
        entry: Option<Entry>,
    ) -> Self {
        let fault = fault.map(Trigger::new);
        Self { content, rest: None, fault, counters, exchange, abandoned: None, entry }
    }

    /// Cancels this if the body is dropped before its end.
    pub(super) fn set_abandoned(&mut self, abandoned: CancellationToken) {
        self.abandoned = Some(abandoned);
    }

    /// Takes what holds the exchange open, to be kept for longer than the body.
    pub(super) fn take_exchange(&mut self) -> Option<OpenExchange> {
        self.exchange.take()
    }

    /// Returns whether it may deliberately be shorter than announced.
    pub(super) fn is_faulty(&self) -> bool {
        self.fault.is_some()
    }

    /// Ready when the service has provided the next bytes of its response, or has ended it. The
    /// server's own content is always ready.
    pub(super) fn poll_prepared(&mut self, cx: &mut Context<'_>) -> Poll<Option<usize>> {
        match &mut self.content {
            Content::Service(body) if self.fault.is_none() => body.poll_prepared(cx).map(Some),
            _ => Poll::Ready(None),
        }
    }

    /// Returns how much of the peer's window to reserve: for a service, only what it has already
    /// provided, so that a slow service does not delay other responses.
    pub(super) fn wanted(&self) -> usize {
        let bytes = match &self.content {
            Content::Service(body) if self.fault.is_none() => body.prepared(),
            _ => self.remaining().map_or(PIECE, |left| left.min(PIECE as u64) as usize),
        };
        bytes.clamp(1, PIECE)
    }

    /// Takes the trailers, once the bytes have ended.
    pub(super) fn take_trailers(&mut self) -> Option<HeaderMap> {
        match &mut self.content {
            Content::Service(body) => body.take_trailers(),
            _ => None,
        }
    }

    /// Returns the next bytes, at most `room`, which is not zero.
    pub(super) fn poll_piece(
        &mut self,
        cx: &mut Context<'_>,
        room: usize,
    ) -> Poll<Option<Result<Piece, BodyError>>> {
        if let Some(trigger) = &mut self.fault
            && trigger.is_due()
        {
            return trigger.poll_fire(cx);
        }
        let mut next = match self.rest.take() {
            Some(rest) => rest,
            None => match ready!(self.content.poll_next(cx, room)?) {
                Some(next) => next,
                None => return Poll::Ready(None),
            },
        };
        let mut piece = next.split_to(room);
        if !next.is_empty() {
            self.rest = Some(next);
        }
        if let Some(trigger) = &mut self.fault {
            trigger.cut(&mut piece);
        }
        self.counters.body_bytes_sent.fetch_add(piece.len() as u64, Relaxed);
        if let Some(entry) = &mut self.entry {
            entry.sent(piece.len());
        }
        Poll::Ready(Some(Ok(piece)))
    }

    /// Waits for the next bytes, at most `room`.
    pub(super) async fn piece(&mut self, room: usize) -> Option<Result<Piece, BodyError>> {
        std::future::poll_fn(|cx| self.poll_piece(cx, room)).await
    }

    /// Returns the number of remaining bytes, if known.
    pub(super) fn remaining(&self) -> Option<u64> {
        let rest = self.rest.as_ref().map_or(0, |rest| rest.len() as u64);
        self.content.remaining().map(|remaining| remaining + rest)
    }

    /// Returns whether the body has ended. With a pending fault even the last byte is not the end.
    pub(super) fn has_ended(&self) -> bool {
        self.fault.is_none() && self.rest.is_none() && self.content.has_ended()
    }
}

impl Drop for ResponseBody {
    fn drop(&mut self) {
        if let Some(abandoned) = &self.abandoned
            && !self.has_ended()
        {
            abandoned.cancel();
        }
    }
}

/// For hyper, which polls for whatever is available.
impl Body for ResponseBody {
    type Data = Piece;
    type Error = BodyError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, BodyError>>> {
        Poll::Ready(match ready!(self.poll_piece(cx, PIECE)?) {
            Some(piece) => Some(Ok(Frame::data(piece))),
            None => self.take_trailers().map(|fields| Ok(Frame::trailers(fields))),
        })
    }

    fn is_end_stream(&self) -> bool {
        self.has_ended()
    }

    fn size_hint(&self) -> SizeHint {
        self.remaining().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
