//! A byte stream over any transport.

use std::io;
use std::mem;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use eyas_race::candidate::Transport;
#[cfg(feature = "sctp")]
use eyas_sctp_tokio::SctpStream;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::runtime::Handle;
use tokio_rustls::TlsStream;

use crate::connection_info::ConnectionInfo;
use crate::feedback::ConnectionFeedback;
use crate::graceful_close;
use crate::kernel_tcp;
#[cfg(feature = "quic")]
use crate::quic_stream::QuicStream;
#[cfg(feature = "sctp")]
use crate::sctp::secured::Secured;
use crate::tcp_status::{TcpGuard, TcpStatus};

const UNTIL_DROPPED: &str = "a transport until it is converted or dropped";

/// An ordered, reliable, bidirectional byte stream: TCP, MPTCP, a pair of SCTP streams, TLS over
/// any of these, or one bidirectional QUIC stream. The first byte received from the peer is
/// reported to the memory.
///
/// Once it was shut down it may be dropped at once ([`Connection`](crate::Connection)).
pub struct ByteStream {
    /// Dropped before the transport.
    guard: Option<TcpGuard>,
    /// `None` once it was converted, or is being dropped.
    transport: Option<ByteTransport>,
    info: Arc<ConnectionInfo>,
    feedback: ConnectionFeedback,
    ahead: ReadAhead,
    read_any: bool,
    is_write_vectored: bool,
    is_shut_down: bool,
    /// Whether the end of what the peer sends has been read.
    peer_has_ended: bool,
    runtime: Handle,
}

/// What reads return before the transport is read again.
enum ReadAhead {
    /// What is still unread of the data that arrived before the caller received the stream.
    Data(Bytes),
    /// The error that came after data that had to be returned first.
    Error(io::Error),
}

impl ReadAhead {
    const NOTHING: Self = Self::Data(Bytes::new());

    fn is_nothing(&self) -> bool {
        matches!(self, Self::Data(data) if data.is_empty())
    }
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

    /// Returns whether a read returns one record of TLS, however much more has arrived.
    const fn reads_records(&self) -> bool {
        match self {
            Self::Tls(_) => true,
            #[cfg(feature = "sctp")]
            Self::SctpTls(_) => true,
            _ => false,
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
        feedback: ConnectionFeedback,
        read_ahead: Bytes,
    ) -> Self {
        let is_write_vectored = transport.bytes().is_write_vectored();
        Self {
            guard: None,
            transport: Some(transport),
            info,
            feedback,
            ahead: ReadAhead::Data(read_ahead),
            read_any: false,
            is_write_vectored,
            is_shut_down: false,
            peer_has_ended: false,
            runtime: Handle::current(),
        }
    }

    pub(crate) fn tcp(&self) -> Option<&TcpStream> {
        self.transport().tcp()
    }

    pub(crate) fn tcp_status(&mut self) -> Option<TcpStatus> {
        if self.guard.is_none() {
            self.guard = self.tcp().and_then(TcpGuard::new);
        }
        self.guard.as_ref().map(TcpGuard::status)
    }

    /// Returns whether MPTCP fell back to TCP since the connection was handed over.
    fn has_fallen_back(&self) -> bool {
        self.info.transport == Transport::Mptcp
            && self.tcp().is_some_and(|stream| !kernel_tcp::is_mptcp(stream))
    }

    pub(crate) fn transport(&self) -> &ByteTransport {
        self.transport.as_ref().expect(UNTIL_DROPPED)
    }

    fn bytes(&mut self) -> Pin<&mut dyn ReadWrite> {
        Pin::new(self.transport.as_mut().expect(UNTIL_DROPPED).bytes())
    }

    /// Fills the buffer with what has arrived. A caller that passes each read on, perhaps to another thread, would
    /// otherwise do so for each record of TLS.
    fn poll_arrived(
        &mut self,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let mut before = buf.filled().len();
        ready!(self.bytes().poll_read(cx, buf))?;
        if !self.transport().reads_records() {
            return Poll::Ready(Ok(()));
        }
        while buf.filled().len() > before && buf.remaining() > 0 {
            before = buf.filled().len();
            match self.bytes().poll_read(cx, buf) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => self.ahead = ReadAhead::Error(error),
                Poll::Pending => break,
            }
        }
        Poll::Ready(Ok(()))
    }

    #[cfg(feature = "sctp")]
    pub(crate) fn into_sctp(mut self) -> Result<Box<SctpStream>, Self> {
        match self.transport.take() {
            Some(ByteTransport::Sctp(stream)) => Ok(stream),
            other => {
                self.transport = other;
                Err(self)
            }
        }
    }

    /// Converts it to a TCP socket, unless bytes from the peer have been read already, which would
    /// be lost.
    pub(crate) fn into_tcp(mut self) -> Result<TcpStream, Self> {
        match self.transport.take() {
            Some(ByteTransport::Tcp(stream)) if self.ahead.is_nothing() => Ok(stream),
            other => {
                self.transport = other;
                Err(self)
            }
        }
    }

    /// Returns the details of the underlying connection.
    pub fn info(&self) -> &ConnectionInfo {
        &self.info
    }

    /// Like [`info`](Self::info), for callers that keep it longer than the stream.
    pub fn shared_info(&self) -> Arc<ConnectionInfo> {
        Arc::clone(&self.info)
    }

    /// Returns a handle for reporting to the memory how the connection fared.
    pub fn feedback(&self) -> &ConnectionFeedback {
        &self.feedback
    }
}

/// Returns an error with a text for people: that of rustls for a connection that ends without the alert
/// close_notify (RFC 8446 §6.1) refers to its own manual. Only an end of the stream below TLS is an
/// unexpected one: without TLS it is an ordinary end.
fn in_words(error: io::Error, is_over_tls: bool) -> io::Error {
    match is_over_tls && error.kind() == io::ErrorKind::UnexpectedEof {
        true => io::Error::new(
            error.kind(),
            "the peer closed the connection without ending TLS, so that data may be missing",
        ),
        false => error,
    }
}

impl AsyncRead for ByteStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match mem::replace(&mut self.ahead, ReadAhead::NOTHING) {
            ReadAhead::Data(mut data) if !data.is_empty() => {
                buf.put_slice(&data.split_to(data.len().min(buf.remaining())));
                self.ahead = ReadAhead::Data(data);
                return Poll::Ready(Ok(()));
            }
            ReadAhead::Data(_) => {}
            ReadAhead::Error(error) => {
                return Poll::Ready(Err(in_words(error, self.transport().reads_records())));
            }
        }
        let (before, has_room) = (buf.filled().len(), buf.remaining() > 0);
        let arrived = ready!(self.poll_arrived(cx, buf));
        arrived.map_err(|error| in_words(error, self.transport().reads_records()))?;
        let has_read = buf.filled().len() > before;
        self.peer_has_ended |= has_room && !has_read;
        if !self.read_any && has_read {
            self.read_any = true;
            match self.has_fallen_back() {
                true => self.feedback.fell_back(),
                false => self.feedback.first_byte_seen(),
            }
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
        self.bytes().poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.bytes().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.bytes().poll_shutdown(cx))?;
        self.is_shut_down = true;
        Poll::Ready(Ok(()))
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.bytes().poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.is_write_vectored
    }
}

/// Returns the socket below TLS.
fn into_socket(tls: TlsStream<TcpStream>) -> TcpStream {
    match tls {
        TlsStream::Client(tls) => tls.into_inner().0,
        TlsStream::Server(tls) => tls.into_inner().0,
    }
}

impl Drop for ByteStream {
    fn drop(&mut self) {
        self.guard = None;
        if !self.is_shut_down || self.peer_has_ended {
            return;
        }
        match self.transport.take() {
            Some(ByteTransport::Tcp(tcp)) => graceful_close::tcp(&self.runtime, tcp),
            Some(ByteTransport::Tls(tls)) => graceful_close::tcp(&self.runtime, into_socket(*tls)),
            // The others linger below.
            _ => {}
        }
    }
}

impl std::fmt::Debug for ByteStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ByteStream").field("info", &self.info).finish_non_exhaustive()
    }
}
