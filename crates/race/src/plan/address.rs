//! The order of the addresses of one service (HEv3 §5.3).

use alloc::vec::Vec;
use core::{net::SocketAddr, time::Duration};

use super::PlanRequest;
use super::candidates::securities;
use super::destination::{self, DestinationRank};
use super::interleave::interleave;
use crate::candidate::{AddressFamily, AddressOrigin, Candidate, Transport};
use crate::memory::MemoryVerdict;
use crate::reason::{PlanReason, ReasonKind};
use crate::resolve::{ServiceAddress, ServiceInfo};

/// An address and its position among those of the service.
pub(super) struct OrderedAddress<'a> {
    pub(super) address: &'a ServiceAddress,
    /// Its index in the order.
    pub(super) index: usize,
    /// Whether its family differs from that of the first.
    pub(super) second_family: bool,
    /// The smallest remembered round-trip time to it, over any transport.
    pub(super) rtt: Option<Duration>,
    /// Why it is ranked after the previous one.
    pub(super) reason: Option<PlanReason>,
}

/// Sorts by RFC 6724, using what the memory knows, and then alternates the families. If `denied` is
/// set, orders the hints that contradict DNS; otherwise all other addresses.
pub(super) fn order<'a>(
    request: &PlanRequest<'_>,
    service: &'a ServiceInfo,
    denied: bool,
) -> Vec<OrderedAddress<'a>> {
    let mut sorted: Vec<(DestinationRank, &ServiceAddress, Option<Duration>)> = service
        .addresses
        .iter()
        .filter(|address| (address.origin == AddressOrigin::DeniedHint) == denied)
        .map(|address| {
            let (rtt, used) = history(request, service, address);
            let table = request.policy.address_table.as_deref();
            (DestinationRank::new(request.network, table, address.ip, rtt, used), address, rtt)
        })
        .collect();
    sorted.sort_by_key(|(rank, _, _)| *rank);
    let Some((_, best, _)) = sorted.first() else { return Vec::new() };
    let mut first = AddressFamily::from_ip(best.ip);
    let can_try_ipv4 = |(_, address, _): &(DestinationRank, &ServiceAddress, Option<Duration>)| {
        address.ip.is_ipv4() && request.network.can_try(address.ip)
    };
    if request.policy.prefer_ipv4 && sorted.iter().any(can_try_ipv4) {
        first = AddressFamily::V4;
    }
    let count = request.policy.preferred_family_count;
    let family = |item: &(DestinationRank, &ServiceAddress, Option<Duration>)| {
        AddressFamily::from_ip(item.1.ip)
    };
    let interleaved = interleave(sorted, first, count, family);
    let mut ordered: Vec<OrderedAddress<'a>> = Vec::with_capacity(interleaved.len());
    let mut last_ranks: [Option<DestinationRank>; 2] = [None; 2];
    for (index, (rank, address, rtt)) in interleaved.into_iter().enumerate() {
        let last_rank = &mut last_ranks[usize::from(address.ip.is_ipv6())];
        let previous = ordered.last().map(|previous| AddressFamily::from_ip(previous.address.ip));
        let reason = match (previous, *last_rank) {
            (Some(family), _) if family != AddressFamily::from_ip(address.ip) => {
                Some(PlanReason(ReasonKind::FamilyTurn {
                    family: AddressFamily::from_ip(address.ip),
                }))
            }
            (Some(_), Some(better)) => Some(PlanReason(ReasonKind::AddressRule {
                rule: destination::rule_between(&better, &rank),
            })),
            _ => None,
        };
        *last_rank = Some(rank);
        let second_family = AddressFamily::from_ip(address.ip) != first;
        ordered.push(OrderedAddress { address, index, second_family, rtt, reason });
    }
    ordered
}

/// Returns the smallest round-trip time to an address over any transport of the policy, and whether
/// the address was used.
fn history(
    request: &PlanRequest<'_>,
    service: &ServiceInfo,
    address: &ServiceAddress,
) -> (Option<Duration>, bool) {
    if request.policy.ignore_memory || request.view.is_empty() {
        return (None, false);
    }
    let on_the_wire = request.network.on_the_wire(address.ip, request.policy.only_family);
    let mut candidate = Candidate {
        address: SocketAddr::new(on_the_wire, service.port),
        transport: Transport::Tcp,
        security: request.target.security,
        alpn: Vec::new(),
        ech: None,
        priority: None,
        origin: address.origin.clone(),
    };
    let mut smallest: Option<Duration> = None;
    let mut used = false;
    for transport in &request.policy.transports {
        candidate.transport = *transport;
        for security in securities(request.policy, *transport, request.target.security) {
            candidate.security = security;
            let (verdict, rtt) = request.remembered(&candidate);
            smallest = smallest.into_iter().chain(rtt).min();
            used |= matches!(verdict, MemoryVerdict::Good { .. });
        }
    }
    (smallest, used)
}
