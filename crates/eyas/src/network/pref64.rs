//! Discovers NAT64 prefixes by DNS (RFC 7050) where there is no IPv4 route.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use eyas_race::candidate::Family;
use eyas_race::dns::{Query, QueryId, RecordType, Records};
use eyas_race::io::NetworkView;
use eyas_race::nat64::{PREFIX_LENGTHS, extract};

use crate::Resolver;

/// The IPv4 addresses of `ipv4only.arpa` (RFC 7050 §2.2).
const WELL_KNOWN: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 0, 170), Ipv4Addr::new(192, 0, 0, 171)];
/// How long a race waits for the prefix, once per network.
const DISCOVERY_TIMEOUT: Duration = Duration::from_millis(500);
/// The maximum number of prefixes (RFC 7050 §3 allows several).
const MAX_PREFIXES: usize = 4;

/// Returns the prefixes of this network, if it needs any.
pub(super) async fn discover(view: &NetworkView, resolver: &Resolver) -> Vec<(Ipv6Addr, u8)> {
    if view.has_connectivity(Family::V4) || !view.has_connectivity(Family::V6) {
        return Vec::new();
    }
    let query =
        Query { id: QueryId(0), name: "ipv4only.arpa".into(), record_type: RecordType::Aaaa };
    let answer = tokio::time::timeout(DISCOVERY_TIMEOUT, resolver.query(&query, 0)).await;
    match answer.map(|answer| answer.records) {
        Ok(Ok(Records::Aaaa(addresses))) => prefixes(&addresses),
        _ => Vec::new(),
    }
}

pub(super) fn prefixes(addresses: &[Ipv6Addr]) -> Vec<(Ipv6Addr, u8)> {
    let mut prefixes: Vec<(Ipv6Addr, u8)> = Vec::new();
    for address in addresses {
        // Longest first: a short prefix could match by chance in the bits of a longer one.
        let found = PREFIX_LENGTHS.iter().rev().find_map(|len| {
            let prefix = (Ipv6Addr::from_bits(address.to_bits() & mask(*len)), *len);
            extract(prefix, *address).filter(|v4| WELL_KNOWN.contains(v4)).map(|_| prefix)
        });
        if let Some(prefix) = found
            && !prefixes.contains(&prefix)
            && prefixes.len() < MAX_PREFIXES
        {
            prefixes.push(prefix);
        }
    }
    prefixes
}

fn mask(len: u8) -> u128 {
    u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or_default()
}
