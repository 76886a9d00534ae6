//! Test servers by name.

use std::{fmt, net::IpAddr, time::Duration};

use eyas_http::serve::{FaultConfig, ServeError};

use crate::{
    SctpFace, ServerCredentials, ServerFaces, TestAuthority, TestServer, TransportFace,
    TransportReach,
};

/// A kind of test server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerPersonality {
    /// HTTP/1.1, 2 and 3 without a fault.
    Healthy,
    /// Datagrams to the port are dropped, with neither an answer nor an ICMP error, as behind a
    /// firewall that drops UDP. Alt-Svc announces HTTP/3 nevertheless.
    UdpSwallowed,
    /// Nothing listens on UDP, which the kernel reports by ICMP; no Alt-Svc.
    TcpOnly,
    /// Nothing listens on TCP: connections are refused.
    Http3Only,
    /// TCP SYNs are dropped.
    TcpSwallowed,
    /// Everything is dropped, over TCP and over UDP.
    AllSwallowed,
    /// Data that a client sends over TCP is delayed. The kernel still answers SYNs at once.
    TcpSlow {
        /// The delay.
        by: Duration,
    },
    /// Data that a client sends over UDP is delayed: this shows the late switch if TCP is ready
    /// first.
    QuicSlow {
        /// The delay.
        by: Duration,
    },
    /// TCP connections are accepted, and then nothing is ever sent.
    TcpSilent,
    /// The certificate on this transport is from an untrusted issuer.
    WrongCertificate(TransportSide),
    /// The certificate on this transport has expired.
    ExpiredCertificate(TransportSide),
    /// The certificate on this transport is for another name.
    WrongName(TransportSide),
    /// This transport supports none of HTTP's ALPN names.
    NoCommonAlpn(TransportSide),
    /// HTTP/1.1 over SCTP inside UDP and over TCP; no QUIC. SCTP packets sent directly over IP are
    /// dropped, as behind a firewall that drops protocol 132.
    SctpInsideUdp,
    /// Bodies longer than `after` bytes are never completed: the connection (TCP) or stream (QUIC)
    /// is reset.
    ResetInBody {
        /// The number of body bytes that still arrive.
        after: u64,
    },
    /// Bodies longer than `after` bytes end early without a transport error: the connection closes
    /// (HTTP/1.1), the stream ends (HTTP/2, HTTP/3), and only the announced length shows that
    /// something is missing.
    TruncatedBody {
        /// The number of body bytes that still arrive.
        after: u64,
    },
}

/// A transport of the test server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportSide {
    /// HTTP/1.1 and 2 over TLS over TCP.
    Tcp,
    /// HTTP/3 over QUIC.
    Quic,
    /// Both.
    Both,
}

impl fmt::Display for TransportSide {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Tcp => "TCP",
            Self::Quic => "QUIC",
            Self::Both => "TCP and QUIC",
        })
    }
}

impl ServerPersonality {
    /// Returns its behaviour over each transport.
    pub fn faces(self) -> ServerFaces {
        let reach = |tcp, quic| ServerFaces {
            tcp: TransportFace { reach: tcp, ..TransportFace::default() },
            quic: TransportFace { reach: quic, ..TransportFace::default() },
            ..ServerFaces::default()
        };
        let fault = |after, reset| ServerFaces {
            fault: Some(FaultConfig { after, reset }),
            ..ServerFaces::default()
        };
        match self {
            Self::Healthy => ServerFaces::default(),
            Self::UdpSwallowed => reach(TransportReach::Open, TransportReach::Swallowed),
            Self::TcpOnly => reach(TransportReach::Open, TransportReach::Refused),
            Self::Http3Only => reach(TransportReach::Refused, TransportReach::Open),
            Self::TcpSwallowed => reach(TransportReach::Swallowed, TransportReach::Open),
            Self::AllSwallowed => reach(TransportReach::Swallowed, TransportReach::Swallowed),
            Self::TcpSlow { by } => reach(TransportReach::Slow(by), TransportReach::Open),
            Self::QuicSlow { by } => reach(TransportReach::Open, TransportReach::Slow(by)),
            Self::TcpSilent => reach(TransportReach::Silent, TransportReach::Open),
            Self::WrongCertificate(side) => {
                with_credentials(side, ServerCredentials::UnknownIssuer)
            }
            Self::ExpiredCertificate(side) => with_credentials(side, ServerCredentials::Expired),
            Self::WrongName(side) => with_credentials(side, ServerCredentials::WrongName),
            Self::NoCommonAlpn(side) => {
                on_side(side, TransportFace { no_common_alpn: true, ..TransportFace::default() })
            }
            Self::SctpInsideUdp => ServerFaces {
                sctp: SctpFace::InsideUdp,
                ..reach(TransportReach::Open, TransportReach::Refused)
            },
            Self::ResetInBody { after } => fault(after, true),
            Self::TruncatedBody { after } => fault(after, false),
        }
    }

    /// Starts a server of this kind on a free port of 127.0.0.1.
    pub async fn start(self, authority: &TestAuthority) -> Result<TestServer, ServeError> {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        TestServer::start(authority, &[(loopback, self.faces())]).await
    }
}

fn with_credentials(side: TransportSide, credentials: ServerCredentials) -> ServerFaces {
    on_side(side, TransportFace { credentials, ..TransportFace::default() })
}

/// Returns this face on one side and a healthy one on the other.
fn on_side(side: TransportSide, face: TransportFace) -> ServerFaces {
    let mut faces = ServerFaces::default();
    if side != TransportSide::Quic {
        faces.tcp = face;
    }
    if side != TransportSide::Tcp {
        faces.quic = face;
    }
    faces
}

impl fmt::Display for ServerPersonality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Healthy => f.write_str("healthy"),
            Self::UdpSwallowed => f.write_str("UDP swallowed"),
            Self::TcpOnly => f.write_str("TCP only"),
            Self::Http3Only => f.write_str("HTTP/3 only"),
            Self::TcpSwallowed => f.write_str("TCP swallowed"),
            Self::AllSwallowed => f.write_str("everything swallowed"),
            Self::TcpSlow { by } => write!(f, "TCP slow by {} ms", by.as_millis()),
            Self::QuicSlow { by } => write!(f, "QUIC slow by {} ms", by.as_millis()),
            Self::TcpSilent => f.write_str("TCP accepts and stays silent"),
            Self::WrongCertificate(side) => write!(f, "certificate wrong on {side}"),
            Self::ExpiredCertificate(side) => write!(f, "certificate expired on {side}"),
            Self::WrongName(side) => write!(f, "certificate for another name on {side}"),
            Self::NoCommonAlpn(side) => write!(f, "no common protocol on {side}"),
            Self::SctpInsideUdp => f.write_str("SCTP inside UDP"),
            Self::ResetInBody { after } => write!(f, "reset after {after} bytes of a body"),
            Self::TruncatedBody { after } => write!(f, "body cut after {after} bytes"),
        }
    }
}
