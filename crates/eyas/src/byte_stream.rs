//! A stream of bytes, whatever carries it.

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

/// An ordered, reliable stream of bytes both ways: TCP, MPTCP, one pair of SCTP streams, TLS over
/// these, or one bidirectional QUIC stream. The first byte that the peer sends is told to the memory.
pub struct ByteStream {
    transport: ByteTransport,
    info: Arc<ConnectionInfo>,
    feedback: Feedback,
    /// What the peer said before the caller had the stream, and the caller has not read.
    said: Bytes,
    read_any: bool,
}

/// The transport below a stream of bytes.
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

impl ByteStream {
    pub(crate) fn new(
        transport: ByteTransport,
        info: Arc<ConnectionInfo>,
        feedback: Feedback,
        said: Bytes,
    ) -> Self {
        Self { transport, info, feedback, said, read_any: false }
    }

    pub(crate) fn tcp(&self) -> Option<&TcpStream> {
        match &self.transport {
            ByteTransport::Tcp(tcp) => Some(tcp),
            ByteTransport::Tls(tls) => Some(tls.get_ref().0),
            #[cfg(any(feature = "quic", feature = "sctp"))]
            _ => None,
        }
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

    /// What the peer has said already would be lost with the rest of the stream.
    pub(crate) fn into_tcp(self) -> Result<TcpStream, Self> {
        match self {
            Self { transport: ByteTransport::Tcp(stream), said, .. } if said.is_empty() => {
                Ok(stream)
            }
            other => Err(other),
        }
    }

    /// What the connection below is.
    pub fn info(&self) -> &ConnectionInfo {
        &self.info
    }

    pub(crate) fn shared_info(&self) -> &Arc<ConnectionInfo> {
        &self.info
    }

    /// A handle to tell the memory what became of the connection.
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
        if !self.said.is_empty() {
            let len = self.said.len().min(buf.remaining());
            buf.put_slice(&self.said.split_to(len));
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(match &mut self.transport {
            ByteTransport::Tcp(tcp) => Pin::new(tcp).poll_read(cx, buf),
            ByteTransport::Tls(tls) => Pin::new(tls).poll_read(cx, buf),
            #[cfg(feature = "sctp")]
            ByteTransport::Sctp(sctp) => Pin::new(sctp).poll_read(cx, buf),
            #[cfg(feature = "sctp")]
            ByteTransport::SctpTls(secured) => Pin::new(&mut secured.tls).poll_read(cx, buf),
            #[cfg(feature = "quic")]
            ByteTransport::Quic(quic) => Pin::new(quic).poll_read(cx, buf),
        })?;
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
        match &mut self.transport {
            ByteTransport::Tcp(tcp) => Pin::new(tcp).poll_write(cx, buf),
            ByteTransport::Tls(tls) => Pin::new(tls).poll_write(cx, buf),
            #[cfg(feature = "sctp")]
            ByteTransport::Sctp(sctp) => Pin::new(sctp).poll_write(cx, buf),
            #[cfg(feature = "sctp")]
            ByteTransport::SctpTls(secured) => Pin::new(&mut secured.tls).poll_write(cx, buf),
            #[cfg(feature = "quic")]
            ByteTransport::Quic(quic) => Pin::new(quic).poll_write(cx, buf),
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.transport {
            ByteTransport::Tcp(tcp) => Pin::new(tcp).poll_flush(cx),
            ByteTransport::Tls(tls) => Pin::new(tls).poll_flush(cx),
            #[cfg(feature = "sctp")]
            ByteTransport::Sctp(sctp) => Pin::new(sctp).poll_flush(cx),
            #[cfg(feature = "sctp")]
            ByteTransport::SctpTls(secured) => Pin::new(&mut secured.tls).poll_flush(cx),
            #[cfg(feature = "quic")]
            ByteTransport::Quic(quic) => Pin::new(quic).poll_flush(cx),
        }
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match &mut self.transport {
            ByteTransport::Tcp(tcp) => Pin::new(tcp).poll_shutdown(cx),
            ByteTransport::Tls(tls) => Pin::new(tls).poll_shutdown(cx),
            #[cfg(feature = "sctp")]
            ByteTransport::Sctp(sctp) => Pin::new(sctp).poll_shutdown(cx),
            #[cfg(feature = "sctp")]
            ByteTransport::SctpTls(secured) => Pin::new(&mut secured.tls).poll_shutdown(cx),
            #[cfg(feature = "quic")]
            ByteTransport::Quic(quic) => Pin::new(quic).poll_shutdown(cx),
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match &mut self.transport {
            ByteTransport::Tcp(tcp) => Pin::new(tcp).poll_write_vectored(cx, bufs),
            ByteTransport::Tls(tls) => Pin::new(tls).poll_write_vectored(cx, bufs),
            #[cfg(feature = "sctp")]
            ByteTransport::Sctp(sctp) => Pin::new(sctp).poll_write_vectored(cx, bufs),
            #[cfg(feature = "sctp")]
            ByteTransport::SctpTls(secured) => {
                Pin::new(&mut secured.tls).poll_write_vectored(cx, bufs)
            }
            #[cfg(feature = "quic")]
            ByteTransport::Quic(quic) => Pin::new(quic).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match &self.transport {
            ByteTransport::Tcp(tcp) => tcp.is_write_vectored(),
            ByteTransport::Tls(tls) => tls.is_write_vectored(),
            #[cfg(feature = "sctp")]
            ByteTransport::Sctp(sctp) => sctp.is_write_vectored(),
            #[cfg(feature = "sctp")]
            ByteTransport::SctpTls(secured) => secured.tls.is_write_vectored(),
            #[cfg(feature = "quic")]
            ByteTransport::Quic(_) => false,
        }
    }
}

impl std::fmt::Debug for ByteStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ByteStream").field("info", &self.info).finish_non_exhaustive()
    }
}
