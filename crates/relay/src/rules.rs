//! The rules for destinations.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::RangeInclusive;
use std::str::FromStr;

use eyas::race::target::Host;
use thiserror::Error;

use crate::handshake::Destination;

/// Hosts and ports: `example.org`, `*.example.org` (its subdomains), `192.0.2.0/24`,
/// `[2001:db8::]/32` or `*`, optionally followed by `:443` or `:1-1023`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern {
    hosts: Hosts,
    ports: RangeInclusive<u16>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Hosts {
    Any,
    Name(String),
    Below(String),
    Network(IpAddr, u8),
}

/// The error of parsing a [`Pattern`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error(
    "expected a host, *.domain, a network such as 10.0.0.0/8 or [fd00::]/8, or *, with :PORT or \
     :FROM-TO or without"
)]
pub struct PatternError;

impl FromStr for Pattern {
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
                let port = |text: &str| text.parse::<u16>().map_err(|_| PatternError);
                port(from)?..=port(to)?
            }
        };
        match ports.is_empty() {
            true => Err(PatternError),
            false => Ok(Self { hosts: hosts.parse()?, ports }),
        }
    }
}

impl FromStr for Hosts {
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
        match Host::parse(name).map_err(|_| PatternError)? {
            Host::Name(name) if below => Ok(Self::Below(name)),
            Host::Name(name) => Ok(Self::Name(name)),
            Host::Literal(..) if below => Err(PatternError),
            Host::Literal(ip, _) => {
                network(ip, if ip.is_ipv4() { 32 } else { 128 }).ok_or(PatternError)
            }
        }
    }
}

/// Returns a network, unless its prefix is too long. Addresses are compared as IPv4 where they are that.
fn network(ip: IpAddr, bits: u8) -> Option<Hosts> {
    const MAPPED: u8 = 96;
    match (ip, ip.to_canonical()) {
        (IpAddr::V6(_), four @ IpAddr::V4(_)) if (MAPPED..=128).contains(&bits) => {
            Some(Hosts::Network(four, bits - MAPPED))
        }
        (IpAddr::V4(_), _) if bits > 32 => None,
        _ if bits > 128 => None,
        _ => Some(Hosts::Network(ip, bits)),
    }
}

impl Pattern {
    fn has_name(&self, name: &str, port: u16) -> bool {
        let has = match &self.hosts {
            Hosts::Any => true,
            Hosts::Name(one) => one == name,
            Hosts::Below(domain) => {
                name.strip_suffix(domain.as_str()).is_some_and(|host| host.ends_with('.'))
            }
            Hosts::Network(..) => false,
        };
        has && self.ports.contains(&port)
    }

    /// Returns whether it names addresses, some of which a name may have.
    fn is_network(&self, port: u16) -> bool {
        matches!(self.hosts, Hosts::Network(..)) && self.ports.contains(&port)
    }

    fn has_address(&self, ip: IpAddr, port: u16) -> bool {
        let has = match &self.hosts {
            Hosts::Any => true,
            Hosts::Network(network, bits) => is_within(ip, *network, *bits),
            Hosts::Name(_) | Hosts::Below(_) => false,
        };
        has && self.ports.contains(&port)
    }
}

fn is_within(ip: IpAddr, network: IpAddr, bits: u8) -> bool {
    let bits = u32::from(bits);
    match (ip, network) {
        (IpAddr::V4(ip), IpAddr::V4(network)) => {
            (ip.to_bits() ^ network.to_bits()).checked_shr(32 - bits).unwrap_or(0) == 0
        }
        (IpAddr::V6(ip), IpAddr::V6(network)) => {
            (ip.to_bits() ^ network.to_bits()).checked_shr(128 - bits).unwrap_or(0) == 0
        }
        _ => false,
    }
}

/// Where clients may connect to: anywhere except `deny` and, for clients on other machines, what is
/// local to the proxy and out of their reach: this machine, its link, and private networks. `allow`
/// takes precedence over everything else.
///
/// `deny` and what is local apply to every spelling of an address: as it is, and to the IPv4 address
/// that it embeds, and to the loopback address that a kernel takes an unspecified one for. `allow`
/// applies to the address as it is: whoever allows an IPv4 address has not allowed what is behind a
/// translator or a 6to4 router.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Destinations that are always allowed.
    pub allow: Vec<Pattern>,
    /// Destinations that are denied.
    pub deny: Vec<Pattern>,
    /// Whether names are looked up elsewhere, so that their addresses are not known here. A server that
    /// reaches destinations through another proxy sets it.
    pub resolved_elsewhere: bool,
}

/// The verdict on a destination before it is resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is allowed, whatever its addresses are.
    Allowed,
    /// It depends on its addresses.
    ByAddress,
    /// It is denied.
    Denied(DenialReason),
}

/// Why a destination is denied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DenialReason {
    /// A rule denies it.
    Rule,
    /// It is local to the proxy, and the client is on another machine.
    Local,
}

impl fmt::Display for DenialReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rule => "a rule of this proxy (--deny) forbids it",
            Self::Local => {
                "it is on the proxy's own machine, link or private network, which clients on \
                 other machines may use only where --allow permits it"
            }
        })
    }
}

impl Rules {
    /// Returns the verdict on this destination as the client named it.
    pub(crate) fn of_destination(&self, to: &Destination, client: IpAddr) -> Verdict {
        match &to.host {
            Host::Literal(ip, _) => match self.of_address(*ip, to.port, client) {
                Ok(()) => Verdict::Allowed,
                Err(why) => Verdict::Denied(why),
            },
            Host::Name(name) if self.allow.iter().any(|one| one.has_name(name, to.port)) => {
                Verdict::Allowed
            }
            Host::Name(name) if self.denies_name(name, to.port) => {
                Verdict::Denied(DenialReason::Rule)
            }
            name if name.is_localhost() => self.of_localhost(to.port, client),
            Host::Name(_) => Verdict::ByAddress,
        }
    }

    /// Returns whether a name is denied whatever its addresses are. `*` leaves those that are allowed as
    /// addresses, if they are known here.
    fn denies_name(&self, name: &str, port: u16) -> bool {
        let may_be_allowed =
            !self.resolved_elsewhere && self.allow.iter().any(|one| one.is_network(port));
        let denies = |one: &Pattern| !(may_be_allowed && one.hosts == Hosts::Any);
        self.deny.iter().any(|one| one.has_name(name, port) && denies(one))
    }

    /// Returns the verdict on this machine's own name, which is not looked up in DNS (RFC 6761 §6.3): it is
    /// loopback in both families.
    fn of_localhost(&self, port: u16, client: IpAddr) -> Verdict {
        let both = [Ipv4Addr::LOCALHOST.into(), Ipv6Addr::LOCALHOST.into()];
        let verdict = both.into_iter().try_for_each(|ip| self.of_address(ip, port, client));
        verdict.map_or_else(Verdict::Denied, |()| Verdict::Allowed)
    }

    /// Returns an error if a client may not connect to this address.
    pub(crate) fn of_address(
        &self,
        ip: IpAddr,
        port: u16,
        client: IpAddr,
    ) -> Result<(), DenialReason> {
        let ip = ip.to_canonical();
        if self.allow.iter().any(|one| one.has_address(ip, port)) {
            return Ok(());
        }
        let spellings = spellings(ip);
        if spellings.iter().any(|ip| self.deny.iter().any(|one| one.has_address(*ip, port))) {
            return Err(DenialReason::Rule);
        }
        let is_local = spellings.into_iter().any(is_restricted);
        if is_local && !client.to_canonical().is_loopback() {
            Err(DenialReason::Local)
        } else {
            Ok(())
        }
    }
}

/// Returns an address with those that lead to the same place: the IPv4 addresses that it embeds, and the
/// loopback addresses if one of them is unspecified.
fn spellings(ip: IpAddr) -> Vec<IpAddr> {
    let mut all = vec![ip];
    if let IpAddr::V6(six) = ip {
        all.extend(embedded(six).into_iter().map(IpAddr::V4));
    }
    // Linux connects to loopback instead.
    if all.iter().any(IpAddr::is_unspecified) {
        all.extend([IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)]);
    }
    all
}

/// Returns the IPv4 addresses that an IPv6 address embeds: of a destination (RFC 4291 §2.5.5, RFC 6052 §2.1,
/// RFC 5214 §6.1), of its router (RFC 3056 §2), or of its server and of its NAT (RFC 4380 §4).
fn embedded(ip: Ipv6Addr) -> Vec<Ipv4Addr> {
    let four = |high: u16, low: u16| Ipv4Addr::from_bits(u32::from(high) << 16 | u32::from(low));
    match ip.segments() {
        [0, 0, 0, 0, 0, 0xffff, high, low] | [0, 0, 0, 0, 0xffff, 0, high, low] => {
            vec![four(high, low)]
        }
        // The first 16 are not addresses: they include `::` and `::1`.
        [0, 0, 0, 0, 0, 0, 0, 0..=0xf] => Vec::new(),
        [0, 0, 0, 0, 0, 0, high, low] | [0x64, 0xff9b, 0, 0, 0, 0, high, low] => {
            vec![four(high, low)]
        }
        [0x2001, 0, server_high, server_low, _, _, high, low] => {
            vec![four(server_high, server_low), four(!high, !low)]
        }
        [0x2002, router_high, router_low, ..] => vec![four(router_high, router_low)],
        [_, _, _, _, 0 | 0x200, 0x5efe, high, low] => vec![four(high, low)],
        _ => Vec::new(),
    }
}

/// Returns whether an address is this machine's, link-local, private (RFC 6890) or unassigned.
fn is_restricted(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => {
            let [a, b, ..] = ip.octets();
            let is_shared = a == 100 && b & 0xc0 == 64;
            let is_local = ip.is_loopback() || ip.is_link_local() || ip.is_private();
            is_local || is_shared || a == 0 || ip.is_multicast() || ip.is_broadcast()
        }
        IpAddr::V6(ip) => is_restricted_v6(ip),
    }
}

fn is_restricted_v6(ip: Ipv6Addr) -> bool {
    ip.is_loopback()
        || ip.is_unspecified()
        || ip.is_unicast_link_local()
        || ip.is_unique_local()
        || ip.is_multicast()
        // Site-local addresses (RFC 3879), and NAT64 prefixes of a site's own (RFC 8215).
        || ip.segments()[0] & 0xffc0 == 0xfec0
        || ip.segments()[..3] == [0x64, 0xff9b, 1]
}

#[cfg(test)]
mod tests;
