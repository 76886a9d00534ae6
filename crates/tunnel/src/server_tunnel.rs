//! One session with a server.

use eyas::race::candidate::Transport;
use eyas::race::policy::{Policy, SctpSecurity};
use eyas::race::target::Target;
use eyas::{Connection, Endpoint, KeyFingerprint};
use eyas_relay::destination::Destination;

use crate::error::TunnelError;
use crate::frame::ChannelPurpose;
use crate::link::{ChannelRequests, SessionLink};
use crate::proxied::ServerProxy;
use crate::session::{SessionEnd, SessionLimits, SessionSide};
use crate::sessions::{CurrentSessions, SessionPresence};
use crate::transport::SessionTransport;

/// Connects to a server, through the proxy if there is one and otherwise by a race of its transports, and returns
/// the connection and the key that the server has proved to hold.
///
/// # Errors
/// If there is no connection, or no key.
pub async fn reach(
    endpoint: &Endpoint,
    target: &Target,
    policy: &Policy,
    proxy: Option<&ServerProxy>,
) -> Result<(SessionTransport, KeyFingerprint), TunnelError> {
    if let Some(proxy) = proxy {
        return proxy.reach(endpoint, target, policy).await;
    }
    // DTLS protects messages as well as streams, and a session for each path hides SCTP's headers.
    let policy = Policy { sctp_security: SctpSecurity::Dtls, ..policy.clone() };
    let connected = endpoint.preconnection(target.clone()).policy(policy).connect().await;
    let connection = connected.map_err(|error| match error.rejected_by_peer() {
        Some(failure) => TunnelError::NotAccepted(SessionEnd::Lost(failure.detail.clone())),
        None => error.into(),
    })?;
    let key =
        connection.info().peer_certificates.first().and_then(KeyFingerprint::from_certificate);
    let key = key.ok_or(TunnelError::NoKey)?;
    let closed = |connection: Connection| {
        // A QUIC server that does not accept our key has already closed the connection.
        let reason = connection.quic().and_then(|quic| quic.close_reason());
        let text = reason.map_or("it was closed at once".to_owned(), |why| why.to_string());
        TunnelError::NotAccepted(SessionEnd::Lost(text))
    };
    Ok((SessionTransport::new(connection).map_err(closed)?, key))
}

/// A session with a server.
#[derive(Debug)]
pub struct ServerTunnel {
    pub(crate) link: SessionLink,
    pub(crate) requests: ChannelRequests,
    pub(crate) running: tokio::task::JoinHandle<SessionEnd>,
    pub(crate) transport: Transport,
    /// The transport and the server's address, or the proxy.
    pub(crate) description: String,
}

impl ServerTunnel {
    /// Begins a session over a connection, and waits for the server's HELLO.
    ///
    /// # Errors
    /// If the session ends before that.
    pub async fn begin(
        connection: SessionTransport,
        limits: SessionLimits,
    ) -> Result<Self, TunnelError> {
        let (transport, description) = (connection.transport(), connection.to_string());
        let (link, requests) = SessionLink::new(SessionSide::Client, limits);
        let running_link = link.clone();
        let running =
            tokio::spawn(async move { running_link.run(SessionSide::Client, connection).await });
        let tunnel = Self { link, requests, running, transport, description };
        match tunnel.link.up().await {
            Ok(()) => Ok(tunnel),
            Err(end) => Err(TunnelError::NotAccepted(end)),
        }
    }

    /// Has the server connect to this destination, and returns the stream.
    ///
    /// # Errors
    /// If the server refuses, or cannot connect.
    pub async fn open(
        &self,
        to: Destination,
    ) -> Result<impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + use<>, TunnelError>
    {
        let what = format!("cannot connect to {to} through the tunnel");
        let opened = self.link.open(ChannelPurpose::Connect(to)).await;
        opened.map(|(channel, _)| channel).map_err(|(why, text)| TunnelError::Refused {
            what,
            why,
            text,
        })
    }

    /// Returns the number of streams that both ends use, including the first one.
    pub fn streams(&self) -> usize {
        self.link.lanes()
    }

    /// Adds this session to others under the name of the other end, until the returned value is dropped.
    pub fn enter(&self, sessions: &CurrentSessions, peer: String) -> SessionPresence {
        sessions.enter(peer, self.link.clone())
    }

    /// Waits until the other end has read the data of the channels that have ended, for at most
    /// [`SessionLimits::drain`]. Then sends GOODBYE, and waits for the end.
    pub async fn end(mut self) {
        self.link.drain().await;
        self.link.goodbye("the client stops");
        let _ = (&mut self.running).await;
    }
}

impl Drop for ServerTunnel {
    fn drop(&mut self) {
        self.link.goodbye("the client stops");
    }
}
