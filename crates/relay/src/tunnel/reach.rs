//! One session with a server.

use eyas::race::candidate::Transport;
use eyas::race::policy::Policy;
use eyas::race::target::Target;
use eyas::{ConnectError, Connection, Endpoint, KeyFingerprint};

use super::carry::Carrier;
use super::forward::Place;
use super::frame::{Purpose, Why};
use super::link::{Link, Questions};
use super::session::{End, SessionLimits, Side};
use super::sessions::{Presence, Sessions};
use crate::handshake::Destination;

/// Why a tunnel cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TunnelError {
    /// Nothing can be connected to.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The connection shows no key.
    #[error("the server presented no key")]
    NoKey,
    /// The session ended before it had begun.
    #[error("the server does not accept this key, or serves no tunnels: {0}")]
    NotLetIn(End),
    /// It cannot be listened here.
    #[error("cannot listen at {0}: {1}")]
    Listen(Place, String),
    /// The other end does not give what was asked for.
    #[error("{what}: {words}")]
    Refused {
        /// What was asked for.
        what: String,
        /// Why it is not given.
        why: Why,
        /// The same in words.
        words: String,
    },
    /// The session is over.
    #[error("the session is over: {0}")]
    Over(End),
}

/// A connection to a server, and the key that it has proved to hold.
pub async fn reach(
    endpoint: &Endpoint,
    target: &Target,
    policy: &Policy,
) -> Result<(Carrier, KeyFingerprint), TunnelError> {
    let connecting = endpoint.preconnection(target.clone()).policy(policy.clone()).connect();
    let connection = connecting.await?;
    let key = connection.info().peer_certificates.first().and_then(KeyFingerprint::of);
    let key = key.ok_or(TunnelError::NoKey)?;
    let closed = |connection: Connection| {
        // A QUIC server that does not accept our key has said so by now.
        let reason = connection.quic().and_then(|quic| quic.close_reason());
        let words = reason.map_or("it was closed at once".to_owned(), |why| why.to_string());
        TunnelError::NotLetIn(End::Lost(words))
    };
    Ok((Carrier::new(connection).map_err(closed)?, key))
}

/// A session with a server.
#[derive(Debug)]
pub struct Tunnel {
    pub(super) link: Link,
    pub(super) questions: Questions,
    pub(super) running: tokio::task::JoinHandle<End>,
    pub(super) transport: Transport,
    /// The transport and whom it leads to.
    pub(super) way: String,
}

impl Tunnel {
    /// Begins a session over a connection, and waits until the server has introduced itself.
    pub async fn begin(carrier: Carrier, limits: SessionLimits) -> Result<Self, TunnelError> {
        let (transport, way) = (carrier.info().transport, carrier.to_string());
        let (link, questions) = Link::new(Side::Client, limits);
        let carried = link.clone();
        let running = tokio::spawn(async move { carried.run(Side::Client, carrier).await });
        let tunnel = Self { link, questions, running, transport, way };
        match tunnel.link.up().await {
            Ok(()) => Ok(tunnel),
            Err(end) => Err(TunnelError::NotLetIn(end)),
        }
    }

    /// Has the server connect to this destination, and gives what it has connected.
    pub async fn open(
        &self,
        to: Destination,
    ) -> Result<impl tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin + Send + use<>, TunnelError>
    {
        let what = format!("cannot connect to {to} through the tunnel");
        let opened = self.link.open(Purpose::Connect(to)).await;
        opened.map(|(channel, _)| channel).map_err(|(why, words)| TunnelError::Refused {
            what,
            why,
            words,
        })
    }

    /// Streams of the transport that both ends use, the first included.
    pub fn streams(&self) -> usize {
        self.link.lanes()
    }

    /// Is among these sessions for as long as what this gives is kept, under the name of the other end.
    pub fn enter(&self, sessions: &Sessions, peer: String) -> Presence {
        sessions.enter(peer, self.link.clone())
    }

    /// Waits until the other end has passed on what was said on the channels that have ended, for as
    /// long as the [limits](SessionLimits::drain) let it, says goodbye, and waits for the end.
    pub async fn end(mut self) {
        self.link.drain().await;
        self.link.goodbye("the client stops");
        let _ = (&mut self.running).await;
    }
}

impl Drop for Tunnel {
    fn drop(&mut self) {
        self.link.goodbye("the client stops");
    }
}
