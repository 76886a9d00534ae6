//! The key of a row, with a stable text form.

use alloc::string::{String, ToString};
use core::{
    fmt::{self, Write},
    net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV6},
    str::FromStr,
};

use serde::{Deserialize, Serialize};

use crate::candidate::{AddressFamily, Candidate, Security, Transport};
use crate::evidence::NetworkId;
use crate::target::TargetHost;

/// The key of a row.
///
/// Its text form (`Display` and `FromStr`) is stable and consists of parts separated by `/`:
///
/// ```text
/// NETWORK/peer/HOST/TRANSPORT/SECURITY/ADDRESS:PORT
/// NETWORK/path/TRANSPORT/FAMILY/PORT
/// NETWORK/name
/// NETWORK/resolver/HOST/ADDRESS:PORT
/// ```
///
/// so that all rows needed by one race start with [`MemoryKey::peer_prefix`] or [`MemoryKey::path_prefix`], and those
/// about resolvers with [`MemoryKey::resolver_prefix`].
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct MemoryKey {
    /// The network that the evidence belongs to.
    pub network: NetworkId,
    /// The subject of the row.
    pub subject: MemorySubject,
}

/// The subject of a row.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemorySubject {
    /// One address of one host.
    Peer {
        /// The host as named by the caller.
        host: TargetHost,
        /// The transport.
        transport: Transport,
        /// The security layer.
        security: Security,
        /// The address, without a flow label.
        address: SocketAddr,
    },
    /// Any host.
    Path {
        /// The transport.
        transport: Transport,
        /// The address family.
        family: AddressFamily,
        /// The peer's port; 0 for transports where firewalls do not look at it.
        port: u16,
    },
    /// The network itself.
    Network,
    /// A name server, about which only rows of its own kind exist.
    Resolver {
        /// The name server as named by the caller or the network.
        host: TargetHost,
        /// Its address, without a flow label.
        address: SocketAddr,
    },
}

impl MemoryKey {
    /// Returns the key of this candidate as an address of this host.
    pub fn peer(network: &NetworkId, host: &TargetHost, candidate: &Candidate) -> Self {
        let subject = MemorySubject::Peer {
            host: host.clone(),
            transport: candidate.transport,
            security: candidate.security,
            address: without_flow_label(candidate.address),
        };
        Self { network: network.clone(), subject }
    }

    /// Returns the key of this candidate's path through the network.
    pub fn path(network: &NetworkId, candidate: &Candidate) -> Self {
        let subject = MemorySubject::Path {
            transport: candidate.transport,
            family: AddressFamily::from_ip(candidate.address.ip()),
            port: path_port(candidate),
        };
        Self { network: network.clone(), subject }
    }

    /// Returns the key of the name of this network.
    pub fn network(network: &NetworkId) -> Self {
        Self { network: network.clone(), subject: MemorySubject::Network }
    }

    /// Returns the key of what the name server at this address designates.
    pub fn resolver(network: &NetworkId, host: &TargetHost, address: SocketAddr) -> Self {
        let subject =
            MemorySubject::Resolver { host: host.clone(), address: without_flow_label(address) };
        Self { network: network.clone(), subject }
    }

    /// Returns the host, unless the row is about the network.
    pub fn host(&self) -> Option<&TargetHost> {
        match &self.subject {
            MemorySubject::Peer { host, .. } | MemorySubject::Resolver { host, .. } => Some(host),
            MemorySubject::Path { .. } | MemorySubject::Network => None,
        }
    }

    /// Returns the common prefix of the text form of all rows about this host on this network.
    pub fn peer_prefix(network: &NetworkId, host: &TargetHost) -> String {
        let mut text = String::new();
        push_escaped(&mut text, &network.0);
        text.push_str("/peer/");
        push_host(&mut text, host);
        text.push('/');
        text
    }

    /// Returns the common prefix of the text form of all rows about this network itself.
    pub fn path_prefix(network: &NetworkId) -> String {
        let mut text = String::new();
        push_escaped(&mut text, &network.0);
        text.push_str("/path/");
        text
    }

    /// Returns the common prefix of the text form of all rows about resolvers on this network.
    pub fn resolver_prefix(network: &NetworkId) -> String {
        let mut text = String::new();
        push_escaped(&mut text, &network.0);
        text.push_str("/resolver/");
        text
    }

    /// Returns the smallest key of this host on this network, for a range over sorted keys.
    pub(super) fn first_of_host(network: &NetworkId, host: &TargetHost) -> Self {
        let subject = MemorySubject::Peer {
            host: host.clone(),
            transport: Transport::Tcp,
            security: Security::None,
            address: SocketAddr::new(IpAddr::V4(Ipv4Addr::UNSPECIFIED), 0),
        };
        Self { network: network.clone(), subject }
    }

    /// Returns the smallest key about this network itself, for a range over sorted keys.
    pub(super) fn first_path(network: &NetworkId) -> Self {
        let subject =
            MemorySubject::Path { transport: Transport::Tcp, family: AddressFamily::V4, port: 0 };
        Self { network: network.clone(), subject }
    }
}

impl fmt::Display for MemoryKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subject {
            MemorySubject::Peer { host, transport, security, address } => {
                f.write_str(&Self::peer_prefix(&self.network, host))?;
                write!(f, "{transport}/{security}/{address}")
            }
            MemorySubject::Path { transport, family, port } => {
                f.write_str(&Self::path_prefix(&self.network))?;
                write!(f, "{transport}/{family}/{port}")
            }
            MemorySubject::Network => {
                let mut text = String::new();
                push_escaped(&mut text, &self.network.0);
                write!(f, "{text}/name")
            }
            MemorySubject::Resolver { host, address } => {
                let mut text = Self::resolver_prefix(&self.network);
                push_host(&mut text, host);
                write!(f, "{text}/{address}")
            }
        }
    }
}

/// The text is not a valid [`MemoryKey`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MalformedKey;

impl fmt::Display for MalformedKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("not the key of a memory row; set the memory file aside and start a new one")
    }
}

impl core::error::Error for MalformedKey {}

impl FromStr for MemoryKey {
    type Err = MalformedKey;

    fn from_str(text: &str) -> Result<Self, MalformedKey> {
        let mut parts = text.split('/');
        let mut next = || parts.next().ok_or(MalformedKey);
        let network = NetworkId(unescaped(next()?)?.into());
        let subject = match next()? {
            "peer" => MemorySubject::Peer {
                host: parse_host(next()?)?,
                transport: Transport::from_name(next()?).ok_or(MalformedKey)?,
                security: Security::from_name(next()?).ok_or(MalformedKey)?,
                address: without_flow_label(next()?.parse().map_err(|_| MalformedKey)?),
            },
            "path" => MemorySubject::Path {
                transport: Transport::from_name(next()?).ok_or(MalformedKey)?,
                family: AddressFamily::from_name(next()?).ok_or(MalformedKey)?,
                port: next()?.parse().map_err(|_| MalformedKey)?,
            },
            "name" => MemorySubject::Network,
            "resolver" => MemorySubject::Resolver {
                host: parse_host(next()?)?,
                address: without_flow_label(next()?.parse().map_err(|_| MalformedKey)?),
            },
            _ => return Err(MalformedKey),
        };
        match parts.next() {
            None => Ok(Self { network, subject }),
            Some(_) => Err(MalformedKey),
        }
    }
}

/// Returns the port that determines whether a network passes a candidate: none for SCTP, where only
/// the protocol number is visible, or the single UDP port of its encapsulation (RFC 6951).
pub(crate) fn path_port(candidate: &Candidate) -> u16 {
    if candidate.transport.has_port_on_path() { candidate.address.port() } else { 0 }
}

/// Removes the flow label, which is not part of an address's identity and has no place in its text
/// form.
pub(super) fn without_flow_label(address: SocketAddr) -> SocketAddr {
    match address {
        SocketAddr::V4(_) => address,
        SocketAddr::V6(v6) => SocketAddrV6::new(*v6.ip(), v6.port(), 0, v6.scope_id()).into(),
    }
}

/// Appends a host. A literal address starts with `=`, which [`push_escaped`] never writes, so that
/// a name which looks like an address remains a name.
fn push_host(text: &mut String, host: &TargetHost) {
    match host {
        TargetHost::Name(name) => push_escaped(text, name),
        TargetHost::Literal(address, scope) => {
            text.push('=');
            text.push_str(&address.to_string());
            text.push('~');
            text.push_str(&scope.to_string());
        }
    }
}

fn parse_host(text: &str) -> Result<TargetHost, MalformedKey> {
    let Some(literal) = text.strip_prefix('=') else {
        return Ok(TargetHost::Name(unescaped(text)?));
    };
    let (address, scope) = literal.split_once('~').ok_or(MalformedKey)?;
    Ok(TargetHost::Literal(
        address.parse().map_err(|_| MalformedKey)?,
        scope.parse().map_err(|_| MalformedKey)?,
    ))
}

fn is_plain(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':')
}

fn push_escaped(text: &mut String, part: &str) {
    for byte in part.bytes() {
        if is_plain(byte) {
            text.push(char::from(byte));
        } else {
            // Writing to a string cannot fail.
            let _ = write!(text, "%{byte:02x}");
        }
    }
}

fn unescaped(part: &str) -> Result<String, MalformedKey> {
    let mut bytes = alloc::vec::Vec::with_capacity(part.len());
    let mut rest = part.as_bytes();
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let (digits, after) = rest.split_at_checked(2).ok_or(MalformedKey)?;
        let digits = core::str::from_utf8(digits).map_err(|_| MalformedKey)?;
        bytes.push(u8::from_str_radix(digits, 16).map_err(|_| MalformedKey)?);
        rest = after;
    }
    String::from_utf8(bytes).map_err(|_| MalformedKey)
}
