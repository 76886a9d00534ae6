//! The streams of a quinn connection, as the h3 crate wants them.
//!
//! This stands where `h3-quinn` could, for four things that a server needs and `h3-quinn` keeps
//! to itself: a response counts as sent only when the peer has acknowledged it, so that a graceful
//! shutdown loses nothing; a stream dropped half-way is reset and not finished as if it were
//! whole; frames that would be kept in memory are bounded; and aborting a stream while a read
//! waits does not panic.

use std::{
    future::Future,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use futures_util::{Stream, StreamExt, stream};
use h3::{
    error::Code,
    quic::{self, ConnectionErrorIncoming, StreamErrorIncoming, StreamId, WriteBuf},
};
use quinn::{ConnectionError, ReadError, StoppedError, VarInt, WriteError};

use super::frame_guard::{FRAME_SLACK, FrameGuard};
use crate::serve::activity::Activity;

type Accepted<T> = Pin<Box<dyn Stream<Item = Result<T, ConnectionError>> + Send + Sync>>;
type Waiting<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send + Sync>>;

/// Everything that the streams of one connection share.
#[derive(Clone)]
struct Common {
    conn: quinn::Connection,
    activity: Arc<Activity>,
    frame_limit: u64,
}

/// A QUIC connection whose streams carry HTTP/3.
pub(super) struct Streams {
    common: Common,
    bidirectional: Accepted<(quinn::SendStream, quinn::RecvStream)>,
    unidirectional: Accepted<quinn::RecvStream>,
    closing: Arc<AtomicBool>,
    opener: Opener,
}

impl Streams {
    /// Wraps a connection. Once `closing` is set, new requests are turned away
    /// (RFC 9114 §5.2: they may be sent again elsewhere).
    pub(super) fn new(
        conn: quinn::Connection,
        activity: Arc<Activity>,
        header_bytes: usize,
        closing: Arc<AtomicBool>,
    ) -> Self {
        let frame_limit = header_bytes as u64 + FRAME_SLACK;
        let common = Common { conn: conn.clone(), activity, frame_limit };
        let accept_bi = |conn: quinn::Connection| async { Some((conn.accept_bi().await, conn)) };
        let accept_uni = |conn: quinn::Connection| async { Some((conn.accept_uni().await, conn)) };
        Self {
            bidirectional: Box::pin(stream::unfold(conn.clone(), accept_bi)),
            unidirectional: Box::pin(stream::unfold(conn, accept_uni)),
            closing,
            opener: Opener { common: common.clone(), opening: None },
            common,
        }
    }
}

impl quic::Connection<Bytes> for Streams {
    type RecvStream = Receiving;
    type OpenStreams = Opener;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Receiving, ConnectionErrorIncoming>> {
        let recv = ready!(next(&mut self.unidirectional, cx))?;
        let guard = FrameGuard::unidirectional(self.common.frame_limit);
        Poll::Ready(Ok(Receiving::new(recv, guard, &self.common)))
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Both, ConnectionErrorIncoming>> {
        loop {
            let (mut send, mut recv) = ready!(next(&mut self.bidirectional, cx))?;
            if self.closing.load(Relaxed) {
                // Closed streams are what is wanted: nothing to do about an error.
                let _ = send.reset(code(Code::H3_REQUEST_REJECTED.value()));
                let _ = recv.stop(code(Code::H3_REQUEST_REJECTED.value()));
                continue;
            }
            let guard = FrameGuard::request(self.common.frame_limit);
            return Poll::Ready(Ok(Both {
                send: Sending::new(send, &self.common),
                recv: Receiving::new(recv, guard, &self.common),
            }));
        }
    }

    fn opener(&self) -> Opener {
        Opener { common: self.common.clone(), opening: None }
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

impl quic::OpenStreams<Bytes> for Streams {
    type BidiStream = Both;
    type SendStream = Sending;

    fn poll_open_bidi(&mut self, cx: &mut Context<'_>) -> Poll<Result<Both, StreamErrorIncoming>> {
        self.opener.poll_open_bidi(cx)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Sending, StreamErrorIncoming>> {
        self.opener.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        self.opener.close(code, reason);
    }
}

/// Opens the server's own streams: control and QPACK.
pub(super) struct Opener {
    common: Common,
    opening: Option<Waiting<quinn::SendStream, ConnectionError>>,
}

impl quic::OpenStreams<Bytes> for Opener {
    type BidiStream = Both;
    type SendStream = Sending;

    fn poll_open_bidi(&mut self, _: &mut Context<'_>) -> Poll<Result<Both, StreamErrorIncoming>> {
        // RFC 9114 §6.1: there are no server-initiated bidirectional streams.
        let error = "an HTTP/3 server opens no bidirectional stream";
        Poll::Ready(Err(StreamErrorIncoming::Unknown(error.into())))
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Sending, StreamErrorIncoming>> {
        let opening = self.opening.get_or_insert_with(|| {
            let conn = self.common.conn.clone();
            Box::pin(async move { conn.open_uni().await })
        });
        let opened = ready!(opening.as_mut().poll(cx));
        self.opening = None;
        Poll::Ready(match opened {
            Ok(send) => Ok(Sending::new(send, &self.common)),
            Err(error) => Err(on_connection(error)),
        })
    }

    fn close(&mut self, error: Code, reason: &[u8]) {
        self.common.conn.close(code(error.value()), reason);
    }
}

/// A request stream before its halves part.
pub(super) struct Both {
    send: Sending,
    recv: Receiving,
}

impl quic::BidiStream<Bytes> for Both {
    type SendStream = Sending;
    type RecvStream = Receiving;

    fn split(mut self) -> (Sending, Receiving) {
        self.send.is_with_h3 = false;
        (self.send, self.recv)
    }
}

impl quic::SendStream<Bytes> for Both {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_ready(cx)
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        self.send.send_data(data)
    }

    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        self.send.poll_finish(cx)
    }

    fn reset(&mut self, reset_code: u64) {
        self.send.reset(reset_code);
    }

    fn send_id(&self) -> StreamId {
        self.send.send_id()
    }
}

impl quic::RecvStream for Both {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        self.recv.poll_data(cx)
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.recv.stop_sending(error_code);
    }

    fn recv_id(&self) -> StreamId {
        self.recv.recv_id()
    }
}

/// The sending half of a stream.
pub(super) struct Sending {
    stream: quinn::SendStream,
    writing: Option<WriteBuf<Bytes>>,
    delivered: Option<Waiting<Option<VarInt>, StoppedError>>,
    over: bool,
    /// h3 has not handed the stream to us yet: it still reads the request's head.
    is_with_h3: bool,
    has_written: bool,
    activity: Arc<Activity>,
}

impl Sending {
    fn new(stream: quinn::SendStream, common: &Common) -> Self {
        let activity = Arc::clone(&common.activity);
        Self {
            stream,
            writing: None,
            delivered: None,
            over: false,
            is_with_h3: true,
            has_written: false,
            activity,
        }
    }
}

impl quic::SendStream<Bytes> for Sending {
    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        while let Some(data) = &mut self.writing {
            if !data.has_remaining() {
                self.writing = None;
                break;
            }
            let written = ready!(Pin::new(&mut self.stream).poll_write(cx, data.chunk()))
                .map_err(write_error)?;
            data.advance(written);
            self.has_written = true;
            self.activity.moved(written);
        }
        Poll::Ready(Ok(()))
    }

    fn send_data<T: Into<WriteBuf<Bytes>>>(&mut self, data: T) -> Result<(), StreamErrorIncoming> {
        if self.writing.is_some() {
            return Err(StreamErrorIncoming::Unknown("written to while not ready".into()));
        }
        self.writing = Some(data.into());
        Ok(())
    }

    /// Ready when the peer has acknowledged everything, or wants no more of it.
    fn poll_finish(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), StreamErrorIncoming>> {
        if self.delivered.is_none() {
            self.stream.finish().map_err(|error| StreamErrorIncoming::Unknown(error.into()))?;
            self.over = true;
            self.delivered = Some(Box::pin(self.stream.stopped()));
        }
        let Some(delivered) = &mut self.delivered else { return Poll::Ready(Ok(())) };
        match ready!(delivered.as_mut().poll(cx)) {
            Ok(_) => Poll::Ready(Ok(())),
            Err(StoppedError::ConnectionLost(error)) => Poll::Ready(Err(on_connection(error))),
            Err(error) => Poll::Ready(Err(StreamErrorIncoming::Unknown(error.into()))),
        }
    }

    fn reset(&mut self, reset_code: u64) {
        self.over = true;
        // Already finished or reset: then there is nothing to abandon.
        let _ = self.stream.reset(code(reset_code));
    }

    fn send_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}

impl Drop for Sending {
    fn drop(&mut self) {
        if self.is_with_h3 && self.has_written {
            // h3 answers 431 by itself and leaves the end to quinn.
            let _ = self.stream.finish();
        } else if !self.over {
            // quinn would finish the stream, and the peer would take a part for the whole.
            let _ = self.stream.reset(code(Code::H3_INTERNAL_ERROR.value()));
        }
    }
}

/// The receiving half of a stream.
pub(in crate::serve) struct Receiving {
    stream: quinn::RecvStream,
    guard: FrameGuard,
    over: bool,
    activity: Arc<Activity>,
}

impl Receiving {
    fn new(stream: quinn::RecvStream, guard: FrameGuard, common: &Common) -> Self {
        Self { stream, guard, over: false, activity: Arc::clone(&common.activity) }
    }
}

impl quic::RecvStream for Receiving {
    type Buf = Bytes;

    fn poll_data(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Bytes>, StreamErrorIncoming>> {
        let chunk = ready!(pin!(self.stream.read_chunk(usize::MAX, true)).poll(cx));
        let Some(chunk) = chunk.map_err(read_error)? else {
            self.over = true;
            return Poll::Ready(Ok(None));
        };
        self.activity.moved(chunk.bytes.len());
        if self.guard.check(&chunk.bytes).is_err() {
            self.stop_sending(Code::H3_EXCESSIVE_LOAD.value());
            let error_code = Code::H3_EXCESSIVE_LOAD.value();
            return Poll::Ready(Err(StreamErrorIncoming::StreamTerminated { error_code }));
        }
        Poll::Ready(Ok(Some(chunk.bytes)))
    }

    fn stop_sending(&mut self, error_code: u64) {
        self.over = true;
        // Already at its end: then there is nothing to stop.
        let _ = self.stream.stop(code(error_code));
    }

    fn recv_id(&self) -> StreamId {
        stream_id(self.stream.id())
    }
}

impl Drop for Receiving {
    fn drop(&mut self) {
        // RFC 9114 §4.1: a server that needs no more of a request says so with H3_NO_ERROR.
        if !self.over {
            let _ = self.stream.stop(code(Code::H3_NO_ERROR.value()));
        }
    }
}

fn code(value: u64) -> VarInt {
    VarInt::from_u64(value).unwrap_or(VarInt::MAX)
}

fn stream_id(id: quinn::StreamId) -> StreamId {
    StreamId::try_from(VarInt::from(id).into_inner())
        .expect("a stream identifier of quinn is below 2^62, as h3 wants it")
}

fn connection_error(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ApplicationClosed(close) => {
            ConnectionErrorIncoming::ApplicationClose { error_code: close.error_code.into_inner() }
        }
        ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        other => ConnectionErrorIncoming::Undefined(Arc::new(other)),
    }
}

fn on_connection(error: ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming { connection_error: connection_error(error) }
}

fn read_error(error: ReadError) -> StreamErrorIncoming {
    match error {
        ReadError::Reset(code) => {
            StreamErrorIncoming::StreamTerminated { error_code: code.into_inner() }
        }
        ReadError::ConnectionLost(error) => on_connection(error),
        other => StreamErrorIncoming::Unknown(Box::new(other)),
    }
}

fn write_error(error: WriteError) -> StreamErrorIncoming {
    match error {
        WriteError::Stopped(code) => {
            StreamErrorIncoming::StreamTerminated { error_code: code.into_inner() }
        }
        WriteError::ConnectionLost(error) => on_connection(error),
        other => StreamErrorIncoming::Unknown(Box::new(other)),
    }
}
