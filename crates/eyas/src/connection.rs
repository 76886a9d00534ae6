//! A connection over whichever transport won.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
#[cfg(feature = "sctp")]
use eyas_race::evidence::Failure;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf, ReadHalf, WriteHalf};

use crate::byte_stream::{ByteStream, ByteTransport};
use crate::connection_info::ConnectionInfo;
pub use crate::feedback::Feedback;
#[cfg(feature = "sctp")]
use crate::sctp::SctpStreams;

/// A connection over whichever transport won.
///
/// It is one stream of bytes to who wants that: reading and writing work at once (over QUIC on
/// one bidirectional stream, opened by the client with the first byte it sends, and awaited by
/// the server; over SCTP on stream 0). [`quic`](Self::quic) gives who speaks QUIC the whole
/// connection, [`sctp`](Self::sctp) who speaks SCTP.
pub struct Connection {
    stream: ByteStream,
}

impl Connection {
    /// `said` is what the peer has said already.
    pub(crate) fn new(
        transport: ByteTransport,
        info: ConnectionInfo,
        feedback: Feedback,
        said: Bytes,
    ) -> Self {
        Self { stream: ByteStream::new(transport, Arc::new(info), feedback, said) }
    }

    /// What the connection is, where it runs, and why it was chosen.
    pub fn info(&self) -> &ConnectionInfo {
        self.stream.info()
    }

    /// As [`info`](Self::info), for who keeps it longer than the connection itself.
    pub fn shared_info(&self) -> Arc<ConnectionInfo> {
        Arc::clone(self.stream.shared_info())
    }

    /// The QUIC connection, if this is one. It can be cloned and outlives `self`.
    #[cfg(feature = "quic")]
    pub fn quic(&self) -> Option<&quinn::Connection> {
        match self.stream.transport() {
            ByteTransport::Quic(stream) => Some(stream.connection()),
            _ => None,
        }
    }

    /// The socket of a TCP or MPTCP connection, below TLS where it has that. It is for what the kernel says
    /// of it and for its options: who reads or writes it breaks the connection.
    pub fn tcp(&self) -> Option<&tokio::net::TcpStream> {
        self.stream.tcp()
    }

    /// The SCTP association, if this is one that eyas carries itself. Stream 0 is the connection's
    /// own. Where the connection has TLS, messages sent here have none;
    /// [`sctp_stream`](Self::sctp_stream) has.
    #[cfg(feature = "sctp")]
    pub fn sctp(&self) -> Option<&crate::sctp::SctpAssociation> {
        match self.stream.transport() {
            ByteTransport::Sctp(stream) => Some(stream.association()),
            ByteTransport::SctpTls(secured) => Some(secured.association()),
            _ => None,
        }
    }

    /// The connection as an association without security, all of whose streams carry messages, also
    /// stream 0.
    ///
    /// # Errors
    /// Gives the connection back if it is not one, or has TLS.
    #[cfg(feature = "sctp")]
    pub fn into_sctp(self) -> Result<crate::sctp::SctpAssociation, Self> {
        match self.stream.into_sctp() {
            Ok(stream) => Ok(stream.into_association()),
            Err(stream) => Err(Self { stream }),
        }
    }

    /// The socket of a TCP or MPTCP connection without security. The memory then hears no more of what
    /// becomes of it.
    ///
    /// # Errors
    /// Gives the connection back if it is none, has TLS, or has heard of its peer already
    /// ([`Preconnection::until_spoken`](crate::Preconnection::until_spoken)).
    pub fn into_tcp(self) -> Result<tokio::net::TcpStream, Self> {
        self.stream.into_tcp().map_err(|stream| Self { stream })
    }

    /// Another pair of SCTP streams as one stream of bytes: [`SctpStreams::stream`] of
    /// [`sctp_streams`](Self::sctp_streams). `None` if this is no SCTP association that eyas carries
    /// itself.
    ///
    /// # Errors
    /// As there.
    #[cfg(feature = "sctp")]
    pub async fn sctp_stream(
        &self,
        stream: crate::sctp::protocol::identifier::StreamId,
    ) -> Option<Result<ByteStream, Failure>> {
        Some(self.sctp_streams()?.stream(stream).await)
    }

    /// What makes streams of bytes of the further streams of an SCTP association, and outlives `self`.
    /// `None` if this is no association that eyas carries itself.
    #[cfg(feature = "sctp")]
    pub fn sctp_streams(&self) -> Option<SctpStreams> {
        let role = match self.stream.transport() {
            ByteTransport::SctpTls(secured) => Some(secured.role().clone()),
            _ => None,
        };
        let association = self.sctp()?.clone();
        let (info, feedback) = (self.shared_info(), self.feedback());
        Some(SctpStreams { association, role, info, feedback })
    }

    /// The connection as one stream of bytes; over QUIC one bidirectional stream of it.
    ///
    /// # Errors
    /// Gives the connection back if it is a QUIC connection that is closed already.
    pub fn into_stream(self) -> Result<ByteStream, Self> {
        #[cfg(feature = "quic")]
        if self.quic().is_some_and(|quic| quic.close_reason().is_some()) {
            return Err(self);
        }
        Ok(self.stream)
    }

    /// Splits into a half to read from and a half to write to.
    pub fn split(self) -> (ReadHalf<ByteStream>, WriteHalf<ByteStream>) {
        tokio::io::split(self.stream)
    }

    /// A handle to tell the memory what became of the connection; it can outlive `self`.
    pub fn feedback(&self) -> Feedback {
        self.stream.feedback().clone()
    }

    /// Tells the memory that the peer's application answered. Reading the connection or its
    /// stream does this by itself; who reads [`quic`](Self::quic) has to say it.
    pub fn first_byte_seen(&self) {
        self.stream.feedback().first_byte_seen();
    }

    /// Tells the memory that the connection, though once up, turned out not to work.
    pub fn broke(&self, failure: eyas_race::evidence::Failure) {
        self.stream.feedback().broke(failure);
    }
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &mut ReadBuf<'_>,
    ) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, buf)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<std::io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[std::io::IoSlice<'_>],
    ) -> Poll<std::io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection").field("info", self.info()).finish_non_exhaustive()
    }
}
