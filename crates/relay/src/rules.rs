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
            let most = if ip.is_ipv4() { 32 } else { 128 };
            return if bits <= most { Ok(Self::Network(ip, bits)) } else { Err(PatternError) };
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
            Host::Literal(ip, _) => Ok(Self::Network(ip, if ip.is_ipv4() { 32 } else { 128 })),
        }
    }
}

impl Pattern {
    fn has_name(&self, name: &str, port: u16) -> bool {
        let has = match &self.hosts {
            Hosts::Name(one) => one == name,
            Hosts::Below(domain) => {
                name.strip_suffix(domain.as_str()).is_some_and(|host| host.ends_with('.'))
            }
            Hosts::Any | Hosts::Network(..) => false,
        };
        has && self.ports.contains(&port)
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
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// Destinations that are always allowed.
    pub allow: Vec<Pattern>,
    /// Destinations that are denied.
    pub deny: Vec<Pattern>,
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
            Host::Name(name) if self.deny.iter().any(|one| one.has_name(name, to.port)) => {
                Verdict::Denied(DenialReason::Rule)
            }
            name if name.is_localhost() => self.of_localhost(to.port, client),
            Host::Name(_) => Verdict::ByAddress,
        }
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
        let (ip, client) = (embedded(ip), client.to_canonical());
        if self.allow.iter().any(|one| one.has_address(ip, port)) {
            return Ok(());
        }
        if self.deny.iter().any(|one| one.has_address(ip, port)) {
            return Err(DenialReason::Rule);
        }
        if is_restricted(ip) && !client.is_loopback() { Err(DenialReason::Local) } else { Ok(()) }
    }
}

/// Returns the IPv4 address embedded in an IPv6 address, if there is one (RFC 4291 §2.5.5.2,
/// RFC 6052 §2.1, RFC 3056 §2).
fn embedded(ip: IpAddr) -> IpAddr {
    let IpAddr::V6(six) = ip.to_canonical() else { return ip.to_canonical() };
    let four = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        IpAddr::V4(Ipv4Addr::new(a, b, c, d))
    };
    match six.segments() {
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] | [0x2002, high, low, ..] => four(high, low),
        _ => IpAddr::V6(six),
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
mod tests {
    use super::*;

    const REMOTE_CLIENT: &str = "198.51.100.7";

    fn rules(allow: &[&str], deny: &[&str]) -> Rules {
        let read = |texts: &[&str]| texts.iter().map(|text| text.parse().expect(text)).collect();
        Rules { allow: read(allow), deny: read(deny) }
    }

    fn may(rules: &Rules, address: &str, client: &str) -> bool {
        let ip = address.parse().expect("an address");
        rules.of_address(ip, 443, client.parse().expect("an address")).is_ok()
    }

    #[test]
    fn remote_clients_cannot_reach_private_addresses() {
        let rules = Rules::default();
        for restricted in [
            "127.0.0.1",
            "127.9.9.9",
            "10.1.1.1",
            "192.168.1.1",
            "172.16.0.1",
            "169.254.169.254",
            "100.64.0.1",
            "0.0.0.0",
            "::1",
            "::",
            "fe80::1",
            "fd00::1",
            "::ffff:127.0.0.1",
            "64:ff9b::10.0.0.1",
            "2002:7f00:1::",
            "64:ff9b:1::1",
            "fec0::1",
        ] {
            assert!(!may(&rules, restricted, REMOTE_CLIENT), "{restricted}");
            assert!(
                may(&rules, restricted, "127.0.0.1") && may(&rules, restricted, "::1"),
                "{restricted}"
            );
        }
        for public in ["192.0.2.1", "2001:db8::1", "100.128.0.1", "64:ff9b::192.0.2.1"] {
            assert!(may(&rules, public, REMOTE_CLIENT), "{public}");
        }
        assert!(may(&rules, "10.0.0.1", "::ffff:127.0.0.1"));
    }

    #[test]
    fn an_allow_rule_overrides_the_others() {
        let rules = rules(&["10.1.0.0/16", "[fd00::]/8:443", "*.corp.example"], &["*"]);
        assert!(may(&rules, "10.1.2.3", REMOTE_CLIENT) && may(&rules, "fd00::9", REMOTE_CLIENT));
        assert!(!may(&rules, "10.2.0.1", "127.0.0.1") && !may(&rules, "192.0.2.1", "127.0.0.1"));
        let verdict = |host: &str, port| {
            let to = Destination::new(Host::parse(host).expect("a host"), port);
            rules.of_destination(&to, REMOTE_CLIENT.parse().expect("an address"))
        };
        assert_eq!(verdict("a.corp.example", 1), Verdict::Allowed);
        assert_eq!(verdict("corp.example", 1), Verdict::ByAddress);
        assert_eq!(verdict("xcorp.example", 1), Verdict::ByAddress);
        assert_eq!(verdict("fd00::9", 80), Verdict::Denied(DenialReason::Rule));
    }

    #[test]
    fn the_name_of_this_machine_is_treated_like_its_addresses() {
        let verdict = |rules: &Rules, host: &str, client: &str| {
            let to = Destination::new(Host::parse(host).expect("a host"), 80);
            rules.of_destination(&to, client.parse().expect("an address"))
        };
        for name in ["localhost", "LOCALHOST.", "app.localhost"] {
            let none = Rules::default();
            assert_eq!(
                verdict(&none, name, REMOTE_CLIENT),
                Verdict::Denied(DenialReason::Local),
                "{name}"
            );
            assert_eq!(verdict(&none, name, "127.0.0.1"), Verdict::Allowed, "{name}");
            let rule = rules(&[], &["127.0.0.0/8"]);
            assert_eq!(verdict(&rule, name, "::1"), Verdict::Denied(DenialReason::Rule), "{name}");
            let named = rules(&["localhost", "*.localhost"], &["*"]);
            assert_eq!(verdict(&named, name, REMOTE_CLIENT), Verdict::Allowed, "{name}");
        }
    }

    #[test]
    fn names_and_ports_are_denied() {
        let rules = rules(&[], &["ads.example", "*:25", "192.0.2.0/24:1-1023"]);
        let to = |host: &str| Destination::new(Host::parse(host).expect("a host"), 443);
        let client = "127.0.0.1".parse().expect("an address");
        assert_eq!(
            rules.of_destination(&to("ads.example"), client),
            Verdict::Denied(DenialReason::Rule)
        );
        assert_eq!(rules.of_destination(&to("x.ads.example"), client), Verdict::ByAddress);
        assert!(!may(&rules, "192.0.2.1", "127.0.0.1") && may(&rules, "192.0.3.1", "127.0.0.1"));
        assert_eq!(
            rules.of_address("8.8.8.8".parse().unwrap(), 25, client),
            Err(DenialReason::Rule)
        );
    }

    #[test]
    fn patterns_are_parsed_as_people_write_them() {
        for text in [
            "*",
            "*:80",
            "a",
            "A.b:1-2",
            "*.a.b",
            "1.2.3.4",
            "1.2.3.4:5",
            "1.0.0.0/8:5",
            "::1",
            "[::1]:5",
            "[fd00::]/8",
            "[fd00::]/8:5",
            "fd00::/8",
        ] {
            assert!(text.parse::<Pattern>().is_ok(), "{text}");
        }
        for text in ["", "a:", "a:x", "a:2-1", "1.2.3.4/33", "fd00::/129", "*.1.2.3.4", "a/8", "*a"]
        {
            assert_eq!(text.parse::<Pattern>(), Err(PatternError), "{text}");
        }
    }
}
