//! Destination Address Selection (RFC 6724 §6), as a sort key.
//!
//! Rules 4 (home addresses) and 7 (native transport) do not apply: no source is a Mobile IPv6 home
//! address, and encapsulation is not known. Each rule yields a number, smaller being better, and
//! the first difference decides, so the order is total. Rule 9 compares within a family only, which
//! holds because rule 6 has already separated the families.

use core::{net::IpAddr, time::Duration};

use crate::candidate::AddressFamily;
use crate::io::{NetworkView, SourceAddress};
use crate::network::{common_bits, is_link_local};
use crate::policy::{AddressTable, PrefixValue, RFC_6724};
use crate::reason::AddressRule;

#[cfg(test)]
mod tests;

const SCOPE_LINK_LOCAL: u64 = 0x2;
const SCOPE_SITE_LOCAL: u64 = 0x5;
const SCOPE_GLOBAL: u64 = 0xe;

/// The rules in the order in which they decide.
const RULES: [AddressRule; 9] = [
    AddressRule::Unusable,
    AddressRule::MatchingScope,
    AddressRule::Deprecated,
    AddressRule::MatchingLabel,
    AddressRule::Precedence,
    AddressRule::SmallerScope,
    AddressRule::RoundTrip,
    AddressRule::UsedBefore,
    AddressRule::LongestPrefix,
];

/// The rank of an address; smaller is preferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct DestinationRank([u64; RULES.len()]);

impl DestinationRank {
    /// Returns the rank of a destination on this network, given what the memory knows about it, and
    /// the host's table in place of the one of the RFC.
    pub(super) fn new(
        network: &NetworkView,
        table: Option<&AddressTable>,
        address: IpAddr,
        rtt: Option<Duration>,
        used: bool,
    ) -> Self {
        let (precedence, label) = policy(table, address);
        let scope = |address| scope_by(table, address);
        let source = source_for(network, address);
        // Through NAT64 there is no IPv4 source to compare with, so the rule does not apply.
        let rtt = rtt.map_or(u64::MAX, |rtt| u64::try_from(rtt.as_micros()).unwrap_or(u64::MAX));
        Self([
            u64::from(!network.can_try(address)),
            u64::from(source.is_some_and(|source| scope(source.address) != scope(address))),
            u64::from(source.is_some_and(|source| source.deprecated)),
            u64::from(source.is_some_and(|source| policy(table, source.address).1 != label)),
            u64::from(u32::MAX - precedence),
            scope(address),
            rtt,
            u64::from(!used),
            u64::MAX - u64::from(source.map_or(0, |source| matching_prefix(&source, address))),
        ])
    }
}

/// Returns the rule that ranks the second after the first.
pub(super) fn rule_between(first: &DestinationRank, second: &DestinationRank) -> AddressRule {
    let differs = first.0.iter().zip(&second.0).position(|(one, other)| one != other);
    differs.map_or(AddressRule::AsAnswered, |rule| RULES[rule])
}

/// Returns the address as used by the policy table.
fn mapped(address: IpAddr) -> u128 {
    match address {
        IpAddr::V6(address) => address.to_bits(),
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
    }
}

/// Returns precedence and label.
fn policy(table: Option<&AddressTable>, address: IpAddr) -> (u32, u32) {
    let bits = mapped(address);
    let covers = |prefix: u128, len: u8| common_bits(prefix, bits) >= u32::from(len);
    match table {
        None => RFC_6724
            .iter()
            .find(|(prefix, len, _, _)| covers(*prefix, *len))
            .map_or((0, 0), |(_, _, precedence, label)| (*precedence, *label)),
        Some(table) => {
            let value = |list| value_of(list, address).unwrap_or_default();
            (value(&table.precedences), value(&table.labels))
        }
    }
}

/// Returns the value of the first row for an address.
fn value_of(list: &[PrefixValue], address: IpAddr) -> Option<u32> {
    let bits = mapped(address);
    let covers = |row: &&PrefixValue| common_bits(row.prefix.to_bits(), bits) >= u32::from(row.len);
    list.iter().find(covers).map(|row| row.value)
}

/// Returns the scope, which the host's table may set for IPv4.
fn scope_by(table: Option<&AddressTable>, address: IpAddr) -> u64 {
    let listed =
        table.filter(|_| address.is_ipv4()).and_then(|table| value_of(&table.scopes, address));
    listed.map_or_else(|| scope(address), u64::from)
}

/// Returns the scope according to RFC 6724 §3.1 and §3.2: loopback counts as link-local, private
/// IPv4 as global.
fn scope(address: IpAddr) -> u64 {
    match address {
        IpAddr::V4(address) if address.is_loopback() || address.is_link_local() => SCOPE_LINK_LOCAL,
        IpAddr::V4(_) => SCOPE_GLOBAL,
        IpAddr::V6(address) if address.is_loopback() || address.is_unicast_link_local() => {
            SCOPE_LINK_LOCAL
        }
        IpAddr::V6(address) if address.segments()[0] & 0xffc0 == 0xfec0 => SCOPE_SITE_LOCAL,
        IpAddr::V6(_) => SCOPE_GLOBAL,
    }
}

/// Returns the source that the kernel would choose among those given: RFC 6724 §5 with rules 1, 2,
/// 3, 6 and 8; the other rules concern interfaces and temporary addresses. The table of this
/// program's host is none of the kernel's.
fn source_for(network: &NetworkView, destination: IpAddr) -> Option<SourceAddress> {
    if destination.is_loopback() {
        let prefix_len = if destination.is_ipv4() { 8 } else { 128 };
        let address = destination;
        return Some(SourceAddress { address, prefix_len, deprecated: false, routed: false });
    }
    let destination_scope = scope(destination);
    let label = policy(None, destination).1;
    let fits = |source: &&SourceAddress| {
        AddressFamily::from_ip(source.address) == AddressFamily::from_ip(destination)
            && !source.address.is_loopback()
            && (is_link_local(source.address) || !is_link_local(destination) || source.routed)
    };
    network
        .sources
        .iter()
        .filter(fits)
        .min_by_key(|source| {
            let scope = scope(source.address);
            // Rule 2: the smallest scope that reaches as far as the destination; else the widest.
            let scope_rank =
                if scope >= destination_scope { scope } else { 2 * SCOPE_GLOBAL - scope };
            (
                source.address != destination,
                scope_rank,
                source.deprecated,
                policy(None, source.address).1 != label,
                u32::MAX - matching_prefix(source, destination),
            )
        })
        .copied()
}

/// Returns the number of common leading bits, at most the length of the source's prefix (RFC 6724
/// §2.2). IPv4 counts only within the source's own subnet: elsewhere, numerically close addresses
/// are not close in the network, and the rule would undo the round robin of DNS.
fn matching_prefix(source: &SourceAddress, destination: IpAddr) -> u32 {
    let prefix_len = u32::from(source.prefix_len);
    match (source.address, destination) {
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            common_bits(source.to_bits(), destination.to_bits()).min(prefix_len)
        }
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let common = (source.to_bits() ^ destination.to_bits()).leading_zeros();
            if common >= prefix_len { prefix_len } else { 0 }
        }
        _ => 0,
    }
}
