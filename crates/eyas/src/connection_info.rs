//! Details of a connection.

mod json;

use std::net::SocketAddr;
use std::time::Duration;

use eyas_race::candidate::{AlpnName, Candidate, Security, Transport};
use eyas_race::evidence::AttemptFailure;
use rustls_pki_types::CertificateDer;

use crate::ech::EchOutcome;

pub use self::json::ConnectionInfoJson;

/// What a connection is, its addresses, and why it was chosen.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// The transport on the wire; an MPTCP attempt that fell back to TCP has `tcp`.
    pub transport: Transport,
    /// Whether MPTCP was requested but the peer or the path only supported TCP.
    pub fell_back: bool,
    /// The security layer.
    pub security: Security,
    /// The version of the security protocol, such as `TLSv1.3`; `None` without security.
    pub protocol: Option<&'static str>,
    /// The negotiated cipher suite, such as `TLS13_AES_128_GCM_SHA256`.
    pub cipher_suite: Option<String>,
    /// The group of TLS's key exchange, such as `X25519MLKEM768`, of all groups the only one that
    /// holds against quantum computers; `None` where it is not known: without TLS, in DTLS, and on
    /// QUIC listeners.
    pub key_exchange: Option<&'static str>,
    /// What became of Encrypted ClientHello (RFC 9849); `None` if it was not offered, or on listeners.
    pub ech: Option<EchOutcome>,
    /// The local address; its IP address is unspecified if the transport does not report it.
    pub local: Option<SocketAddr>,
    /// The peer's address.
    pub remote: SocketAddr,
    /// The negotiated application protocol.
    pub alpn: Option<AlpnName>,
    /// When each stage of the connection was reached.
    pub timings: ConnectionTimings,
    /// The round-trip time of the handshake, if it was measured.
    pub rtt: Option<Duration>,
    /// Whether the memory determined this choice.
    pub from_memory: bool,
    /// Why this candidate was ranked where it was, and anything else worth knowing about it, as
    /// text for people.
    pub reasons: Vec<String>,
    /// The candidates that failed before this one won, and how; also those that went on with a shorter ClientHello, why.
    pub failed: Vec<(Candidate, AttemptFailure)>,
    /// The certificate chain presented by the peer, end-entity certificate first.
    pub peer_certificates: Vec<CertificateDer<'static>>,
}

impl ConnectionInfo {
    /// Returns what is known about a connection before its handshakes.
    pub fn new(transport: Transport, remote: SocketAddr) -> Self {
        Self {
            transport,
            fell_back: false,
            security: Security::None,
            protocol: None,
            cipher_suite: None,
            key_exchange: None,
            ech: None,
            local: None,
            remote,
            alpn: None,
            timings: ConnectionTimings::default(),
            rtt: None,
            from_memory: false,
            reasons: Vec::new(),
            failed: Vec::new(),
            peer_certificates: Vec::new(),
        }
    }

    /// Returns what is known about a connection whose transport was established when it was
    /// accepted.
    pub(crate) fn accepted(
        transport: Transport,
        local: Option<SocketAddr>,
        remote: SocketAddr,
    ) -> Self {
        let timings =
            ConnectionTimings { transport: Some(Duration::ZERO), ..ConnectionTimings::default() };
        Self { local, timings, ..Self::new(transport, remote) }
    }
}

/// When each stage was reached, measured from the moment when the caller asked for the connection;
/// on a listener, from the moment when the peer was accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ConnectionTimings {
    /// DNS returned the first address.
    pub dns: Option<Duration>,
    /// The winning attempt started.
    pub started: Duration,
    /// The peer answered.
    pub answered: Option<Duration>,
    /// The transport was established.
    pub transport: Option<Duration>,
    /// The security layer was established.
    pub security: Option<Duration>,
    /// The opening was sent, in a race that is [won by the first peer to answer
    /// it](crate::Preconnection::until_spoken). If `None`, the caller must send it.
    pub opened: Option<Duration>,
    /// The peer's application sent its first byte, in such a race.
    pub spoke: Option<Duration>,
}
