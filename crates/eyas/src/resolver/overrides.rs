//! Addresses that the caller sets for a name, like curl's `--resolve`.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;

use eyas_race::dns::{DnsFailure, DnsQuery, DnsRecords, RecordType};

/// Addresses by host and port, with the interfaces of link-local ones (0: none).
#[derive(Clone, Debug, Default)]
pub(super) struct AddressOverrides(BTreeMap<String, BTreeMap<u16, Vec<(IpAddr, u32)>>>);

impl AddressOverrides {
    pub(super) fn set(&mut self, host: &str, port: u16, addresses: Vec<(IpAddr, u32)>) {
        self.0.entry(normalised(host).into_owned()).or_default().insert(port, addresses);
    }

    /// Returns the interface on which this address of a host is, if the caller named one.
    pub(super) fn scope_of(&self, host: &str, port: u16, ip: IpAddr) -> Option<u32> {
        let addresses = self.0.get(&*normalised(host))?.get(&port)?;
        addresses.iter().find(|(known, scope)| *known == ip && *scope != 0).map(|(_, scope)| *scope)
    }

    pub(super) fn has(&self, host: &str) -> bool {
        self.0.contains_key(&*normalised(host))
    }

    /// Returns the answer to the query if its host is overridden. The service of an overridden host
    /// is determined by the caller, so there is no HTTPS record for it.
    pub(super) fn answer(
        &self,
        query: &DnsQuery,
        port: u16,
    ) -> Option<Result<DnsRecords, DnsFailure>> {
        let addresses = self.0.get(&*normalised(split_owner(&query.name, port).1))?.get(&port)?;
        let v6 = addresses.iter().filter_map(|(address, _)| match address {
            IpAddr::V6(v6) => Some(*v6),
            IpAddr::V4(_) => None,
        });
        let v4 = addresses.iter().filter_map(|(address, _)| match address {
            IpAddr::V4(v4) => Some(*v4),
            IpAddr::V6(_) => None,
        });
        Some(match query.record_type {
            RecordType::Https => Err(DnsFailure::NoData),
            RecordType::Aaaa => some_or_no_data(v6.collect(), DnsRecords::Aaaa),
            RecordType::A => some_or_no_data(v4.collect(), DnsRecords::A),
        })
    }
}

fn some_or_no_data<T>(
    addresses: Vec<T>,
    records: impl FnOnce(Vec<T>) -> DnsRecords,
) -> Result<DnsRecords, DnsFailure> {
    if addresses.is_empty() { Err(DnsFailure::NoData) } else { Ok(records(addresses)) }
}

/// Splits the owner name of a query into a prefix and the host that it is about:
/// `_8443._https.example.com` is about `example.com` (RFC 9460 §9.1).
pub(super) fn split_owner(name: &str, port: u16) -> (&str, &str) {
    let host = name.strip_prefix('_').and_then(|rest| {
        let (prefixed, host) = rest.split_once("._https.")?;
        (prefixed.parse() == Ok(port)).then_some(host)
    });
    host.map_or(("", name), |host| name.split_at(name.len() - host.len()))
}

/// Returns the name in lower case and without a trailing dot.
pub(super) fn normalised(host: &str) -> Cow<'_, str> {
    let host = host.trim_end_matches('.');
    if host.bytes().any(|octet| octet.is_ascii_uppercase()) {
        Cow::Owned(host.to_ascii_lowercase())
    } else {
        Cow::Borrowed(host)
    }
}
