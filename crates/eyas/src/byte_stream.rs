//! A byte stream over any transport.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsStream;

use crate::connection_info::ConnectionInfo;
use crate::feedback::Feedback;
#[cfg(feature = "quic")]
use crate::quic_stream::QuicStream;
#[cfg(feature = "sctp")]
use crate::sctp::{SctpStream, secured::Secured};
use crate::tcp_status::{TcpGuard, TcpStatus};

/// An ordered, reliable, bidirectional byte stream: TCP, MPTCP, a pair of SCTP streams, TLS over
/// any of these, or one bidirectional QUIC stream. The first byte received from the peer is
/// reported to the memory.
pub struct ByteStream {
    /// Dropped before the transport.
    guard: Option<TcpGuard>,
    transport: ByteTransport,
    info: Arc<ConnectionInfo>,
    feedback: Feedback,
    /// Data from the peer that was read before the caller received the stream, and is still unread.
    read_ahead: Bytes,
    read_any: bool,
    is_write_vectored: bool,
}

/// A stream of bytes that can be read and written.
pub(crate) trait ReadWrite: AsyncRead + AsyncWrite + Send + Sync + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Sync + Unpin> ReadWrite for S {}

/// The transport below a byte stream.
pub(crate) enum ByteTransport {
    Tcp(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
    #[cfg(feature = "sctp")]
    Sctp(Box<SctpStream>),
    #[cfg(feature = "sctp")]
    SctpTls(Box<Secured>),
    #[cfg(feature = "quic")]
    Quic(Box<QuicStream>),
}

impl ByteTransport {
    /// Returns the TCP connection below it, if there is one.
    pub(crate) fn tcp(&self) -> Option<&TcpStream> {
        match self {
            Self::Tcp(tcp) => Some(tcp),
            Self::Tls(tls) => Some(tls.get_ref().0),
            #[cfg(any(feature = "quic", feature = "sctp"))]
            _ => None,
        }
    }

    /// Returns the underlying byte stream.
    pub(crate) fn bytes(&mut self) -> &mut dyn ReadWrite {
        match self {
            Self::Tcp(tcp) => tcp,
            Self::Tls(tls) => tls,
            #[cfg(feature = "sctp")]
            Self::Sctp(sctp) => sctp,
            #[cfg(feature = "sctp")]
            Self::SctpTls(secured) => &mut secured.tls,
            #[cfg(feature = "quic")]
            Self::Quic(quic) => quic,
        }
    }
}

impl ByteStream {
    pub(crate) fn new(
        mut transport: ByteTransport,
        info: Arc<ConnectionInfo>,
        feedback: Feedback,
        read_ahead: Bytes,
    ) -> Self {
        let is_write_vectored = transport.bytes().is_write_vectored();
        let read_any = false;
        Self { guard: None, transport, info, feedback, read_ahead, read_any, is_write_vectored }
    }

    pub(crate) fn tcp(&self) -> Option<&TcpStream> {
        self.transport.tcp()
    }

    pub(crate) fn tcp_status(&mut self) -> Option<TcpStatus> {
        if self.guard.is_none() {
            self.guard = self.tcp().map(TcpGuard::new);
        }
        self.guard.as_ref().map(TcpGuard::status)
    }

    #[cfg(any(feature = "quic", feature = "sctp"))]
    pub(crate) fn transport(&self) -> &ByteTransport {
        &self.transport
    }

    #[cfg(feature = "sctp")]
    pub(crate) fn into_sctp(self) -> Result<Box<SctpStream>, Self> {
        match self {
            Self { transport: ByteTransport::Sctp(stream), .. } => Ok(stream),
            other => Err(other),
        }
    }

    /// Converts it to a TCP socket, unless bytes from the peer have been read already, which would
    /// be lost.
    pub(crate) fn into_tcp(self) -> Result<TcpStream, Self> {
        match self {
            Self { transport: ByteTransport::Tcp(stream), read_ahead, .. }
                if read_ahead.is_empty() =>
            {
                Ok(stream)
            }
            other => Err(other),
        }
    }

    /// Returns the details of the underlying connection.
    pub fn info(&self) -> &ConnectionInfo {
        &self.info
    }

    pub(crate) fn shared_info(&self) -> &Arc<ConnectionInfo> {
        &self.info
    }

    /// Returns a handle for reporting to the memory how the connection fared.
    pub fn feedback(&self) -> &Feedback {
        &self.feedback
    }
}

impl AsyncRead for ByteStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if !self.read_ahead.is_empty() {
            let len = self.read_ahead.len().min(buf.remaining());
            buf.put_slice(&self.read_ahead.split_to(len));
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(self.transport.bytes()).poll_read(cx, buf))?;
        if !self.read_any && buf.filled().len() > before {
            self.read_any = true;
            self.feedback.first_byte_seen();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ByteStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.transport.bytes()).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.transport.bytes()).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(self.transport.bytes()).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(self.transport.bytes()).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.is_write_vectored
    }
}

impl std::fmt::Debug for ByteStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ByteStream").field("info", &self.info).finish_non_exhaustive()
    }
}
