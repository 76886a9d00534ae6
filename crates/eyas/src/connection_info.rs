//! What there is to say about a connection.

mod json;

use std::net::SocketAddr;
use std::time::Duration;

use eyas_race::candidate::{Alpn, Candidate, Security, Transport};
use eyas_race::evidence::Failure;
use rustls_pki_types::CertificateDer;

pub use self::json::ConnectionInfoJson;

/// What a connection is, where it runs, and why it was chosen.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct ConnectionInfo {
    /// The transport on the wire; an MPTCP attempt that fell back says `tcp`.
    pub transport: Transport,
    /// Whether MPTCP was asked for and the peer or the path gave plain TCP.
    pub fell_back: bool,
    /// What protects it.
    pub security: Security,
    /// The version of the security protocol, such as `TLSv1.3`; `None` without security.
    pub protocol: Option<&'static str>,
    /// The cipher suite agreed on, such as `TLS13_AES_128_GCM_SHA256`.
    pub cipher_suite: Option<String>,
    /// The local address; the IP address is unspecified where the transport does not tell.
    pub local: Option<SocketAddr>,
    /// The peer's address.
    pub remote: SocketAddr,
    /// The application protocol agreed on.
    pub alpn: Option<Alpn>,
    /// When what was reached.
    pub timings: Timings,
    /// The round trip time of the handshake, if it was measured.
    pub rtt: Option<Duration>,
    /// Whether the memory led here.
    pub from_memory: bool,
    /// Why this candidate stood where it stood, and what to know about it, for people.
    pub reasons: Vec<String>,
    /// The candidates that had failed before this one won, and how.
    pub failed: Vec<(Candidate, Failure)>,
    /// The certificate chain that the peer showed, its own first.
    pub peer_certificates: Vec<CertificateDer<'static>>,
}

impl ConnectionInfo {
    /// What is known of a connection before its handshakes.
    pub(crate) fn begun(transport: Transport, remote: SocketAddr) -> Self {
        Self {
            transport,
            fell_back: false,
            security: Security::None,
            protocol: None,
            cipher_suite: None,
            local: None,
            remote,
            alpn: None,
            timings: Timings::default(),
            rtt: None,
            from_memory: false,
            reasons: Vec::new(),
            failed: Vec::new(),
            peer_certificates: Vec::new(),
        }
    }

    /// What is known of a connection whose transport was up when it was accepted.
    pub(crate) fn accepted(
        transport: Transport,
        local: Option<SocketAddr>,
        remote: SocketAddr,
    ) -> Self {
        let timings = Timings { transport: Some(Duration::ZERO), ..Timings::default() };
        Self { local, timings, ..Self::begun(transport, remote) }
    }
}

/// When what was reached, each counted from the moment the caller asked for the connection; on a
/// listener from the moment the peer was accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Timings {
    /// DNS had given the first address.
    pub dns: Option<Duration>,
    /// The winning attempt was started.
    pub started: Duration,
    /// The peer answered.
    pub answered: Option<Duration>,
    /// The transport was up.
    pub transport: Option<Duration>,
    /// The security layer was up.
    pub security: Option<Duration>,
    /// The opening had gone out, in a race that was [won by who answers
    /// it](crate::Preconnection::until_spoken). Without it the caller has to say it.
    pub opened: Option<Duration>,
    /// The peer's application had spoken, in such a race.
    pub spoke: Option<Duration>,
}
