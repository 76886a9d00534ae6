//! An adapter for the h3 crate over noq, because there is no published one.
//!
//! It is built like h3-quinn 0.0.10, with the same boxes of the same lifetime and the same calls into QUIC, so that
//! only the QUIC stacks differ in the benchmark. It distinguishes fewer errors, because they are only printed.

mod stream;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Buf;
use futures_util::stream::{Stream, StreamExt, unfold};
use h3::error::Code;
use h3::quic::{self, ConnectionErrorIncoming, StreamErrorIncoming};
use noq::{AcceptBi, AcceptUni, ConnectionError, OpenBi, OpenUni, VarInt};

pub use stream::{BidiStream, RecvStream, SendStream};

/// A stream of the outputs of a future that is created again each time.
type Repeated<F> = Pin<Box<dyn Stream<Item = <F as Future>::Output> + Send + Sync>>;

/// An [`h3::quic::Connection`] over noq.
pub struct Connection {
    opener: OpenStreams,
    incoming_bi: Repeated<AcceptBi<'static>>,
    incoming_uni: Repeated<AcceptUni<'static>>,
}

impl Connection {
    /// Wraps an established connection.
    pub fn new(connection: noq::Connection) -> Self {
        let bi = unfold(connection.clone(), |it| async { Some((it.accept_bi().await, it)) });
        let uni = unfold(connection.clone(), |it| async { Some((it.accept_uni().await, it)) });
        let opener = OpenStreams { connection, opening_bi: None, opening_uni: None };
        Self { opener, incoming_bi: Box::pin(bi), incoming_uni: Box::pin(uni) }
    }
}

impl<B: Buf> quic::Connection<B> for Connection {
    type RecvStream = RecvStream;
    type OpenStreams = OpenStreams;

    fn poll_accept_recv(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::RecvStream, ConnectionErrorIncoming>> {
        let accepted =
            ready!(self.incoming_uni.poll_next_unpin(cx)).expect("the stream is endless");
        Poll::Ready(accepted.map(RecvStream::new).map_err(connection_error))
    }

    fn poll_accept_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, ConnectionErrorIncoming>> {
        let accepted = ready!(self.incoming_bi.poll_next_unpin(cx)).expect("the stream is endless");
        Poll::Ready(accepted.map(BidiStream::new).map_err(connection_error))
    }

    fn opener(&self) -> Self::OpenStreams {
        self.opener.clone()
    }
}

impl<B: Buf> quic::OpenStreams<B> for Connection {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, StreamErrorIncoming>> {
        self.opener.poll_open_bidi(cx)
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::SendStream, StreamErrorIncoming>> {
        self.opener.poll_open_send(cx)
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        quic::OpenStreams::<B>::close(&mut self.opener, code, reason);
    }
}

/// Opens streams on a connection.
pub struct OpenStreams {
    connection: noq::Connection,
    opening_bi: Option<Repeated<OpenBi<'static>>>,
    opening_uni: Option<Repeated<OpenUni<'static>>>,
}

impl<B: Buf> quic::OpenStreams<B> for OpenStreams {
    type BidiStream = BidiStream<B>;
    type SendStream = SendStream<B>;

    fn poll_open_bidi(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::BidiStream, StreamErrorIncoming>> {
        let opening = self.opening_bi.get_or_insert_with(|| {
            let connection = self.connection.clone();
            Box::pin(unfold(connection, |it| async { Some((it.open_bi().await, it)) }))
        });
        let opened = ready!(opening.poll_next_unpin(cx)).expect("the stream is endless");
        Poll::Ready(opened.map(BidiStream::new).map_err(stream_error))
    }

    fn poll_open_send(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Self::SendStream, StreamErrorIncoming>> {
        let opening = self.opening_uni.get_or_insert_with(|| {
            let connection = self.connection.clone();
            Box::pin(unfold(connection, |it| async { Some((it.open_uni().await, it)) }))
        });
        let opened = ready!(opening.poll_next_unpin(cx)).expect("the stream is endless");
        Poll::Ready(opened.map(SendStream::new).map_err(stream_error))
    }

    fn close(&mut self, code: Code, reason: &[u8]) {
        let code = VarInt::from_u64(code.value()).expect("HTTP/3 error codes fit");
        self.connection.close(code, reason);
    }
}

impl Clone for OpenStreams {
    fn clone(&self) -> Self {
        Self { connection: self.connection.clone(), opening_bi: None, opening_uni: None }
    }
}

fn connection_error(error: ConnectionError) -> ConnectionErrorIncoming {
    match error {
        ConnectionError::ApplicationClosed(close) => {
            ConnectionErrorIncoming::ApplicationClose { error_code: close.error_code.into() }
        }
        ConnectionError::TimedOut => ConnectionErrorIncoming::Timeout,
        error => ConnectionErrorIncoming::Undefined(Arc::new(error)),
    }
}

fn stream_error(error: ConnectionError) -> StreamErrorIncoming {
    StreamErrorIncoming::ConnectionErrorIncoming { connection_error: connection_error(error) }
}
