//! A connection over the transport that won the race.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
#[cfg(feature = "sctp")]
use eyas_race::evidence::AttemptFailure;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt, ReadBuf, ReadHalf, WriteHalf};

use crate::byte_stream::{ByteStream, ByteTransport};
use crate::connection_info::ConnectionInfo;
pub use crate::feedback::ConnectionFeedback;
#[cfg(feature = "sctp")]
use crate::sctp::SctpStreams;
use crate::tcp_status::TcpStatus;

/// A connection over the transport that won the race.
///
/// A connection can be read and written as a single byte stream right away. Over QUIC this is one
/// bidirectional stream, which the client opens with its first byte and the server waits for; over
/// SCTP it is stream 0. Use [`quic`](Self::quic) or [`sctp`](Self::sctp) to speak QUIC or SCTP
/// yourself.
///
/// Once [`shutdown`](AsyncWriteExt::shutdown) has returned, the connection may be dropped at once, over
/// every transport: what was written still arrives, whether or not the peer has ended its side. The
/// kernel takes care of that for TCP, whose socket is still read in the runtime until the peer has
/// ended, for at most 30 seconds: a kernel resets a connection with unread data. A peer that has
/// everything and still sends more than 1 MiB is reset. QUIC and SCTP continue in the runtime until the peer has acknowledged everything, or accepts nothing for a
/// minute; over QUIC, a peer that does not respond at all is given up after 30 seconds. At most 1024
/// TCP and QUIC connections of a process linger at a time; a further one is closed at once.
/// A program that is about to exit waits for them, with [`close`](Self::close) or
/// [`Endpoint::connections_ended`](crate::Endpoint::connections_ended). A connection that is dropped
/// without a shutdown is closed at once over QUIC, and data in flight is lost: its peer must not take
/// a part of it for the whole.
pub struct Connection {
    stream: ByteStream,
}

impl Connection {
    /// Creates a connection; `read_ahead` are bytes that the peer has already sent.
    pub(crate) fn new(
        transport: ByteTransport,
        info: ConnectionInfo,
        feedback: ConnectionFeedback,
        read_ahead: Bytes,
    ) -> Self {
        Self { stream: ByteStream::new(transport, Arc::new(info), feedback, read_ahead) }
    }

    /// Returns what the connection is, its addresses, and why it was chosen.
    pub fn info(&self) -> &ConnectionInfo {
        self.stream.info()
    }

    /// Like [`info`](Self::info), for callers that keep it longer than the connection.
    pub fn shared_info(&self) -> Arc<ConnectionInfo> {
        self.stream.shared_info()
    }

    /// Returns the QUIC connection, if this is one. It can be cloned and outlives `self`.
    #[cfg(feature = "quic")]
    pub fn quic(&self) -> Option<&quinn::Connection> {
        match self.stream.transport() {
            ByteTransport::Quic(stream) => Some(stream.connection()),
            _ => None,
        }
    }

    /// Returns the socket of a TCP or MPTCP connection, below any TLS. Use it for socket options
    /// and for what the kernel knows of the connection; reading from it or writing to it breaks the
    /// connection.
    pub fn tcp(&self) -> Option<&tokio::net::TcpStream> {
        self.stream.tcp()
    }

    /// Returns a handle that asks the kernel about a TCP or MPTCP connection, whoever reads and
    /// writes its stream by then.
    pub fn tcp_status(&mut self) -> Option<TcpStatus> {
        self.stream.tcp_status()
    }

    /// Returns the SCTP association, if this is one and eyas's own SCTP stack carries it. Stream 0
    /// belongs to the connection. Messages sent on the association are not encrypted even if the
    /// connection uses TLS; streams from [`sctp_stream`](Self::sctp_stream) are.
    #[cfg(feature = "sctp")]
    pub fn sctp(&self) -> Option<&eyas_sctp_tokio::SctpAssociation> {
        match self.stream.transport() {
            ByteTransport::Sctp(stream) => Some(stream.association()),
            ByteTransport::SctpTls(secured) => Some(secured.association()),
            _ => None,
        }
    }

    /// Converts an unencrypted connection into an SCTP association, all of whose streams carry
    /// messages, including stream 0.
    ///
    /// # Errors
    /// Returns the connection if it is not an SCTP association, or if it uses TLS.
    #[cfg(feature = "sctp")]
    pub fn into_sctp(self) -> Result<eyas_sctp_tokio::SctpAssociation, Self> {
        match self.stream.into_sctp() {
            Ok(stream) => Ok(stream.into_association()),
            Err(stream) => Err(Self { stream }),
        }
    }

    /// Converts an unencrypted TCP or MPTCP connection into its socket. The memory no longer learns
    /// how the connection fares.
    ///
    /// # Errors
    /// Returns the connection if it is not TCP or MPTCP, if it uses TLS, or if bytes from the peer
    /// have been read already
    /// ([`Preconnection::until_spoken`](crate::Preconnection::until_spoken)).
    pub fn into_tcp(self) -> Result<tokio::net::TcpStream, Self> {
        self.stream.into_tcp().map_err(|stream| Self { stream })
    }

    /// Opens another pair of SCTP streams as one byte stream: [`SctpStreams::stream`] of
    /// [`sctp_streams`](Self::sctp_streams). Returns `None` if this is not an SCTP association
    /// carried by eyas's own stack.
    ///
    /// # Errors
    /// The same as for [`SctpStreams::stream`].
    #[cfg(feature = "sctp")]
    pub async fn sctp_stream(
        &self,
        stream: eyas_sctp_tokio::protocol::identifier::StreamId,
    ) -> Option<Result<ByteStream, AttemptFailure>> {
        Some(self.sctp_streams()?.stream(stream).await)
    }

    /// Returns a factory of byte streams over the further streams of an SCTP association; it
    /// outlives `self`. `None` if this is not an association carried by eyas's own stack.
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

    /// Converts the connection into one byte stream; over QUIC, into one of its bidirectional
    /// streams.
    ///
    /// # Errors
    /// Returns the connection if it is a QUIC connection that is already closed.
    pub fn into_stream(self) -> Result<ByteStream, Self> {
        #[cfg(feature = "quic")]
        if self.quic().is_some_and(|quic| quic.close_reason().is_some()) {
            return Err(self);
        }
        Ok(self.stream)
    }

    /// Shuts the connection down, and waits until the peer has acknowledged everything that was
    /// written: over QUIC the data and its end, over SCTP the end of the association. Over TCP there is
    /// nothing to wait for, since the kernel takes care of it. Waits as long as the peer takes, so use
    /// a timeout; if the future is dropped, the connection continues to close in the background.
    ///
    /// # Errors
    /// If the connection is lost before that, or the peer stops reading.
    pub async fn close(mut self) -> std::io::Result<()> {
        self.stream.shutdown().await?;
        // Returns at once, except over QUIC.
        self.stream.flush().await?;
        #[cfg(feature = "sctp")]
        if let Some(association) = self.sctp().cloned() {
            // Unread data would close the window of a peer that has not finished.
            drop(self);
            association.shutdown().await?;
        }
        Ok(())
    }

    /// Splits the connection into a read half and a write half.
    pub fn split(self) -> (ReadHalf<ByteStream>, WriteHalf<ByteStream>) {
        tokio::io::split(self.stream)
    }

    /// Returns a handle for reporting to the memory how the connection fared; it can outlive
    /// `self`.
    pub fn feedback(&self) -> ConnectionFeedback {
        self.stream.feedback().clone()
    }

    /// Reports to the memory that the peer's application has answered. Reading from the connection
    /// or its stream does this automatically; callers that read from [`quic`](Self::quic) must call
    /// it themselves.
    pub fn first_byte_seen(&self) {
        self.stream.feedback().first_byte_seen();
    }

    /// Reports to the memory that the connection was established but turned out not to work.
    pub fn broke(&self, failure: eyas_race::evidence::AttemptFailure) {
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
