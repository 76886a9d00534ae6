//! Interprets a set of HTTPS records (RFC 9460 §2.4, §7, §8).

use alloc::{string::String, vec::Vec};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::filter::MAX_ECH;
use super::names::target_name;
use crate::candidate::AlpnName;
use crate::dns::{HttpsRecord, RecordType};
use crate::reason::{PlanReason, ReasonKind, RecordFault};
use crate::seed;

/// `SvcParamKey` of `mandatory` itself, which it must not list.
const MANDATORY: u16 = 0;
const ALPN: u16 = 1;
const NO_DEFAULT_ALPN: u16 = 2;
const PORT: u16 = 3;
const IPV4_HINT: u16 = 4;
const ECH: u16 = 5;
const IPV6_HINT: u16 = 6;

/// The maximum number of unknown mandatory keys listed in a note.
const MAX_KEYS_LISTED: usize = 8;

/// The default protocol of HTTPS records (RFC 9460 §9.2).
const DEFAULT_ALPN: &str = "http/1.1";

/// A ServiceMode record that can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ServiceRecord {
    /// The effective TargetName.
    pub(super) name: String,
    pub(super) priority: u16,
    /// The SVCB ALPN set (RFC 9460 §7.1.1).
    pub(super) alpn: Vec<AlpnName>,
    pub(super) port: Option<u16>,
    pub(super) ech: Option<Vec<u8>>,
    pub(super) ipv4_hint: Vec<Ipv4Addr>,
    pub(super) ipv6_hint: Vec<Ipv6Addr>,
}

impl ServiceRecord {
    /// Returns the hints, which are addresses that this record type would provide.
    pub(super) fn hints(&self, record_type: RecordType) -> impl Iterator<Item = IpAddr> + '_ {
        let (v6, v4): (&[Ipv6Addr], &[Ipv4Addr]) = match record_type {
            RecordType::Aaaa => (&self.ipv6_hint, &[]),
            RecordType::A => (&[], &self.ipv4_hint),
            RecordType::Https => (&[], &[]),
        };
        let v6 = v6.iter().copied().map(IpAddr::V6);
        v6.chain(v4.iter().copied().map(IpAddr::V4))
    }
}

/// The meaning of a set of records.
pub(super) enum RecordMeaning {
    /// AliasMode: continue at this name.
    Alias(String),
    /// ServiceMode: the usable records in order of preference; possibly none.
    Services(Vec<ServiceRecord>),
}

/// Interprets the records of `owner`, and adds a note about each that is ignored.
pub(super) fn interpret(
    owner: &str,
    records: &[HttpsRecord],
    seed: u64,
    notes: &mut Vec<PlanReason>,
) -> RecordMeaning {
    // ServiceMode records beside an alias are ignored (RFC 9460 §2.4.1).
    if records.iter().any(|record| record.priority == 0) {
        return alias(owner, records, seed, notes);
    }
    let mut services: Vec<ServiceRecord> = Vec::new();
    for record in records {
        match service(owner, record) {
            Ok(service) if !services.contains(&service) => services.push(service),
            Ok(_) => {}
            Err(note) => notes.push(note),
        }
    }
    services.sort_by_cached_key(|service| (service.priority, shuffle_key(service, seed)));
    RecordMeaning::Services(services)
}

/// Returns one alias of the set; several are an error of the zone, and one is chosen at random (RFC
/// 9460 §2.4.2).
fn alias(
    owner: &str,
    records: &[HttpsRecord],
    seed: u64,
    notes: &mut Vec<PlanReason>,
) -> RecordMeaning {
    let mut targets: Vec<String> = Vec::new();
    for record in records.iter().filter(|record| record.priority == 0) {
        let name = || owner.into();
        if record.target.is_empty() || record.target == "." {
            notes.push(PlanReason(ReasonKind::AliasToNothing { name: name() }));
        } else if let Some(target) = target_name(&record.target) {
            targets.push(target);
        } else {
            let fault = RecordFault::Target;
            notes.push(PlanReason(ReasonKind::MalformedRecord { name: name(), fault }));
        }
    }
    match targets.into_iter().min_by_key(|target| seed::draw(seed, target.as_bytes())) {
        Some(target) => RecordMeaning::Alias(target),
        None => RecordMeaning::Services(Vec::new()),
    }
}

fn service(owner: &str, record: &HttpsRecord) -> Result<ServiceRecord, PlanReason> {
    let malformed = |fault| PlanReason(ReasonKind::MalformedRecord { name: owner.into(), fault });
    let unknown: Vec<u16> = record
        .mandatory
        .iter()
        .copied()
        .filter(|key| *key > IPV6_HINT)
        .take(MAX_KEYS_LISTED)
        .collect();
    if !unknown.is_empty() {
        return Err(PlanReason(ReasonKind::MandatoryUnknown { name: owner.into(), keys: unknown }));
    }
    if !record.mandatory.iter().all(|key| is_present(record, *key)) {
        return Err(malformed(RecordFault::Mandatory));
    }
    if record.no_default_alpn && record.alpn.is_empty() {
        return Err(malformed(RecordFault::NoAlpn));
    }
    if record.port == Some(0) {
        return Err(malformed(RecordFault::Port));
    }
    if record.ech.as_ref().is_some_and(|ech| ech.len() > MAX_ECH) {
        return Err(malformed(RecordFault::Ech));
    }
    let name = match record.target.as_str() {
        "" | "." => owner.into(),
        target => target_name(target).ok_or_else(|| malformed(RecordFault::Target))?,
    };
    let mut alpn = record.alpn.clone();
    if !record.no_default_alpn && !alpn.iter().any(|protocol| protocol == DEFAULT_ALPN) {
        alpn.push(DEFAULT_ALPN.into());
    }
    Ok(ServiceRecord {
        name,
        priority: record.priority,
        alpn,
        port: record.port,
        ech: record.ech.clone(),
        ipv4_hint: record.ipv4_hint.clone(),
        ipv6_hint: record.ipv6_hint.clone(),
    })
}

fn is_present(record: &HttpsRecord, key: u16) -> bool {
    match key {
        ALPN => !record.alpn.is_empty(),
        NO_DEFAULT_ALPN => record.no_default_alpn,
        PORT => record.port.is_some(),
        // Hints may have been filtered out, but the key was present.
        IPV4_HINT | IPV6_HINT => true,
        ECH => record.ech.is_some(),
        MANDATORY.. => false,
    }
}

/// Orders records of equal priority by the seed and their content, so that the order in which the
/// server sent them does not matter.
fn shuffle_key(service: &ServiceRecord, seed: u64) -> u64 {
    let mut content: Vec<u8> = service.name.as_bytes().to_vec();
    content.extend(service.port.unwrap_or(0).to_be_bytes());
    for protocol in &service.alpn {
        content.push(0);
        content.extend(protocol.as_bytes());
    }
    content.extend(service.ech.iter().flatten());
    seed::draw(seed, &content)
}
