//! HTTP/3 over quinn.

use std::{
    future::Future,
    pin::pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::Bytes;
use eyas_h3::code::ErrorCode;
use futures_util::FutureExt as _;
use quinn::{ConnectionError, ReadError, StoppedError, VarInt, WriteError};

use super::transport::{
    PeerCode, QuicConnection, QuicConnectionEnd, QuicRecvStream, QuicSendStream, QuicStreamEnd,
    Stopped,
};

impl QuicConnection for quinn::Connection {
    type SendStream = quinn::SendStream;
    type RecvStream = quinn::RecvStream;

    #[cfg(feature = "client")]
    async fn open_bidirectional(
        &self,
    ) -> Result<(quinn::SendStream, quinn::RecvStream), QuicConnectionEnd> {
        Ok(self.open_bi().await?)
    }

    fn open_unidirectional(
        &self,
    ) -> impl Future<Output = Result<quinn::SendStream, QuicConnectionEnd>> + Send + 'static {
        let connection = self.clone();
        async move { Ok(connection.open_uni().await?) }
    }

    // No async blocks: each idle connection waits for both, and a block is larger than what it awaits.

    fn accept_bidirectional(
        &self,
    ) -> impl Future<Output = Result<(quinn::SendStream, quinn::RecvStream), QuicConnectionEnd>> + Send
    {
        self.accept_bi().map(|accepted| Ok(accepted?))
    }

    fn accept_unidirectional(
        &self,
    ) -> impl Future<Output = Result<quinn::RecvStream, QuicConnectionEnd>> + Send {
        self.accept_uni().map(|accepted| Ok(accepted?))
    }

    fn close(&self, code: ErrorCode, reason: &str) {
        quinn::Connection::close(self, varint(code), reason.as_bytes());
    }

    fn max_datagram_bytes(&self) -> Option<usize> {
        self.max_datagram_size()
    }

    fn send_datagram(&self, datagram: Bytes) -> bool {
        quinn::Connection::send_datagram(self, datagram).is_ok()
    }

    async fn read_datagram(&self) -> Result<Bytes, QuicConnectionEnd> {
        Ok(quinn::Connection::read_datagram(self).await?)
    }
}

impl QuicSendStream for quinn::SendStream {
    fn id(&self) -> u64 {
        stream_id(quinn::SendStream::id(self))
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut [Bytes],
    ) -> Poll<Result<(), QuicStreamEnd>> {
        // The future holds nothing but its arguments, so it can be dropped.
        ready!(pin!(self.write_chunks(chunks)).poll(cx))?;
        Poll::Ready(Ok(()))
    }

    fn finish(&mut self) -> Result<(), QuicStreamEnd> {
        let finished = quinn::SendStream::finish(self);
        finished.map_err(|error| QuicStreamEnd::Unusable(Arc::new(error)))
    }

    fn reset(&mut self, code: ErrorCode) {
        // This fails if the stream is already finished or reset, and then there is nothing to abort.
        let _ = quinn::SendStream::reset(self, varint(code));
    }

    fn stopped(&self) -> impl Future<Output = Stopped> + Send + Sync + 'static {
        quinn::SendStream::stopped(self).map(|stopped| Ok(stopped?.map(code)))
    }
}

impl QuicRecvStream for quinn::RecvStream {
    fn id(&self) -> u64 {
        stream_id(quinn::RecvStream::id(self))
    }

    fn poll_read(
        &mut self,
        cx: &mut Context<'_>,
        chunks: &mut [Bytes],
    ) -> Poll<Result<Option<usize>, QuicStreamEnd>> {
        // The future holds nothing but its arguments, so it can be dropped.
        Poll::Ready(Ok(ready!(pin!(self.read_chunks(chunks)).poll(cx))?))
    }

    fn stop(&mut self, code: ErrorCode) {
        // This fails if the stream has already ended, and then there is nothing to stop.
        let _ = quinn::RecvStream::stop(self, varint(code));
    }
}

impl From<ConnectionError> for QuicConnectionEnd {
    fn from(error: ConnectionError) -> Self {
        match error {
            ConnectionError::ApplicationClosed(close) => Self::ClosedByPeer(code(close.error_code)),
            ConnectionError::TimedOut => Self::TimedOut,
            ConnectionError::LocallyClosed => Self::ClosedHere,
            other => Self::Failed(Arc::new(other)),
        }
    }
}

impl From<ReadError> for QuicStreamEnd {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Reset(reset) => Self::Aborted(code(reset)),
            ReadError::ConnectionLost(error) => Self::Connection(error.into()),
            other => Self::Unusable(Arc::new(other)),
        }
    }
}

impl From<WriteError> for QuicStreamEnd {
    fn from(error: WriteError) -> Self {
        match error {
            WriteError::Stopped(stopped) => Self::Aborted(code(stopped)),
            WriteError::ConnectionLost(error) => Self::Connection(error.into()),
            other => Self::Unusable(Arc::new(other)),
        }
    }
}

impl From<StoppedError> for QuicStreamEnd {
    fn from(error: StoppedError) -> Self {
        match error {
            StoppedError::ConnectionLost(error) => Self::Connection(error.into()),
            other => Self::Unusable(Arc::new(other)),
        }
    }
}

fn code(value: VarInt) -> PeerCode {
    PeerCode(value.into_inner())
}

fn varint(code: ErrorCode) -> VarInt {
    VarInt::from_u64(code.value()).unwrap_or(VarInt::MAX)
}

fn stream_id(id: quinn::StreamId) -> u64 {
    VarInt::from(id).into_inner()
}
