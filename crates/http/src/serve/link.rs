//! Details of a connection, and those of them that a service sees.

use std::{
    net::SocketAddr,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
};

use rustls_pki_types::CertificateDer;
use tokio::sync::Notify;

use super::{Transport, activity::Activity, budget::Share};

/// The properties of a connection.
#[derive(Debug)]
pub(super) struct Link {
    pub(super) remote: SocketAddr,
    pub(super) local: Option<SocketAddr>,
    pub(super) transport: Transport,
    pub(super) secure: bool,
    /// The result of the TLS handshake, once it is complete.
    pub(super) negotiated: OnceLock<Negotiated>,
    /// Whether the handshake is still in progress, so that requests may be replays.
    pub(super) is_early: Arc<AtomicBool>,
    pub(super) activity: Arc<Activity>,
    pub(super) share: Arc<Share>,
    /// Notified when the connection must be reset because of a deliberate fault.
    pub(super) tear_down: Arc<Notify>,
}

/// The two ends of a stream, and its transport.
pub(super) struct StreamInfo {
    pub(super) remote: SocketAddr,
    pub(super) local: Option<SocketAddr>,
    pub(super) transport: Transport,
    /// Whether it is one of a load balancer whose client uses TLS.
    pub(super) is_encrypted: bool,
    pub(super) activity: Arc<Activity>,
}

/// What a TLS handshake negotiated.
#[derive(Clone, Debug, Default)]
pub(super) struct Negotiated {
    server_name: Option<Arc<str>>,
    alpn: Option<Arc<[u8]>>,
    client_certificates: Option<Arc<[CertificateDer<'static>]>>,
}

impl Negotiated {
    pub(super) fn new(
        server_name: Option<&str>,
        alpn: Option<&[u8]>,
        client_certificates: Option<&[CertificateDer<'static>]>,
    ) -> Self {
        Self {
            server_name: server_name.map(Arc::from),
            alpn: alpn.map(Arc::from),
            client_certificates: client_certificates.map(Arc::from),
        }
    }
}

impl Link {
    /// Returns the information for a service.
    pub(super) fn peer_info(&self) -> PeerInfo {
        let Negotiated { server_name, alpn, client_certificates } =
            self.negotiated.get().cloned().unwrap_or_default();
        PeerInfo {
            remote: self.remote,
            local: self.local,
            transport: self.transport,
            secure: self.secure,
            early: self.is_early.load(Relaxed),
            server_name,
            alpn,
            client_certificates,
        }
    }
}

/// The client and connection of a request, in the extensions of every request that a service gets.
/// The version of HTTP is a property of the request itself.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerInfo {
    /// The address of the client, or of the proxy in front of it; with the PROXY protocol
    /// ([`ServerBuilder::proxy_protocol`](super::ServerBuilder::proxy_protocol)), that of the client
    /// that the load balancer names.
    pub remote: SocketAddr,
    /// The local address, or that of the load balancer, if known; it is known over TCP and QUIC.
    pub local: Option<SocketAddr>,
    /// The transport of the connection.
    pub transport: Transport,
    /// Whether the connection is protected by TLS or DTLS, or the client's to the load balancer is, as that
    /// one says by the PROXY protocol.
    pub secure: bool,
    /// Whether the request arrived before the handshake was complete, and so may be a replay (RFC
    /// 8470). This is only the case for safe methods: other requests are answered with 425 without
    /// the service.
    pub early: bool,
    /// The server name from the handshake (SNI, RFC 6066 §3).
    pub server_name: Option<Arc<str>>,
    /// The application protocol negotiated in the handshake (ALPN, RFC 7301).
    pub alpn: Option<Arc<[u8]>>,
    /// The client's certificate chain, its own certificate first, if the server has [asked for
    /// one](super::ServerBuilder::client_certificates) and the client has one. It was verified.
    pub client_certificates: Option<Arc<[CertificateDer<'static>]>>,
}
