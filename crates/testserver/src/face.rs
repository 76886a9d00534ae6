//! What a server is over each transport.

use std::time::Duration;

use eyas_http::serve::FaultConfig;

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
}

/// How a test server looks over SCTP at one address.
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
