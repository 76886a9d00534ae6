//! What HTTP/3 needs of QUIC (RFC 9114 §2): streams that end, are reset and are stopped, datagrams, and the reason why a
//! connection ended.

use std::{
    error::Error,
    fmt,
    future::{Future, poll_fn},
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use eyas_h3::code::ErrorCode;

/// An error of the implementation of QUIC.
pub(crate) type QuicFailure = Arc<dyn Error + Send + Sync>;

/// The error code of a peer, which may be one that is not known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PeerCode(pub(crate) u64);

impl PeerCode {
    /// Returns whether it is this one.
    pub(crate) fn is(self, code: ErrorCode) -> bool {
        self.0 == code.value()
    }
}

impl fmt::Display for PeerCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match ErrorCode::ALL.into_iter().find(|code| self.is(*code)) {
            Some(code) => code.fmt(f),
            None => write!(f, "the unknown code {:#x}", self.0),
        }
    }
}

/// Why a connection has ended.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum QuicConnectionEnd {
    /// The peer closed it.
    #[error("the peer closed the connection: {0}")]
    ClosedByPeer(PeerCode),
    /// This side closed it.
    #[error("the connection was closed")]
    ClosedHere,
    /// The peer was silent for too long.
    #[error("the QUIC connection timed out")]
    TimedOut,
    /// QUIC itself failed.
    #[error("{0}")]
    Failed(QuicFailure),
}

/// Why a half of a stream carries no more.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum QuicStreamEnd {
    /// The peer reset the stream, or asked to stop (RFC 9000 §2.4).
    #[error("the peer reset the stream: {0}")]
    Aborted(PeerCode),
    /// The connection has ended.
    #[error("{0}")]
    Connection(QuicConnectionEnd),
    /// It was ended or stopped by this side, or belonged to early data that the peer rejected.
    #[error("{0}")]
    Unusable(QuicFailure),
}

/// A connection. Clones share it.
pub(crate) trait QuicConnection: Clone + Send + Sync + 'static {
    /// The sending half of a stream.
    type SendStream: QuicSendStream;
    /// The receiving half of a stream.
    type RecvStream: QuicRecvStream;

    /// Opens a bidirectional stream as soon as the peer allows one.
    #[cfg(feature = "client")]
    fn open_bidirectional(
        &self,
    ) -> impl Future<Output = Result<(Self::SendStream, Self::RecvStream), QuicConnectionEnd>> + Send;

    /// Opens a unidirectional stream as soon as the peer allows one.
    fn open_unidirectional(
        &self,
    ) -> impl Future<Output = Result<Self::SendStream, QuicConnectionEnd>> + Send + 'static;

    /// Waits for the next bidirectional stream of the peer.
    fn accept_bidirectional(
        &self,
    ) -> impl Future<Output = Result<(Self::SendStream, Self::RecvStream), QuicConnectionEnd>> + Send;

    /// Waits for the next unidirectional stream of the peer.
    fn accept_unidirectional(
        &self,
    ) -> impl Future<Output = Result<Self::RecvStream, QuicConnectionEnd>> + Send;

    /// Closes the connection at once (RFC 9000 §10.2).
    fn close(&self, code: ErrorCode, reason: &str);

    /// Returns the size of the largest datagram (RFC 9221) that can be sent, if there are any.
    fn max_datagram_bytes(&self) -> Option<usize>;

    /// Sends a datagram, unless it is too large. If too many are queued, the oldest is dropped.
    fn send_datagram(&self, datagram: Bytes) -> bool;

    /// Waits for the next datagram.
    fn read_datagram(&self) -> impl Future<Output = Result<Bytes, QuicConnectionEnd>> + Send;
}

/// The sending half of a stream.
pub(crate) trait QuicSendStream: Send + Sync + Unpin + 'static {
    /// Returns the identifier of the stream.
    fn id(&self) -> u64;

    /// Writes some of the chunks without copying them, and shortens them by what it has written.
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut [Bytes],
    ) -> Poll<Result<(), QuicStreamEnd>>;

    /// Ends the stream after what was written.
    fn finish(&mut self) -> Result<(), QuicStreamEnd>;

    /// Aborts the stream. Does nothing if it has ended.
    fn reset(&mut self, code: ErrorCode);

    /// Waits until the peer asks to stop, with its code, or has acknowledged all of a stream that was finished.
    fn stopped(&self) -> impl Future<Output = Stopped> + Send + Sync + 'static;
}

/// The code with which the peer asked to stop, or `None` if it has acknowledged all of a stream.
pub(crate) type Stopped = Result<Option<PeerCode>, QuicStreamEnd>;

/// Writes all of the chunks.
pub(super) async fn write_all<S: QuicSendStream>(
    stream: &mut S,
    chunks: &mut [Bytes],
) -> Result<(), QuicStreamEnd> {
    poll_fn(|cx| poll_write_all(stream, cx, chunks)).await
}

/// Writes the chunks, and is ready when all are written.
pub(super) fn poll_write_all<S: QuicSendStream>(
    stream: &mut S,
    cx: &mut Context<'_>,
    chunks: &mut [Bytes],
) -> Poll<Result<(), QuicStreamEnd>> {
    while let Some(first) = chunks.iter().position(|chunk| !chunk.is_empty()) {
        ready!(stream.poll_write(cx, &mut chunks[first..]))?;
    }
    Poll::Ready(Ok(()))
}

/// The receiving half of a stream.
pub(crate) trait QuicRecvStream: Send + Sync + Unpin + 'static {
    /// Returns the identifier of the stream.
    fn id(&self) -> u64;

    /// Reads chunks that have arrived, in order, and returns their number, or `None` at the end of the stream. What is
    /// not read keeps the peer's window closed.
    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut [Bytes],
    ) -> Poll<Result<Option<usize>, QuicStreamEnd>>;

    /// Asks the peer to stop. Does nothing if the stream has ended.
    fn stop(&mut self, code: ErrorCode);
}
