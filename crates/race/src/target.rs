//! The target: a host, a port and the service there.

use alloc::{borrow::ToOwned, string::String, vec, vec::Vec};
use core::{
    fmt,
    net::{IpAddr, Ipv4Addr, Ipv6Addr},
};

use idna::uts46::{AsciiDenyList, DnsLength, Hyphens, Uts46};
use serde::{Deserialize, Serialize};

use crate::candidate::{AlpnName, Security, Transport};

#[cfg(test)]
mod tests;

/// A host as named by the caller, after normalisation.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum TargetHost {
    /// A DNS name in A-label form, lower case, without a trailing dot.
    Name(String),
    /// An address, with the IPv6 scope identifier if one was given (0: none).
    Literal(IpAddr, u32),
}

impl TargetHost {
    /// Parses a host: a name in any case and script (UTS 46), with or without a trailing dot; an
    /// IPv4 address; or an IPv6 address with or without brackets, and with a numeric scope
    /// (`[fe80::1%2]`, or `%252` as in a URL, RFC 6874).
    ///
    /// To accept the *name* of an interface as scope, use [`TargetHost::parse_with_scopes`].
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        Self::parse_with_scopes(text, |_| None)
    }

    /// Like [`TargetHost::parse`], with a function that returns the index of a named interface.
    pub fn parse_with_scopes(
        text: &str,
        index_of: impl Fn(&str) -> Option<u32>,
    ) -> Result<Self, TargetError> {
        if let Some(rest) = text.strip_prefix('[') {
            let Some(inner) = rest.strip_suffix(']') else {
                return Err(TargetError::Brackets(text.to_owned()));
            };
            return parse_ipv6(inner, index_of);
        }
        if text.contains(':') {
            return parse_ipv6(text, index_of);
        }
        parse_name(text)
    }

    /// Returns whether this names the machine itself, which is never resolved by DNS (RFC 6761
    /// §6.3).
    pub fn is_localhost(&self) -> bool {
        match self {
            Self::Name(name) => name == "localhost" || name.ends_with(".localhost"),
            Self::Literal(..) => false,
        }
    }

    /// Returns the DNS name, if it is one.
    pub fn name(&self) -> Option<&str> {
        match self {
            Self::Name(name) => Some(name),
            Self::Literal(..) => None,
        }
    }
}

/// Parses a port, which is decimal digits (RFC 3986 §3.2.3). The standard library's parser of numbers takes a
/// sign as well.
pub fn parse_port(text: &str) -> Option<u16> {
    text.bytes().all(|byte| byte.is_ascii_digit()).then(|| text.parse().ok())?
}

impl fmt::Display for TargetHost {
    /// Formats the host as in a URL's authority: IPv6 in brackets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(name) => f.write_str(name),
            Self::Literal(IpAddr::V4(address), _) => write!(f, "{address}"),
            Self::Literal(IpAddr::V6(address), 0) => write!(f, "[{address}]"),
            Self::Literal(IpAddr::V6(address), scope) => write!(f, "[{address}%{scope}]"),
        }
    }
}

fn parse_ipv6(
    text: &str,
    index_of: impl Fn(&str) -> Option<u32>,
) -> Result<TargetHost, TargetError> {
    let (address, scope) = match text.split_once('%') {
        None => (text, None),
        Some((address, zone)) => (address, Some(zone)),
    };
    let Ok(address) = address.parse::<Ipv6Addr>() else {
        return Err(TargetError::Address(text.to_owned()));
    };
    let scope = match scope {
        None => 0,
        Some(zone) if !address.is_unicast_link_local() => {
            return Err(TargetError::Scope(zone.to_owned()));
        }
        Some(zone) => scope_of(zone, index_of)?,
    };
    // An IPv4-mapped address is IPv4 on the wire; as IPv6 it fails on sockets of IPv6 only.
    Ok(TargetHost::Literal(IpAddr::V6(address).to_canonical(), scope))
}

/// Returns the scope of a zone: the name of an interface, else a number. In a URL its `%` is `%25`
/// (RFC 6874 §2), which is also how the zone of an interface may begin whose name or number begins
/// with 25: what exists is meant.
fn scope_of(zone: &str, index_of: impl Fn(&str) -> Option<u32>) -> Result<u32, TargetError> {
    let known = |zone: &str| index_of(zone).filter(|index| *index != 0);
    let number = |zone: &str| zone.parse::<u32>().ok().filter(|index| *index != 0);
    let escaped = zone.strip_prefix("25").filter(|rest| !rest.is_empty());
    known(zone)
        .or_else(|| escaped.and_then(|zone| known(zone).or_else(|| number(zone))))
        .or_else(|| number(zone))
        .ok_or_else(|| TargetError::Interface(escaped.unwrap_or(zone).to_owned()))
}

fn parse_name(text: &str) -> Result<TargetHost, TargetError> {
    if text.is_empty() {
        return Err(TargetError::Empty);
    }
    let ascii = Uts46::new()
        .to_ascii(
            text.as_bytes(),
            AsciiDenyList::URL,
            Hyphens::Allow,
            DnsLength::VerifyAllowRootDot,
        )
        .map_err(|_| TargetError::Name(text.to_owned()))?;
    let name = ascii.strip_suffix('.').unwrap_or(&ascii);
    if let Ok(address) = name.parse::<Ipv4Addr>() {
        return Ok(TargetHost::Literal(IpAddr::V4(address), 0));
    }
    // A name whose last label is a number would be read as an address by some and as a name by
    // others (WHATWG URL, "ends in a number"): refuse it.
    let last = name.rsplit('.').next().unwrap_or(name);
    let digits = last.strip_prefix("0x").unwrap_or(last);
    let is_hex = digits.len() < last.len() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    if is_hex || (!last.is_empty() && last.bytes().all(|byte| byte.is_ascii_digit())) {
        return Err(TargetError::Address(text.to_owned()));
    }
    if name.is_empty() {
        return Err(TargetError::Empty);
    }
    Ok(TargetHost::Name(name.to_owned()))
}

/// Why a text is not a valid host.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TargetError {
    /// The host is missing.
    Empty,
    /// An invalid DNS name: an invalid character, or a label or name that is too long.
    Name(String),
    /// It looks like an address but is not a valid one.
    Address(String),
    /// A bracket is not closed.
    Brackets(String),
    /// A zone beside an address that is not link-local.
    Scope(String),
    /// The zone is not an interface of this host.
    Interface(String),
}

impl fmt::Display for TargetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => f.write_str("the host is empty: give a host such as example.com"),
            Self::Name(text) => write!(
                f,
                "{text:?} is not a host name: check its characters, and that no label is longer than 63 octets"
            ),
            Self::Address(text) => write!(
                f,
                "{text:?} looks like an IP address but is not one: write 192.0.2.1 or [2001:db8::1]"
            ),
            Self::Brackets(text) => write!(f, "{text:?} has an unclosed bracket"),
            Self::Scope(zone) => write!(
                f,
                "%{zone} does not belong here: only a link-local address (fe80::…) has a zone; omit it"
            ),
            Self::Interface(zone) if zone.is_empty() => f.write_str(
                "the zone is empty: give the name or number of an interface, as in fe80::1%eth0",
            ),
            Self::Interface(zone) => write!(
                f,
                "there is no interface {zone} for the zone of a link-local address: give the name or number of one, as in fe80::1%eth0"
            ),
        }
    }
}

impl core::error::Error for TargetError {}

/// The peer to reach, and the service there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Target {
    /// The peer.
    pub host: TargetHost,
    /// Whether the host was given with a dot at the end: a resolver that searches names takes it as
    /// it is (RFC 1034 §3.1).
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub absolute: bool,
    /// The port, unless a ServiceMode record specifies another one.
    pub port: u16,
    /// The service, which determines the DNS records queried and the ALPN offered.
    pub service: TargetService,
    /// The required security; never weakened by an answer or by the memory.
    pub security: Security,
}

impl Target {
    /// Creates a target for HTTP over TLS, versions 1.1 to 3.
    pub fn https(host: TargetHost, port: u16) -> Self {
        let service = TargetService::Http {
            stream_alpn: vec!["h2".into(), "http/1.1".into()],
            quic_alpn: vec!["h3".into()],
        };
        Self { host, absolute: false, port, service, security: Security::Tls }
    }

    /// Creates a target for HTTP/1.1 in clear text. HTTPS records are not queried, since they would
    /// offer TLS.
    pub fn http(host: TargetHost, port: u16) -> Self {
        let service =
            TargetService::Http { stream_alpn: vec!["http/1.1".into()], quic_alpn: Vec::new() };
        Self { host, absolute: false, port, service, security: Security::None }
    }

    /// Creates a target for any other service at `host:port`, over any of these transports, without
    /// ALPN.
    pub fn plain(
        host: TargetHost,
        port: u16,
        transports: Vec<Transport>,
        security: Security,
    ) -> Self {
        let service = TargetService::Plain { transports, alpn: Vec::new() };
        Self { host, absolute: false, port, service, security }
    }

    /// Sets the application protocols to offer, most preferred first. Each is offered over the
    /// transports that [carry](Transport::carries) it: `["h3", "h2"]` offers `h3` over QUIC and
    /// `h2` over the others.
    #[must_use]
    pub fn with_alpn<A: Into<AlpnName>>(mut self, protocols: impl IntoIterator<Item = A>) -> Self {
        let protocols = protocols.into_iter().map(Into::into);
        match &mut self.service {
            TargetService::Plain { alpn, .. } => *alpn = protocols.collect(),
            TargetService::Http { stream_alpn, quic_alpn } => {
                (*quic_alpn, *stream_alpn) =
                    protocols.partition(|protocol| Transport::Quic.carries(protocol));
            }
        }
        self
    }

    /// Sets whether the host's name is taken as it is, by the text that it was read from.
    #[must_use]
    pub fn named_as(mut self, text: &str) -> Self {
        self.absolute = text.ends_with('.');
        self
    }

    /// Returns whether the peer has to prove that it is the one that was asked for. Otherwise an
    /// expired answer of DNS could lead to the new owner of an address.
    pub fn authenticates_peer(&self) -> bool {
        self.security != Security::None
    }

    /// Returns whether HTTPS records are queried: for HTTP over TLS at a DNS name.
    pub fn asks_https_records(&self) -> bool {
        matches!(self.service, TargetService::Http { .. })
            && self.security != Security::None
            && self.host.name().is_some()
            && !self.host.is_localhost()
    }
}

impl fmt::Display for Target {
    /// Formats the target as `host:port`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.host, self.port)
    }
}

/// The service at a target.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum TargetService {
    /// HTTP: HTTPS records are queried (RFC 9460 §9), `h3` implies QUIC.
    Http {
        /// The versions accepted over byte-stream transports, most preferred first: `h2`,
        /// `http/1.1`.
        stream_alpn: Vec<AlpnName>,
        /// The versions accepted over QUIC, most preferred first: `h3`.
        quic_alpn: Vec<AlpnName>,
    },
    /// Any other service at `host:port`: no HTTPS records are queried.
    Plain {
        /// The transports that the caller supports there.
        transports: Vec<Transport>,
        /// The application protocols to offer, most preferred first.
        alpn: Vec<AlpnName>,
    },
}

impl TargetService {
    /// Returns whether the service is available over this transport.
    pub fn is_spoken_over(&self, transport: Transport) -> bool {
        match self {
            Self::Http { .. } => self.http_over(transport).next().is_some(),
            Self::Plain { transports, .. } => transports.contains(&transport),
        }
    }

    /// Returns the application protocols to offer over this transport, most preferred first.
    pub fn protocols_over(&self, transport: Transport) -> Vec<AlpnName> {
        match self {
            Self::Http { .. } => self.http_over(transport).cloned().collect(),
            Self::Plain { alpn, .. } => {
                let carried = |protocol: &&AlpnName| transport.carries(protocol);
                let carried: Vec<AlpnName> = alpn.iter().filter(carried).cloned().collect();
                // If none fits, the caller means them anyway, whatever usually carries them.
                if carried.is_empty() { alpn.clone() } else { carried }
            }
        }
    }

    /// Returns its versions of HTTP that are used over this transport.
    fn http_over(&self, transport: Transport) -> impl Iterator<Item = &AlpnName> {
        let versions = match self {
            Self::Http { quic_alpn, .. } if transport.has_http3() => quic_alpn.as_slice(),
            Self::Http { stream_alpn, .. } => stream_alpn,
            Self::Plain { .. } => &[],
        };
        versions.iter().filter(move |version| transport.speaks_http(version))
    }
}
