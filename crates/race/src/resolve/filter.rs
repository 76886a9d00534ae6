//! Filters answers: limits their size, and removes duplicates and impossible addresses.

use alloc::{vec, vec::Vec};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::dns::{DnsFailure, DnsQuery, DnsRecords, HttpsRecord, RecordType};
use crate::reason::{PlanReason, ReasonKind};

/// The maximum number of addresses used per name and family.
pub const MAX_ADDRESSES: usize = 64;

/// The maximum number of HTTPS records used per name.
pub const MAX_RECORDS: usize = 32;

/// The maximum number of application protocols used per record.
pub const MAX_ALPN: usize = 32;

/// The maximum size of an `ECHConfigList` in octets: a few configurations with post-quantum keys.
/// It is copied into every candidate of its record.
pub const MAX_ECH: usize = 8192;

/// An answer after filtering.
#[derive(Clone, Debug, Default)]
pub(super) struct FilteredAnswer {
    pub(super) records: Vec<HttpsRecord>,
    pub(super) addresses: Vec<IpAddr>,
    /// The number of records or addresses beyond the limit.
    ignored: usize,
    /// The number of addresses that are not unicast.
    not_unicast: usize,
}

impl FilteredAnswer {
    /// Filters these records; an answer of another type than queried is invalid.
    pub(super) fn new(queried: RecordType, records: DnsRecords) -> Result<Self, DnsFailure> {
        match (queried, records) {
            (RecordType::Https, DnsRecords::Https(records)) => Ok(Self::of_records(records)),
            (RecordType::Aaaa, DnsRecords::Aaaa(list)) => {
                Ok(Self::of_addresses(list.into_iter().map(IpAddr::V6)))
            }
            (RecordType::A, DnsRecords::A(list)) => {
                Ok(Self::of_addresses(list.into_iter().map(IpAddr::V4)))
            }
            _ => Err(DnsFailure::Malformed),
        }
    }

    fn of_records(mut records: Vec<HttpsRecord>) -> Self {
        let all = records.len();
        records.sort_by_key(|record| record.priority);
        records.truncate(MAX_RECORDS);
        let ignored = all - records.len();
        for record in &mut records {
            record.alpn.truncate(MAX_ALPN);
            filter_hints(&mut record.ipv4_hint, is_peer_v4);
            filter_hints(&mut record.ipv6_hint, is_peer_v6);
        }
        Self { records, ignored, ..Self::default() }
    }

    fn of_addresses(answer: impl Iterator<Item = IpAddr>) -> Self {
        let mut filtered = Self::default();
        for address in answer {
            if !is_peer(address) {
                filtered.not_unicast += 1;
            } else if filtered.addresses.len() == MAX_ADDRESSES {
                filtered.ignored += 1;
            } else if !filtered.addresses.contains(&address) {
                filtered.addresses.push(address);
            }
        }
        filtered
    }

    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty() && self.addresses.is_empty()
    }

    /// Returns the unused parts of the answer to this query.
    pub(super) fn notes(&self, query: &DnsQuery) -> Vec<PlanReason> {
        let mut notes = vec![];
        let name = || query.name.clone();
        let record_type = query.record_type;
        if self.not_unicast > 0 {
            let ignored = self.not_unicast;
            notes.push(PlanReason(ReasonKind::NotUnicast { name: name(), record_type, ignored }));
        }
        let ignored = self.ignored;
        if ignored > 0 && record_type == RecordType::Https {
            notes.push(PlanReason(ReasonKind::TooManyRecords {
                name: name(),
                used: MAX_RECORDS,
                ignored,
            }));
        } else if ignored > 0 {
            let used = MAX_ADDRESSES;
            notes.push(PlanReason(ReasonKind::TooManyAddresses {
                name: name(),
                record_type,
                used,
                ignored,
            }));
        }
        notes
    }
}

fn filter_hints<T: Copy + PartialEq>(hints: &mut Vec<T>, is_peer: impl Fn(T) -> bool) {
    let mut filtered: Vec<T> = Vec::new();
    for hint in hints.iter().copied().filter(|hint| is_peer(*hint)) {
        if filtered.len() < MAX_ADDRESSES && !filtered.contains(&hint) {
            filtered.push(hint);
        }
    }
    *hints = filtered;
}

fn is_peer(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(address) => is_peer_v4(address),
        IpAddr::V6(address) => is_peer_v6(address),
    }
}

const fn is_peer_v4(address: Ipv4Addr) -> bool {
    !(address.is_unspecified() || address.is_multicast() || address.is_broadcast())
}

fn is_peer_v6(address: Ipv6Addr) -> bool {
    !(address.is_unspecified() || address.is_multicast() || address.to_ipv4_mapped().is_some())
}
