//! The end of an interrupted run: an error at the peer, which would otherwise take what it has for everything.

use std::time::Duration;

use eyas::{Connection, quinn};
use eyas_sctp_tokio::SctpAssociation;
use socket2::{SockRef, Socket};

/// The code with which a QUIC connection is closed, and the reason that the peer shows.
const INTERRUPTED: (quinn::VarInt, &str) = (quinn::VarInt::from_u32(1), "interrupted");
/// How long the last packet may take to be sent by the tasks that do so.
const SENDING: Duration = Duration::from_millis(50);

/// How to end a connection without completing it.
pub(super) enum ConnectionAbort {
    /// CONNECTION_CLOSE with an application's error code (RFC 9000 §10.2).
    Quic(quinn::Connection),
    /// ABORT (RFC 9260 §9.1).
    Sctp(SctpAssociation),
    /// RST, also below TLS, which has no close_notify then.
    Tcp(Socket),
    /// The kernel's SCTP: it is closed as the process ends.
    None,
}

impl ConnectionAbort {
    pub(super) fn from_connection(connection: &Connection) -> Self {
        match (connection.quic(), connection.sctp(), connection.tcp()) {
            (Some(quic), ..) => Self::Quic(quic.clone()),
            (_, Some(association), _) => Self::Sctp(association.clone()),
            (.., Some(tcp)) => SockRef::from(tcp).try_clone().map_or(Self::None, Self::Tcp),
            _ => Self::None,
        }
    }

    /// Ends the connection. Over TCP that takes effect when its last descriptor is closed.
    pub(super) async fn run(self) {
        let (code, reason) = INTERRUPTED;
        match self {
            Self::Quic(quic) => quic.close(code, reason.as_bytes()),
            Self::Sctp(association) => association.abort(reason),
            Self::Tcp(socket) => {
                // If that fails, the connection has ended already.
                let _ = socket.set_linger(Some(Duration::ZERO));
                return;
            }
            Self::None => return,
        }
        tokio::time::sleep(SENDING).await;
    }
}
