//! Discovers NAT64 prefixes by DNS (RFC 7050) where there is no IPv4 route.

use std::net::{Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use eyas_race::candidate::AddressFamily;
use eyas_race::dns::{DnsFailure, DnsQuery, DnsRecords, QueryId, RecordType};
use eyas_race::io::NetworkView;
use eyas_race::nat64::{PREFIX_LENGTHS, extract};

use crate::Resolver;

/// A prefix and its length, in bits.
pub(crate) type Ipv6Prefix = (Ipv6Addr, u8);

/// The IPv4 addresses of `ipv4only.arpa` (RFC 7050 §2.2).
const WELL_KNOWN: [Ipv4Addr; 2] = [Ipv4Addr::new(192, 0, 0, 170), Ipv4Addr::new(192, 0, 0, 171)];
/// The name that has only these addresses, unless a DNS64 adds others (RFC 7050 §3). It is absolute: no search list
/// applies.
const NAME: &str = "ipv4only.arpa.";
/// How long a race waits for the prefix, once per network: a name server that drops EDNS answers the second query.
const DISCOVERY_TIMEOUT: Duration = Duration::from_millis(1500);
/// After which time the discovery is repeated if there was no answer.
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// After which time it is repeated otherwise. Within its time to live, the answer comes from the cache (RFC 7050 §3).
const REPEAT_AFTER: Duration = Duration::from_hours(1);
/// The maximum number of prefixes (RFC 7050 §3 allows several).
const MAX_PREFIXES: usize = 4;

/// Returns whether this network needs a NAT64 to reach IPv4 addresses.
pub(super) fn is_needed(view: &NetworkView) -> bool {
    !view.has_connectivity(AddressFamily::V4) && view.has_connectivity(AddressFamily::V6)
}

/// Returns the prefixes of this network, and after which time to look again. The network's own name servers know them
/// (RFC 7050 §3), whatever server the caller has named for everything else. Only if none of the network's answers,
/// that server is asked.
pub(super) async fn discover(network: &Resolver, named: &Resolver) -> (Vec<Ipv6Prefix>, Duration) {
    let query = DnsQuery { id: QueryId(0), name: NAME.into(), record_type: RecordType::Aaaa };
    let ask = async {
        let answer = network.query(&query, 0).await.records;
        match answer {
            Err(DnsFailure::Unreachable | DnsFailure::Local(_)) if !named.is_system() => {
                named.query(&query, 0).await.records
            }
            answer => answer,
        }
    };
    match tokio::time::timeout(DISCOVERY_TIMEOUT, ask).await {
        Ok(Ok(DnsRecords::Aaaa(addresses))) => (prefixes(&addresses), REPEAT_AFTER),
        Ok(Ok(_) | Err(DnsFailure::NoData | DnsFailure::NoSuchName)) => (Vec::new(), REPEAT_AFTER),
        Ok(Err(_)) | Err(_) => (Vec::new(), RETRY_AFTER),
    }
}

/// Returns the prefixes of the addresses that a DNS64 has made for `ipv4only.arpa` (RFC 7050 §3).
pub(crate) fn prefixes(addresses: &[Ipv6Addr]) -> Vec<Ipv6Prefix> {
    let mut prefixes: Vec<Ipv6Prefix> = Vec::new();
    for address in addresses {
        // Longest first: a short prefix could match by chance in the bits of a longer one.
        let found = PREFIX_LENGTHS.iter().rev().find_map(|len| {
            let prefix = (masked(*address, *len), *len);
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

/// Returns the address with only its first `len` bits.
pub(super) fn masked(address: Ipv6Addr, len: u8) -> Ipv6Addr {
    let mask = u128::MAX.checked_shl(128 - u32::from(len)).unwrap_or_default();
    Ipv6Addr::from_bits(address.to_bits() & mask)
}
