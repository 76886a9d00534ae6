//! The streams of a quinn connection with h3's traits, for client and server.
//!
//! This replaces `h3-quinn`, which hides or gets wrong some details: a response counts as sent only
//! once the peer has acknowledged it, so that a graceful shutdown loses nothing; a stream dropped
//! midway is reset, not finished as if it were complete; aborting a stream while a read is pending
//! does not panic; and what h3 would keep in memory is limited ([`frames`]).

mod connect;
mod datagrams;
mod failure;
mod frames;
mod receiving;
mod request_stream;
mod sending;

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use futures_util::{Stream, StreamExt, stream};
use h3::{
    error::Code,
    quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId},
};
use quinn::{ConnectionError, ConnectionStats, VarInt};

pub use self::datagrams::{HttpDatagrams, StreamDatagrams};
#[cfg(feature = "client")]
pub(crate) use self::frames::FrameError;
pub(crate) use self::{
    datagrams::ConnectionDatagrams, receiving::Receiving, request_stream::RequestStream,
    sending::Sending,
};
use self::{
    failure::{connection_error, on_connection},
    frames::{FRAME_SLACK, Frames},
};

type Accepted<T> = Pin<Box<dyn Stream<Item = Result<T, ConnectionError>> + Send + Sync>>;
type Waiting<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + Sync>>;

/// The side of the connection that uses the streams, client or server.
pub(crate) trait Side: Clone + Send + Sync + Unpin + 'static {
    /// Whether this is a client, which opens the requests' streams (RFC 9114 §6.1).
    const IS_CLIENT: bool;

    /// A value that is kept as long as the sending half of a request's stream.
    type RequestGuard: Send + Sync + Unpin;

    /// Called for each new stream of a request.
    fn request_started(&self, stream: &quinn::SendStream) -> Self::RequestGuard;

    /// Returns whether it may open tunnels by CONNECT (RFC 9114 §4.4).
    fn opens_tunnels(&self) -> bool {
        false
    }

    /// Called when the peer goes away: it does not process the request on the stream with this
    /// identifier, nor later ones (RFC 9114 §5.2).
    fn going_away(&self, _id: u64) {}

    /// Returns whether to reject the next request (RFC 9114 §4.1.1: it may be retried).
    fn rejects_requests(&self) -> bool {
        false
    }
}

/// Everything that the streams of one connection share.
#[derive(Clone)]
struct Common<S> {
    conn: quinn::Connection,
    side: S,
    frame_limit: u64,
}

impl<S: Side> Common<S> {
    fn request(&self, (send, recv): (quinn::SendStream, quinn::RecvStream)) -> RequestStream<S> {
        let frames = Frames::request(self.frame_limit);
        let guard = self.side.request_started(&send);
        let send = Sending::of_request(send, guard, self.side.opens_tunnels());
        RequestStream { send, recv: Receiving::new(recv, frames, None) }
    }
}

/// A QUIC connection whose streams carry HTTP/3.
pub(crate) struct Streams<S: Side> {
    common: Common<S>,
    bidirectional: Accepted<(quinn::SendStream, quinn::RecvStream)>,
    unidirectional: Accepted<quinn::RecvStream>,
    opener: Opener<S>,
}

impl<S: Side> Streams<S> {
    /// Wraps a connection on which a message's head may have at most `header_bytes`.
    pub(crate) fn new(conn: quinn::Connection, side: S, header_bytes: usize) -> Self {
        let frame_limit = header_bytes as u64 + FRAME_SLACK;
        let common = Common { conn: conn.clone(), side, frame_limit };
        let accept_bi = |conn: quinn::Connection| async { Some((conn.accept_bi().await, conn)) };
        let accept_uni = |conn: quinn::Connection| async { Some((conn.accept_uni().await, conn)) };
        Self {
            bidirectional: Box::pin(stream::unfold(conn.clone(), accept_bi)),
            unidirectional: Box::pin(stream::unfold(conn, accept_uni)),
            opener: Opener::new(&common),
            common,
        }
    }
}

impl<S: Side> quic::Connection<Bytes> for Streams<S> {
    type RecvStream = Receiving<S>;
    type OpenStreams = Opener<S>;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Receiving<S>, ConnectionErrorIncoming>> {
        let recv = ready!(next(&mut self.unidirectional, cx))?;
        let frames = Frames::unidirectional(self.common.frame_limit);
        let side = Some(self.common.side.clone());
        Poll::Ready(Ok(Receiving::new(recv, frames, side)))
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RequestStream<S>, ConnectionErrorIncoming>> {
        loop {
            let (mut send, mut recv) = ready!(next(&mut self.bidirectional, cx))?;
            if self.common.side.rejects_requests() {
                // Errors can be ignored, because the streams are being discarded.
                let _ = send.reset(code(Code::H3_REQUEST_REJECTED.value()));
                let _ = recv.stop(code(Code::H3_REQUEST_REJECTED.value()));
                continue;
            }
            return Poll::Ready(Ok(self.common.request((send, recv))));
        }
    }

    fn opener(&self) -> Opener<S> {
        Opener::new(&self.common)
    }
}

fn next<T>(
    accepted: &mut Accepted<T>,
    cx: &mut Context<'_>,
) -> Poll<Result<T, ConnectionErrorIncoming>> {
    match ready!(accepted.poll_next_unpin(cx)) {
        Some(accepted) => Poll::Ready(accepted.map_err(connection_error)),
        None => Poll::Ready(Err(ConnectionErrorIncoming::Timeout)),
    }
}

impl<S: Side> quic::OpenStreams<Bytes> for Streams<S> {
    type BidiStream = RequestStream<S>;
    type SendStream = Sending<S>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RequestStream<S>, StreamErrorIncoming>> {
        self.opener.poll_open_bidi(cx)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Sending<S>, StreamErrorIncoming>> {
        self.opener.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.opener.close(code, reason);
    }
}

/// Opens streams: control and QPACK, and a client's requests.
pub(crate) struct Opener<S: Side> {
    common: Common<S>,
    request: Option<Waiting<(quinn::SendStream, quinn::RecvStream), ConnectionError>>,
    unidirectional: Option<Waiting<quinn::SendStream, ConnectionError>>,
}

impl<S: Side> Opener<S> {
    fn new(common: &Common<S>) -> Self {
        Self { common: common.clone(), request: None, unidirectional: None }
    }
}

impl<S: Side> Clone for Opener<S> {
    fn clone(&self) -> Self {
        Self::new(&self.common)
    }
}

impl<S: Side> quic::OpenStreams<Bytes> for Opener<S> {
    type BidiStream = RequestStream<S>;
    type SendStream = Sending<S>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RequestStream<S>, StreamErrorIncoming>> {
        if !S::IS_CLIENT {
            // RFC 9114 §6.1.
            let error = "an HTTP/3 server opens no bidirectional stream";
            return Poll::Ready(Err(StreamErrorIncoming::Unknown(error.into())));
        }
        let opening = self.request.get_or_insert_with(|| {
            let conn = self.common.conn.clone();
            Box::pin(async move { conn.open_bi().await })
        });
        let opened = ready!(opening.as_mut().poll(cx));
        self.request = None;
        Poll::Ready(opened.map(|streams| self.common.request(streams)).map_err(on_connection))
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Sending<S>, StreamErrorIncoming>> {
        let opening = self.unidirectional.get_or_insert_with(|| {
            let conn = self.common.conn.clone();
            Box::pin(async move { conn.open_uni().await })
        });
        let opened = ready!(opening.as_mut().poll(cx));
        self.unidirectional = None;
        Poll::Ready(opened.map(Sending::new).map_err(on_connection))
    }

    fn close(&mut self, error: Code, reason: &[u8]) {
        self.common.conn.close(code(error.value()), reason);
    }
}

/// Returns the number of frames received, whose packets were authenticated.
pub(crate) fn frames_received(stats: &ConnectionStats) -> u64 {
    let frames = &stats.frame_rx;
    frames.acks
        + frames.stream
        + frames.datagram
        + frames.ping
        + frames.max_data
        + frames.max_stream_data
        + frames.max_streams_bidi
        + frames.max_streams_uni
        + frames.new_connection_id
        + frames.reset_stream
        + frames.stop_sending
}

fn code(value: u64) -> VarInt {
    VarInt::from_u64(value).unwrap_or(VarInt::MAX)
}

fn stream_id(id: quinn::StreamId) -> StreamId {
    StreamId::try_from(VarInt::from(id).into_inner())
        .expect("quinn's stream identifiers are below 2^62, as h3 requires")
}
