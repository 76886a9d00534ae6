//! A test server that misbehaves on purpose, for `eyas demo`, tests and benchmarks.
//!
//! ```
//! # async fn example() -> Result<(), eyas_http::serve::ServeError> {
//! use eyas_http::serve::personality::{Authority, Personality};
//!
//! let authority = Authority::new(["peer.test"])?;
//! let server = Personality::UdpSwallowed.start(&authority).await?;
//! // A client that trusts `authority.root()` reaches it over TCP and never over QUIC.
//! println!("https://localhost:{}/", server.local_addr().port());
//! # Ok(())
//! # }
//! ```
//!
//! A [`Personality`] is a name for two [`Face`]s: what the server is over TCP and what it is over
//! QUIC, at one address. [`TestServer::start`] takes any pair, and several addresses on one port.

mod authority;
mod silent;
mod stage;
mod tcp_shim;
mod udp_shim;

use std::{fmt, net::IpAddr, time::Duration};

pub use self::{authority::Authority, stage::TestServer};
use super::{FaultConfig, ServeError};

/// A way to be a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Personality {
    /// HTTP/1.1, 2 and 3, as they should be.
    Healthy,
    /// Datagrams to the port vanish: no answer, no ICMP error. Alt-Svc promises HTTP/3 all the
    /// same, as where a firewall drops UDP.
    UdpSwallowed,
    /// Nothing listens on UDP, and the kernel says so by ICMP; no Alt-Svc.
    TcpOnly,
    /// Nothing listens on TCP: connections are refused.
    Http3Only,
    /// TCP's SYNs vanish.
    TcpSwallowed,
    /// Everything vanishes, over TCP and over UDP.
    AllSwallowed,
    /// What a client sends over TCP arrives this much later. The kernel still answers SYNs at
    /// once.
    TcpSlow {
        /// By how much.
        by: Duration,
    },
    /// What a client sends over UDP arrives this much later: the late switch is seen when TCP
    /// is ready first.
    QuicSlow {
        /// By how much.
        by: Duration,
    },
    /// TCP connections are accepted, and then nothing is ever said.
    TcpSilent,
    /// The certificate on this transport is of an issuer that nobody trusts.
    WrongCertificate(Side),
    /// The certificate on this transport has expired.
    ExpiredCertificate(Side),
    /// The certificate on this transport is for another name.
    WrongName(Side),
    /// This transport speaks none of HTTP's ALPN names.
    NoCommonAlpn(Side),
    /// HTTP/1.1 over SCTP inside UDP beside TCP; no QUIC. What is sent directly over IP vanishes, as
    /// where a firewall drops protocol 132.
    SctpInsideUdp,
    /// Bodies longer than `after` bytes are never finished: the connection (TCP) or stream (QUIC)
    /// is reset.
    ResetInBody {
        /// Bytes of the body that still arrive.
        after: u64,
    },
    /// Bodies longer than `after` bytes end early without an error of the transport: the
    /// connection closes (HTTP/1.1), the stream ends (HTTP/2, HTTP/3), and only the announced
    /// length tells that something is missing.
    TruncatedBody {
        /// Bytes of the body that still arrive.
        after: u64,
    },
}

/// A transport of the test server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// HTTP/1.1 and 2 over TLS over TCP.
    Tcp,
    /// HTTP/3 over QUIC.
    Quic,
    /// Both.
    Both,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Tcp => "TCP",
            Self::Quic => "QUIC",
            Self::Both => "TCP and QUIC",
        })
    }
}

/// How a test server looks at one address.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faces {
    /// Over TCP.
    pub tcp: Face,
    /// Over QUIC.
    pub quic: Face,
    /// Over SCTP.
    pub sctp: SctpFace,
    /// What long bodies come to.
    pub fault: Option<FaultConfig>,
    /// Whether QUIC takes 0-RTT data.
    pub early_data: bool,
}

/// How a test server looks over SCTP at one address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum SctpFace {
    /// Nothing listens.
    #[default]
    Absent,
    /// Inside UDP, at a free port ([`TestServer::sctp_udp_port`]); nothing answers protocol 132.
    InsideUdp,
}

/// How a test server looks over one transport at one address.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Face {
    /// Whether and how it can be reached.
    pub reach: Reach,
    /// Which certificate it shows.
    pub credentials: Credentials,
    /// Whether it speaks no application protocol that a client of HTTP offers.
    pub speaks_nothing: bool,
}

/// Whether and how a transport can be reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reach {
    /// As it should be.
    #[default]
    Open,
    /// What the client sends arrives this much later.
    Slow(Duration),
    /// Accepted (TCP) or not, nothing is ever answered.
    Silent,
    /// Nothing is answered, not even a SYN.
    Swallowed,
    /// Nobody listens, and the kernel says so.
    Refused,
}

/// Which certificate a transport shows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Credentials {
    /// A good one of the test's own authority.
    #[default]
    Good,
    /// Of an issuer that nobody trusts.
    UnknownIssuer,
    /// Past its time.
    Expired,
    /// For another name.
    WrongName,
}

impl Personality {
    /// What this is over TCP and over QUIC.
    pub fn faces(self) -> Faces {
        let reach = |tcp, quic| Faces {
            tcp: Face { reach: tcp, ..Face::default() },
            quic: Face { reach: quic, ..Face::default() },
            ..Faces::default()
        };
        let fault =
            |after, reset| Faces { fault: Some(FaultConfig { after, reset }), ..Faces::default() };
        match self {
            Self::Healthy => Faces::default(),
            Self::UdpSwallowed => reach(Reach::Open, Reach::Swallowed),
            Self::TcpOnly => reach(Reach::Open, Reach::Refused),
            Self::Http3Only => reach(Reach::Refused, Reach::Open),
            Self::TcpSwallowed => reach(Reach::Swallowed, Reach::Open),
            Self::AllSwallowed => reach(Reach::Swallowed, Reach::Swallowed),
            Self::TcpSlow { by } => reach(Reach::Slow(by), Reach::Open),
            Self::QuicSlow { by } => reach(Reach::Open, Reach::Slow(by)),
            Self::TcpSilent => reach(Reach::Silent, Reach::Open),
            Self::WrongCertificate(side) => shown(side, Credentials::UnknownIssuer),
            Self::ExpiredCertificate(side) => shown(side, Credentials::Expired),
            Self::WrongName(side) => shown(side, Credentials::WrongName),
            Self::NoCommonAlpn(side) => on(side, Face { speaks_nothing: true, ..Face::default() }),
            Self::SctpInsideUdp => {
                Faces { sctp: SctpFace::InsideUdp, ..reach(Reach::Open, Reach::Refused) }
            }
            Self::ResetInBody { after } => fault(after, true),
            Self::TruncatedBody { after } => fault(after, false),
        }
    }

    /// Starts a server of this kind on a free port of 127.0.0.1.
    pub async fn start(self, authority: &Authority) -> Result<TestServer, ServeError> {
        let loopback = IpAddr::from([127, 0, 0, 1]);
        TestServer::start(authority, &[(loopback, self.faces())]).await
    }
}

fn shown(side: Side, credentials: Credentials) -> Faces {
    on(side, Face { credentials, ..Face::default() })
}

/// This face on one side, a good one on the other.
fn on(side: Side, face: Face) -> Faces {
    let mut faces = Faces::default();
    if side != Side::Quic {
        faces.tcp = face;
    }
    if side != Side::Tcp {
        faces.quic = face;
    }
    faces
}

impl fmt::Display for Personality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Healthy => f.write_str("all well"),
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
