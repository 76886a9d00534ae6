//! What can be tried: one address, one transport, one security layer.

use alloc::{string::String, vec::Vec};
use core::{
    fmt,
    net::{IpAddr, SocketAddr},
};

use serde::{Deserialize, Serialize};

mod transport;

pub use transport::Transport;

/// What protects a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Security {
    /// Nothing: only if the caller says so.
    None,
    /// TLS (RFC 8446), also as QUIC carries it (RFC 9001).
    Tls,
    /// DTLS (RFC 9147).
    Dtls,
}

impl Security {
    /// The name used on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Tls => "tls",
            Self::Dtls => "dtls",
        }
    }

    /// The security of that [name](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::None, Self::Tls, Self::Dtls].into_iter().find(|security| security.name() == name)
    }

    /// Whether candidates with these two may race each other unasked (RFC 9621 §3.2).
    pub const fn is_equivalent_to(self, other: Self) -> bool {
        matches!(self, Self::None) == matches!(other, Self::None)
    }
}

impl fmt::Display for Security {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Family {
    /// The family of this address.
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// The other one.
    pub const fn other(self) -> Self {
        match self {
            Self::V4 => Self::V6,
            Self::V6 => Self::V4,
        }
    }

    /// The name used in keys and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V4 => "v4",
            Self::V6 => "v6",
        }
    }

    /// The family of that [name](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::V4, Self::V6].into_iter().find(|family| family.name() == name)
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An application protocol name (RFC 7301), at most 255 octets, such as `h2` or `http/1.1`.
pub type Alpn = String;

/// Where a candidate's address came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Origin {
    /// The caller gave an IP literal.
    Literal,
    /// `localhost`, which is never asked of DNS (RFC 6761 §6.3).
    Localhost,
    /// An AAAA or A answer.
    Address,
    /// An address hint of a ServiceMode record (RFC 9460 §7.3), not yet replaced by an answer.
    Hint,
    /// Such a hint, though the answer of its family is in and has no address.
    DeniedHint,
    /// An IPv6 address synthesised from an A answer and a PREF64 (RFC 6052, RFC 8781).
    Synthesised,
    /// The caller's own address for the name (`--resolve`, `--connect-to`).
    Caller,
}

/// One thing that can be tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// The peer's address and port, with scope for link-local IPv6.
    pub address: SocketAddr,
    /// The transport to speak.
    pub transport: Transport,
    /// The security layer; a race never weakens it.
    pub security: Security,
    /// Application protocols to offer, best first; empty offers none.
    pub alpn: Vec<Alpn>,
    /// An `ECHConfigList` to encrypt the ClientHello with (RFC 9848), as it stood in the record.
    pub ech: Option<Vec<u8>>,
    /// `SvcPriority` of the record that led here; `None` without a ServiceMode record.
    pub priority: Option<u16>,
    /// Where the address came from.
    pub origin: Origin,
}

impl Candidate {
    /// Whether two candidates would put the same thing on the wire.
    pub fn is_same_attempt(&self, other: &Self) -> bool {
        (self.address, self.transport, self.security)
            == (other.address, other.transport, other.security)
            && self.alpn == other.alpn
            && self.ech == other.ech
    }

    /// A way under TLS to this address and port, as tests want it.
    #[cfg(test)]
    pub(crate) fn under_tls(transport: Transport, address: SocketAddr) -> Self {
        Self {
            address,
            transport,
            security: Security::Tls,
            alpn: Vec::new(),
            ech: None,
            priority: None,
            origin: Origin::Address,
        }
    }
}

impl fmt::Display for Candidate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.transport, self.address)?;
        match self.security {
            Security::None => Ok(()),
            _ if self.transport.has_own_security() => Ok(()),
            security => write!(f, " {security}"),
        }
    }
}
