//! What is known of the encryption of a server, for people.

use std::fmt;
use std::net::SocketAddr;

/// A protocol by which queries are encrypted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum DnsProtocol {
    /// DNS over QUIC (RFC 9250).
    Quic,
    /// DNS over TLS (RFC 7858).
    Tls,
    /// DNS over HTTPS (RFC 8484), by HTTP/2.
    Https,
    /// DNS over HTTPS, by HTTP/3.
    Http3,
}

impl DnsProtocol {
    /// Returns the name used in JSON and messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Quic => "DoQ",
            Self::Tls => "DoT",
            Self::Https => "DoH",
            Self::Http3 => "DoH3",
        }
    }
}

/// An encrypted resolver that a name server designates (RFC 9462 §2).
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DesignatedResolver {
    /// Its name.
    pub name: String,
    /// The protocol by which it is asked.
    pub protocol: DnsProtocol,
    /// Its address and port.
    pub address: SocketAddr,
    /// Whether its certificate has proved that it is whom its designator means (RFC 9462 §4.2). Otherwise it is used
    /// because it has the same private address (§4.3), which protects against listeners alone.
    pub is_verified: bool,
    /// Whether an earlier process had found it on this network, so that the name server was not asked again.
    pub is_remembered: bool,
}

impl fmt::Display for DesignatedResolver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, protocol, address, is_verified, is_remembered } = self;
        let verified = if *is_verified { "" } else { ", unverified" };
        let remembered = if *is_remembered { ", as remembered" } else { "" };
        match name.is_empty() {
            true => write!(f, "{} at {address}{verified}{remembered}", protocol.name()),
            false => write!(f, "{} to {name} at {address}{verified}{remembered}", protocol.name()),
        }
    }
}

/// Why queries to a server are unencrypted (RFC 9462 §2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub enum UnencryptedReason {
    /// The server designates no encrypted resolver.
    NotDesignated,
    /// The server does not answer the question for one.
    NotAnswered,
    /// What it designates cannot be used: with the reason.
    NotUsable(&'static str),
    /// The encrypted resolver could not be reached by any of its protocols and addresses.
    NotReachable,
    /// The encrypted resolver has not proved that it is whom the server means (RFC 9462 §4.2).
    NotVerified,
}

impl fmt::Display for UnencryptedReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotDesignated => f.write_str("it designates no encrypted resolver"),
            Self::NotAnswered => {
                f.write_str("it does not answer the question for its encrypted resolver")
            }
            Self::NotUsable(why) => write!(f, "its encrypted resolver cannot be used: {why}"),
            Self::NotReachable => f.write_str("its encrypted resolver cannot be reached"),
            Self::NotVerified => {
                f.write_str("its encrypted resolver has not proved to belong to it")
            }
        }
    }
}

/// How queries to a name server are encrypted (RFC 9462 §2), as far as it is known.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ServerEncryption {
    /// They are not, by policy.
    Off,
    /// Nobody has asked yet, or the answer is still awaited.
    Unknown,
    /// They cannot be.
    Absent(UnencryptedReason),
    /// They go to this resolver, except those about names that belong to the network.
    Designated(DesignatedResolver),
}

impl fmt::Display for ServerEncryption {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => f.write_str("unencrypted, by policy"),
            Self::Unknown => f.write_str(
                "unencrypted so far: only names of the network were asked for, or its encrypted resolver is still sought",
            ),
            Self::Absent(why) => write!(f, "unencrypted, because {why}"),
            Self::Designated(resolver) => write!(f, "encrypted, by {resolver}"),
        }
    }
}
