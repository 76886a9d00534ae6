//! Candidates: one address, one transport, one security layer.

use alloc::{string::String, vec::Vec};
use core::{
    fmt,
    net::{IpAddr, SocketAddr},
};

use serde::{Deserialize, Serialize};

mod transport;

pub use transport::Transport;

/// The security layer of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Security {
    /// None: only if the caller asks for it.
    None,
    /// TLS (RFC 8446), including as part of QUIC (RFC 9001).
    Tls,
    /// DTLS (RFC 9147).
    Dtls,
}

impl Security {
    /// Returns the name used on the command line and in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Tls => "tls",
            Self::Dtls => "dtls",
        }
    }

    /// Returns the security layer with this [name](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::None, Self::Tls, Self::Dtls].into_iter().find(|security| security.name() == name)
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
pub enum AddressFamily {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl AddressFamily {
    /// Returns the family of this address.
    pub const fn from_ip(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// Returns the other family.
    pub const fn other(self) -> Self {
        match self {
            Self::V4 => Self::V6,
            Self::V6 => Self::V4,
        }
    }

    /// Returns the name used in keys and tables.
    pub const fn name(self) -> &'static str {
        match self {
            Self::V4 => "v4",
            Self::V6 => "v6",
        }
    }

    /// Returns the family with this [name](Self::name).
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::V4, Self::V6].into_iter().find(|family| family.name() == name)
    }
}

impl fmt::Display for AddressFamily {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// An application protocol name (RFC 7301), at most 255 octets, such as `h2` or `http/1.1`.
pub type AlpnName = String;

/// Where a candidate's address came from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AddressOrigin {
    /// An IP literal from the caller.
    Literal,
    /// `localhost`, which is never resolved by DNS (RFC 6761 §6.3).
    Localhost,
    /// An AAAA or A answer.
    Address,
    /// Such an answer whose time to live is over (HEv3 §4.4).
    Expired,
    /// An address hint of a ServiceMode record (RFC 9460 §7.3), not yet replaced by an answer.
    Hint,
    /// Such a hint, although the address query of its family returned no address.
    DeniedHint,
    /// An IPv6 address synthesised from an A answer and a PREF64 (RFC 6052, RFC 8781).
    Synthesised,
    /// An address that the caller set for the name (`--resolve`, `--connect-to`).
    Caller,
}

/// One combination of address, transport and security that can be tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Candidate {
    /// The peer's address and port, with the scope for link-local IPv6.
    pub address: SocketAddr,
    /// The transport.
    pub transport: Transport,
    /// The security layer; a race never weakens it.
    pub security: Security,
    /// The application protocols to offer, most preferred first; empty offers none.
    pub alpn: Vec<AlpnName>,
    /// An `ECHConfigList` to encrypt the ClientHello with (RFC 9848), as it was in the record.
    pub ech: Option<Vec<u8>>,
    /// `SvcPriority` of the record that this candidate comes from; `None` without a ServiceMode
    /// record.
    pub priority: Option<u16>,
    /// The origin of the address.
    pub origin: AddressOrigin,
}

impl Candidate {
    /// Returns whether two candidates would send the same packets.
    pub fn is_same_attempt(&self, other: &Self) -> bool {
        (self.address, self.transport, self.security)
            == (other.address, other.transport, other.security)
            && self.alpn == other.alpn
            && self.ech == other.ech
    }

    /// Returns whether it sends a ClientHello that takes two packets with a large key share.
    pub fn has_client_hello(&self) -> bool {
        self.security == Security::Tls
            && matches!(self.transport, Transport::Tcp | Transport::Mptcp | Transport::Quic)
    }

    /// Returns a candidate under TLS at this address and port, for tests.
    #[cfg(test)]
    pub(crate) fn under_tls(transport: Transport, address: SocketAddr) -> Self {
        Self {
            address,
            transport,
            security: Security::Tls,
            alpn: Vec::new(),
            ech: None,
            priority: None,
            origin: AddressOrigin::Address,
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
