//! IPv4 and IPv6: addresses, routes, whether TCP passes; NAT64 and NAT.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use eyas::race::candidate::AddressFamily;
use eyas::race::evidence::FailureCause;

use super::super::findings::{AttemptFinding, AttemptResult, DoctorFindings, HostFindings};
use super::super::topic::TopicVerdict;
use super::NO_HOST;
use super::transports::{NO_TIME, why};
use crate::terminal::time;

/// The addresses of a CLAT, behind which IPv6 carries IPv4 (RFC 7335).
const CLAT_PREFIX: u32 = Ipv4Addr::new(192, 0, 0, 0).to_bits() >> 3;
/// The addresses between a provider's NAT and its customers (RFC 6598).
const SHARED_PREFIX: u32 = Ipv4Addr::new(100, 64, 0, 0).to_bits() >> 22;

pub(super) const fn name_of(family: AddressFamily) -> &'static str {
    match family {
        AddressFamily::V4 => "IPv4",
        AddressFamily::V6 => "IPv6",
    }
}

/// Returns the verdict about one family.
pub(super) fn family(findings: &DoctorFindings, family: AddressFamily) -> TopicVerdict {
    let over = |family| findings.host.as_ref().map(|host| tcp_over(host, family));
    let tried = over(family).unwrap_or_default();
    if let (Some(host), false) = (&findings.host, tried.is_empty()) {
        let other = over(family.other()).unwrap_or_default();
        return carried(host, family, &tried, &other);
    }
    let own: Vec<IpAddr> = findings.machine.routed(family).collect();
    let name = name_of(family);
    let Some(own) = listed(&own) else {
        let has_other = findings.machine.routed(family.other()).next().is_some();
        let other_works =
            over(family.other()).unwrap_or_default().iter().any(|tried| tried.is_answered());
        return match has_other || other_works {
            true => TopicVerdict::absent("no address with a route beyond the link"),
            false => TopicVerdict::broken(
                "no address with a route beyond the link",
                "this machine is not connected: check its cable, Wi-Fi and DHCP client",
            ),
        };
    };
    match &findings.host {
        None => {
            TopicVerdict::unknown(format!("{own} with a route; whether it carries TCP {NO_HOST}"))
        }
        Some(host) if host.attempts.is_none() => TopicVerdict::unknown(NO_TIME),
        Some(host) => TopicVerdict::unknown(format!(
            "{own} with a route; {} has no {name} address to try it with",
            host.host
        )),
    }
}

/// Returns the attempts over TCP, with or without its multipath option.
fn tcp_over(host: &HostFindings, family: AddressFamily) -> Vec<&AttemptFinding> {
    host.attempts_of(|attempt| {
        let is_unsupported = matches!(
            attempt.outcome,
            AttemptResult::Failed { cause: FailureCause::Unsupported, .. }
        );
        attempt.transport.ip_protocol() == TCP && attempt.family() == family && !is_unsupported
    })
}

/// The protocol number of TCP.
const TCP: u8 = 6;

/// Returns the verdict about a family that was tried.
fn carried(
    host: &HostFindings,
    family: AddressFamily,
    tried: &[&AttemptFinding],
    other: &[&AttemptFinding],
) -> TopicVerdict {
    let name = name_of(family);
    let fastest = tried.iter().filter_map(|tried| Some((tried.ready()?, tried.address))).min();
    if let Some((took, address)) = fastest {
        return TopicVerdict::good(format!("TCP to {address} is ready in {}", time(took)));
    }
    if let Some(answered) = tried.iter().find(|tried| tried.is_answered()) {
        let (address, why) = (answered.address, why(answered));
        return TopicVerdict::good(format!("{address} answers over TCP, though it is {why}"));
    }
    let addresses: Vec<IpAddr> = tried.iter().map(|tried| tried.address.ip()).collect();
    let at = listed(&addresses).unwrap_or_default();
    let is_own = |tried: &&AttemptFinding| matches!(tried.outcome, AttemptResult::Failed { cause, .. } if cause.is_of_this_host());
    if tried.iter().all(is_own) {
        return TopicVerdict::broken(
            format!("this machine cannot send TCP to {at}"),
            format!("check its firewall's rules for output, and its {name} addresses and routes"),
        );
    }
    let why = tried.first().map_or("not answered", |tried| why(tried));
    if other.iter().any(|tried| tried.is_answered()) {
        let other = name_of(family.other());
        return TopicVerdict::broken(
            format!("{at} is {why} over TCP; over {other} the host answers"),
            format!(
                "{name} does not get through: tell the network's operator; until it is mended, \
                 'eyas proxy run COMMAND' keeps a program from waiting for it, or switch {name} \
                 off on this network"
            ),
        );
    }
    TopicVerdict::broken(
        format!("{at} is {why} over TCP"),
        format!("is {} up, and does a firewall let TCP port {} through?", host.host, host.port),
    )
}

/// Returns the first address and the number of others; `None` if there is none.
fn listed(addresses: &[IpAddr]) -> Option<String> {
    let mut different: Vec<IpAddr> = Vec::new();
    for address in addresses {
        if !different.contains(address) {
            different.push(*address);
        }
    }
    let (first, others) = different.split_first()?;
    Some(match others.len() {
        0 => first.to_string(),
        others => format!("{first} and {others} more"),
    })
}

/// Returns the verdict about NAT64.
pub(super) fn nat64(findings: &DoctorFindings) -> TopicVerdict {
    let servers = findings.name_servers.iter().flat_map(|server| &server.nat64);
    let mut prefixes: Vec<(Ipv6Addr, u8)> = Vec::new();
    for prefix in findings.machine.nat64.iter().chain(servers) {
        if !prefixes.contains(prefix) {
            prefixes.push(*prefix);
        }
    }
    let has = |family| findings.machine.routed(family).next().is_some();
    if !prefixes.is_empty() {
        let prefixes: Vec<String> =
            prefixes.iter().map(|(prefix, len)| format!("{prefix}/{len}")).collect();
        return TopicVerdict::good(format!("IPv4 addresses are below {}", prefixes.join(", ")));
    }
    match (has(AddressFamily::V4), has(AddressFamily::V6)) {
        (true, _) => TopicVerdict::absent("none, and none is needed: there is IPv4"),
        (false, false) => TopicVerdict::absent("none: there is no IPv6 address with a route"),
        (false, true) if findings.name_servers.iter().any(|server| server.answer().is_some()) => {
            TopicVerdict::broken(
                "none, and no IPv4: hosts that have only IPv4 cannot be reached",
                "ask the network's operator for NAT64, and use the network's own name servers, \
                 which know its prefix (RFC 7050)",
            )
        }
        (false, true) => TopicVerdict::unknown("no name server says whether there is one"),
    }
}

/// Returns the verdict about NAT, as far as an address tells.
pub(super) fn nat(findings: &DoctorFindings) -> TopicVerdict {
    let own = findings.machine.routed(AddressFamily::V4).find_map(|address| match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    });
    let Some(own) = own else {
        return TopicVerdict::absent("no IPv4 address with a route");
    };
    let bits = own.to_bits();
    TopicVerdict::good(if own.is_private() {
        format!("{own} is private: a NAT is between it and the Internet")
    } else if bits >> 22 == SHARED_PREFIX {
        format!("{own} is shared (RFC 6598): the provider's NAT is between it and the Internet")
    } else if bits >> 3 == CLAT_PREFIX {
        format!("{own} is translated to IPv6 on this machine (464XLAT, RFC 6877)")
    } else {
        format!("none to be seen: {own} is not private")
    })
}
