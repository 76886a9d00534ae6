//! Channels: streams of one connection where the transport has them, otherwise connections.

use eyas::SctpStreams;
use eyas::{Connection, TcpStatus, quinn};
use eyas_sctp_tokio::SctpAssociation;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::OwnedSemaphorePermit;

/// The code with which a QUIC connection is closed once a test is over.
const OVER: quinn::VarInt = quinn::VarInt::from_u32(0);

/// A stream of bytes in both directions.
pub(crate) trait ReadWrite: AsyncRead + AsyncWrite + Send + Unpin {}

impl<S: AsyncRead + AsyncWrite + Send + Unpin> ReadWrite for S {}

/// A channel of a test.
pub(crate) struct TestChannel {
    pub(crate) stream: Box<dyn ReadWrite>,
    /// Of a channel that is a TCP or MPTCP connection.
    pub(crate) tcp: Option<TcpStatus>,
    /// Limits the connections of a server.
    pub(crate) permit: Option<OwnedSemaphorePermit>,
}

impl TestChannel {
    /// Returns a connection as one channel.
    pub(crate) fn from_connection(
        mut connection: Connection,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Self {
        let tcp = connection.tcp_status();
        Self { stream: Box::new(connection), tcp, permit }
    }

    /// Returns a stream of a connection that has several.
    pub(crate) fn from_stream(stream: impl ReadWrite + 'static) -> Self {
        Self { stream: Box::new(stream), tcp: None, permit: None }
    }

    pub(crate) fn from_quic((send, receive): (quinn::SendStream, quinn::RecvStream)) -> Self {
        Self::from_stream(tokio::io::join(receive, send))
    }
}

/// Where further channels beside the first come from.
#[derive(Clone)]
pub(crate) enum ChannelSource {
    /// Each is a connection of its own: TCP and MPTCP.
    Connections,
    /// Streams of this connection.
    Quic(quinn::Connection),
    /// Pairs of streams of this association, and the association without them.
    Sctp(SctpStreams, SctpAssociation),
}

impl ChannelSource {
    pub(crate) fn of_connection(connection: &Connection) -> Self {
        if let Some(quic) = connection.quic() {
            return Self::Quic(quic.clone());
        }
        match connection.sctp_streams() {
            Some(streams) => {
                let association = streams.association().clone();
                Self::Sctp(streams, association)
            }
            None => Self::Connections,
        }
    }

    /// Ends a connection whose data nobody needs any more.
    pub(crate) fn close(&self) {
        match self {
            Self::Connections => {}
            Self::Quic(quic) => quic.close(OVER, b"the test is over"),
            Self::Sctp(_, association) => association.abort("the test is over"),
        }
    }
}
