//! Derives the services from the answers.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::{Deserialize, Serialize};

use super::chain::AliasChain;
use super::record::ServiceRecord;
use super::{MAX_ADDRESSES, RaceResolution, RecordType, is_negative};
use crate::candidate::{AddressFamily, AddressOrigin, AlpnName};
use crate::target::Target;

/// The addresses of `localhost` (RFC 6761 §6.3).
pub(super) const LOCALHOST: [(IpAddr, u32); 2] =
    [(IpAddr::V6(Ipv6Addr::LOCALHOST), 0), (IpAddr::V4(Ipv4Addr::LOCALHOST), 0)];

/// One service: a name with its addresses and its protocols.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceInfo {
    /// The name whose addresses these are: the effective TargetName of a record, the alias's
    /// target, or the host itself.
    pub name: String,
    /// How the service was found.
    pub kind: ServiceKind,
    /// The SVCB ALPN set, the default included (RFC 9460 §7.1.1); empty without a record.
    pub alpn: Vec<AlpnName>,
    /// The port to connect to.
    pub port: u16,
    /// The record's `ECHConfigList`.
    pub ech: Option<Vec<u8>>,
    /// Its known addresses without duplicates, in the order of the answers, IPv6 first. IPv4
    /// addresses behind a PREF64 are listed as IPv4.
    pub addresses: Vec<ServiceAddress>,
}

/// How a service was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ServiceKind {
    /// Through a ServiceMode record with this `SvcPriority`.
    Record(u16),
    /// Through an alias, without the parameters of a record (RFC 9460 §3).
    Alias,
    /// It is the host itself, as if there were no records.
    Origin,
}

/// One address of a service.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServiceAddress {
    /// The address.
    pub ip: IpAddr,
    /// The scope of a link-local IPv6 address; 0 for none.
    pub scope_id: u32,
    /// The origin of the address.
    pub origin: AddressOrigin,
}

impl ServiceInfo {
    /// Returns the `SvcPriority` of its record.
    pub const fn priority(&self) -> Option<u16> {
        match self.kind {
            ServiceKind::Record(priority) => Some(priority),
            ServiceKind::Alias | ServiceKind::Origin => None,
        }
    }
}

/// Returns the service of a host that is not looked up in DNS.
pub(super) fn local(
    target: &Target,
    addresses: &[(IpAddr, u32)],
    origin: AddressOrigin,
) -> ServiceInfo {
    ServiceInfo {
        name: target.host.to_string(),
        kind: ServiceKind::Origin,
        alpn: Vec::new(),
        port: target.port,
        ech: None,
        addresses: addresses
            .iter()
            .map(|(ip, scope_id)| ServiceAddress {
                ip: *ip,
                scope_id: *scope_id,
                origin: origin.clone(),
            })
            .collect(),
    }
}

/// Returns the records by priority, then, as if there were none, the alias's target and the host
/// itself (RFC 9460 §3). What a record covers is excluded when candidates are created.
pub(super) fn list(resolution: &RaceResolution, chain: &AliasChain) -> Vec<ServiceInfo> {
    let port = resolution.setup.target.port;
    let mut services: Vec<ServiceInfo> = chain
        .records
        .iter()
        .map(|record| ServiceInfo {
            name: record.name.clone(),
            kind: ServiceKind::Record(record.priority),
            alpn: record.alpn.clone(),
            port: record.port.unwrap_or(port),
            ech: record.ech.clone(),
            addresses: addresses(resolution, &record.name, Some(record)),
        })
        .collect();
    if relies_on_records(resolution, chain) {
        return services;
    }
    let alias = chain.aliases.last().map(|name| (name.as_str(), ServiceKind::Alias));
    for (name, kind) in alias.into_iter().chain([(resolution.name(), ServiceKind::Origin)]) {
        services.push(ServiceInfo {
            name: name.into(),
            kind,
            alpn: Vec::new(),
            port,
            ech: None,
            addresses: addresses(resolution, name, None),
        });
    }
    services
}

/// Returns whether only services of the records may be tried: the caller relies on ECH, and each of
/// them has it (RFC 9848 §5.1). An attacker who can forge the answers can omit ECH from them, but
/// if the client bypassed the records with ECH, this would not even be necessary.
pub(super) fn relies_on_records(resolution: &RaceResolution, chain: &AliasChain) -> bool {
    resolution.setup.policy.rely_on_ech
        && !chain.records.is_empty()
        && chain.records.iter().all(|record| record.ech.is_some())
}

/// Returns the addresses of a name: the answer of each family, and until it arrives the record's
/// hints. An answer without an address does not remove them (RFC 9460 §7.3): they remain, after all
/// others.
fn addresses(
    resolution: &RaceResolution,
    name: &str,
    record: Option<&ServiceRecord>,
) -> Vec<ServiceAddress> {
    let mut list = AddressList::default();
    let mut denied: Vec<IpAddr> = Vec::new();
    let network = &resolution.setup.network;
    let original = |ip: &IpAddr| match ip {
        IpAddr::V6(ip) => network.desynthesised(*ip),
        IpAddr::V4(_) => *ip,
    };
    for record_type in [RecordType::Aaaa, RecordType::A] {
        let hints = record.into_iter().flat_map(|record| record.hints(record_type));
        match answered(resolution, name, record_type) {
            Some((_, [])) => denied.extend(hints.map(|ip| original(&ip))),
            Some((origin, answer)) => {
                answer.iter().for_each(|ip| list.add(original(ip), origin.clone()));
            }
            None => hints.for_each(|ip| list.add(original(&ip), AddressOrigin::Hint)),
        }
    }
    denied.into_iter().for_each(|ip| list.add(ip, AddressOrigin::DeniedHint));
    list.addresses
}

/// Returns the answer for this name and type and whether it has expired, empty if there is no such
/// address; `None` if it has not arrived or failed.
fn answered<'a>(
    resolution: &'a RaceResolution,
    name: &str,
    record_type: RecordType,
) -> Option<(AddressOrigin, &'a [IpAddr])> {
    let question = resolution.question(name, record_type)?;
    let origin =
        if question.expiry.is_some() { AddressOrigin::Expired } else { AddressOrigin::Address };
    match question.answer.as_ref()? {
        Ok(filtered) => Some((origin, &filtered.addresses)),
        Err(failure) => is_negative(failure).then_some((origin, &[])),
    }
}

/// Addresses without duplicates, limited per family.
#[derive(Default)]
struct AddressList {
    addresses: Vec<ServiceAddress>,
    used: [usize; 2],
}

impl AddressList {
    fn add(&mut self, ip: IpAddr, origin: AddressOrigin) {
        let used = &mut self.used[usize::from(AddressFamily::from_ip(ip) == AddressFamily::V6)];
        let is_known = self.addresses.iter().any(|known| known.ip == ip);
        if *used < MAX_ADDRESSES && !is_known {
            *used += 1;
            self.addresses.push(ServiceAddress { ip, scope_id: 0, origin });
        }
    }
}
