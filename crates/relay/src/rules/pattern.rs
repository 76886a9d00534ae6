//! What a rule matches: hosts and ports.

use std::net::IpAddr;
use std::ops::RangeInclusive;
use std::str::FromStr;

use eyas::race::target::{TargetHost, parse_port};
use thiserror::Error;

use super::address::is_within;

/// Hosts and ports: `example.org`, `*.example.org` (its subdomains), `192.0.2.0/24`,
/// `[2001:db8::]/32` or `*`, optionally followed by `:443` or `:1-1023`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RulePattern {
    hosts: PatternHosts,
    ports: RangeInclusive<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum PatternHosts {
    Any,
    Name(String),
    Below(String),
    Network(IpAddr, u8),
}

/// The error of parsing a [`RulePattern`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "expected a host, *.domain, a network such as 10.0.0.0/8 or [fd00::]/8, or *, with :PORT or \
     :FROM-TO or without"
)]
pub struct PatternError;

impl FromStr for RulePattern {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        let text = text.trim();
        // A bare IPv6 address has more than one colon, and no port.
        let is_bare = !text.starts_with('[') && text.matches(':').count() > 1;
        let (hosts, ports) = match text.rsplit_once(':') {
            Some((hosts, ports)) if !is_bare && !ports.contains([']', '/']) => (hosts, Some(ports)),
            _ => (text, None),
        };
        let ports = match ports {
            None => 0..=u16::MAX,
            Some(ports) => {
                let (from, to) = ports.split_once('-').unwrap_or((ports, ports));
                let port = |text: &str| parse_port(text).ok_or(PatternError);
                port(from)?..=port(to)?
            }
        };
        match ports.is_empty() {
            true => Err(PatternError),
            false => Ok(Self { hosts: hosts.parse()?, ports }),
        }
    }
}

impl FromStr for PatternHosts {
    type Err = PatternError;

    fn from_str(text: &str) -> Result<Self, PatternError> {
        if text == "*" {
            return Ok(Self::Any);
        }
        if let Some((address, bits)) = text.split_once('/') {
            let address = address.trim_start_matches('[').trim_end_matches(']');
            let ip: IpAddr = address.parse().map_err(|_| PatternError)?;
            let bits = bits.parse().map_err(|_| PatternError)?;
            return network(ip, bits).ok_or(PatternError);
        }
        let (below, name) = match text.strip_prefix("*.") {
            Some(name) => (true, name),
            None => (false, text),
        };
        if name.contains('*') {
            return Err(PatternError);
        }
        match TargetHost::parse(name).map_err(|_| PatternError)? {
            TargetHost::Name(name) if below => Ok(Self::Below(name)),
            TargetHost::Name(name) => Ok(Self::Name(name)),
            TargetHost::Literal(..) if below => Err(PatternError),
            TargetHost::Literal(ip, _) => {
                network(ip, if ip.is_ipv4() { 32 } else { 128 }).ok_or(PatternError)
            }
        }
    }
}

/// Returns a network, unless its prefix is too long. Addresses are compared as IPv4 where they are that.
fn network(ip: IpAddr, bits: u8) -> Option<PatternHosts> {
    const MAPPED: u8 = 96;
    match (ip, ip.to_canonical()) {
        (IpAddr::V6(_), four @ IpAddr::V4(_)) if (MAPPED..=128).contains(&bits) => {
            Some(PatternHosts::Network(four, bits - MAPPED))
        }
        (IpAddr::V4(_), _) if bits > 32 => None,
        _ if bits > 128 => None,
        _ => Some(PatternHosts::Network(ip, bits)),
    }
}

impl RulePattern {
    pub(super) fn has_name(&self, name: &str, port: u16) -> bool {
        let has = match &self.hosts {
            PatternHosts::Any => true,
            PatternHosts::Name(one) => one == name,
            PatternHosts::Below(domain) => {
                name.strip_suffix(domain.as_str()).is_some_and(|host| host.ends_with('.'))
            }
            PatternHosts::Network(..) => false,
        };
        has && self.ports.contains(&port)
    }

    /// Returns whether it is `*`, with ports or without.
    pub(super) fn is_any(&self) -> bool {
        self.hosts == PatternHosts::Any
    }

    /// Returns whether it names addresses, some of which a name may have.
    pub(super) fn is_network(&self, port: u16) -> bool {
        matches!(self.hosts, PatternHosts::Network(..)) && self.ports.contains(&port)
    }

    pub(super) fn has_address(&self, ip: IpAddr, port: u16) -> bool {
        let has = match &self.hosts {
            PatternHosts::Any => true,
            PatternHosts::Network(network, bits) => is_within(ip, *network, *bits),
            PatternHosts::Name(_) | PatternHosts::Below(_) => false,
        };
        has && self.ports.contains(&port)
    }
}
