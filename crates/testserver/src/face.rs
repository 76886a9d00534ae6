//! The behaviour of a server over each transport.

use std::time::Duration;

use eyas_http::serve::FaultConfig;

/// The behaviour of a test server at one address.
#[derive(Clone, Copy, Debug, Default)]
pub struct ServerFaces {
    /// Over TCP.
    pub tcp: TransportFace,
    /// Over QUIC.
    pub quic: TransportFace,
    /// Over SCTP.
    pub sctp: SctpFace,
    /// The fault in long bodies.
    pub fault: Option<FaultConfig>,
}

/// The behaviour of a test server over SCTP at one address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SctpFace {
    /// Nothing listens.
    #[default]
    Absent,
    /// Inside UDP, at a free port ([`sctp_udp_port`](crate::TestServer::sctp_udp_port)); nothing
    /// answers protocol 132.
    InsideUdp,
}

/// The behaviour of a test server over one transport at one address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TransportFace {
    /// Whether and how it can be reached.
    pub reach: TransportReach,
    /// The certificate that it presents.
    pub credentials: ServerCredentials,
    /// Whether it supports none of the application protocols that an HTTP client offers.
    pub no_common_alpn: bool,
}

/// Whether and how a transport can be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum TransportReach {
    /// Without a fault.
    #[default]
    Open,
    /// Packets from the client are delayed by this much.
    Slow(Duration),
    /// Connections are accepted over TCP, and then nothing is ever sent.
    Silent,
    /// Nothing is answered, not even a SYN.
    Swallowed,
    /// Nothing is listening, and the kernel refuses.
    Refused,
}

/// The certificate that a transport presents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerCredentials {
    /// A valid one from the test's own authority.
    #[default]
    Good,
    /// One from an untrusted issuer.
    UnknownIssuer,
    /// An expired one.
    Expired,
    /// One for another name.
    WrongName,
}
