//! The candidates that can be tried: addresses × transports, as far as records and routes allow.

use alloc::{vec, vec::Vec};
use core::net::{IpAddr, SocketAddr, SocketAddrV6};

use super::address::{self, OrderedAddress};
use super::{CandidateDraft, CandidatePosition, DroppedCandidate, MAX_CANDIDATES, PlanRequest};
use crate::candidate::{AddressFamily, AddressOrigin, AlpnName, Candidate, Security, Transport};
use crate::io::UnavailableTransport;
use crate::nat64;
use crate::policy::{Policy, SctpSecurity};
use crate::reason::{PlanReason, ReasonKind};
use crate::resolve::{ServiceInfo, ServiceKind};
use crate::target::TargetService;

/// The candidates, and those left out.
#[derive(Default)]
pub(super) struct FoundCandidates {
    pub(super) drafts: Vec<CandidateDraft>,
    /// Candidates to which the network has no route.
    pub(super) unroutable: Vec<CandidateDraft>,
    pub(super) dropped: Vec<DroppedCandidate>,
    pub(super) notes: Vec<PlanReason>,
    /// The number of candidates beyond the limit.
    ignored: usize,
}

impl FoundCandidates {
    /// Takes the best candidate without a route, for use if there is no other.
    pub(super) fn take_unroutable(&mut self) -> Option<CandidateDraft> {
        let best = (0..self.unroutable.len()).min_by_key(|at| self.unroutable[*at].position)?;
        Some(self.unroutable.remove(best))
    }

    fn len(&self) -> usize {
        self.drafts.len() + self.unroutable.len() + self.dropped.len()
    }
}

/// Finds every candidate of the request, address by address, so that a limit cuts off the least
/// preferred addresses and not a transport.
pub(super) fn find(request: &PlanRequest<'_>) -> FoundCandidates {
    let mut found = FoundCandidates::default();
    let available: Vec<(usize, Transport)> = request
        .policy
        .transports
        .iter()
        .copied()
        .enumerate()
        .filter(|(_, transport)| match unavailable(request, *transport) {
            None => true,
            Some(note) => {
                found.notes.push(note);
                false
            }
        })
        .collect();
    // Hints that contradict DNS come last, so that another service with the same address ranks it
    // at its own position.
    for denied in [false, true] {
        for (at, service) in request.services.iter().enumerate() {
            add_service(&mut found, request, &available, (at, service), denied);
        }
    }
    if found.ignored > 0 {
        found.notes.push(PlanReason(ReasonKind::TooManyCandidates {
            used: MAX_CANDIDATES,
            ignored: found.ignored,
        }));
    }
    found
}

/// Adds the candidates of one service: from hints that contradict DNS, or from its other addresses.
fn add_service(
    found: &mut FoundCandidates,
    request: &PlanRequest<'_>,
    available: &[(usize, Transport)],
    (at, service): (usize, &ServiceInfo),
    denied: bool,
) {
    if found.len() >= MAX_CANDIDATES {
        // Addresses that a record leads to have been counted there.
        if !denied && !is_beside_records(request, service) {
            found.ignored += service.addresses.len() * available.len();
        }
        return;
    }
    let addresses = address::order(request, service, denied);
    if addresses.is_empty() {
        return;
    }
    let only_http3 = available.iter().all(|(_, transport)| transport.has_http3());
    let offers: Vec<_> = available
        .iter()
        .map(|(rank, transport)| {
            (*rank, *transport, offer(request, service, *transport, only_http3))
        })
        .collect();
    found.drafts.reserve((addresses.len() * offers.len()).min(MAX_CANDIDATES));
    for ordered in addresses {
        for (rank, transport, offer) in &offers {
            let position = position(request, service, at, *rank, &ordered);
            let requested = request.target.security;
            for security in securities(request.policy, *transport, requested) {
                let kind = (*transport, security, offer);
                add(found, request, service, &ordered, position, kind);
            }
        }
    }
}

/// Returns why the service is not available over the transport in general, if so.
fn unavailable(request: &PlanRequest<'_>, transport: Transport) -> Option<PlanReason> {
    if !request.target.service.is_spoken_over(transport) {
        Some(PlanReason(ReasonKind::NotSpoken { transport }))
    } else if transport.has_own_security() && request.target.security == Security::None {
        Some(PlanReason(ReasonKind::AlwaysSecure { transport }))
    } else {
        None
    }
}

/// Returns the protocols to offer to this service over this transport, or why it is not tried (RFC
/// 9460 §7.1.2). If one protocol of the record is supported, all protocols that the caller supports
/// over the transport are offered: a record must not restrict what TLS negotiates. QUIC that is not
/// listed in any record is left out if there are records, unless the caller has nothing else to
/// fall back to.
fn offer(
    request: &PlanRequest<'_>,
    service: &ServiceInfo,
    transport: Transport,
    only_http3: bool,
) -> Result<Vec<AlpnName>, PlanReason> {
    let wanted = request.target.service.protocols_over(transport);
    if !is_http(request) {
        return Ok(wanted);
    }
    let lists = |service: &ServiceInfo| service.alpn.iter().any(|listed| wanted.contains(listed));
    let mut records = request.services.iter().filter(|other| other.priority().is_some()).peekable();
    let has_records = records.peek().is_some();
    let is_fallback = only_http3 && service.priority().is_none();
    if has_records && transport.has_http3() && !is_fallback && !records.any(lists) {
        return Err(PlanReason(ReasonKind::NotInAnyRecord { transport, wanted }));
    }
    if service.priority().is_some() && !lists(service) {
        let name = service.name.clone();
        return Err(PlanReason(ReasonKind::NotInRecord {
            name,
            transport,
            listed: service.alpn.clone(),
        }));
    }
    Ok(wanted)
}

fn is_http(request: &PlanRequest<'_>) -> bool {
    matches!(request.target.service, TargetService::Http { .. })
}

/// Returns the equivalent security protocols of a transport (RFC 9621 §3.2): QUIC has TLS built in,
/// and TCP cannot carry DTLS.
pub(super) fn securities(
    policy: &Policy,
    transport: Transport,
    requested: Security,
) -> impl Iterator<Item = Security> {
    let (first, second) = match (requested, policy.sctp_security) {
        (Security::None, _) => (Security::None, None),
        _ if !transport.runs_in_dtls() => (Security::Tls, None),
        (Security::Tls, SctpSecurity::Both) => (Security::Tls, Some(Security::Dtls)),
        (Security::Dtls, _) | (_, SctpSecurity::Dtls) => (Security::Dtls, None),
        (Security::Tls, SctpSecurity::Tls) => (Security::Tls, None),
    };
    core::iter::once(first).chain(second)
}

fn position(
    request: &PlanRequest<'_>,
    service: &ServiceInfo,
    at: usize,
    transport: usize,
    ordered: &OrderedAddress<'_>,
) -> CandidatePosition {
    let group = match service.kind {
        _ if ordered.address.origin == AddressOrigin::DeniedHint => u32::from(u16::MAX) + 3,
        ServiceKind::Record(priority) => u32::from(priority),
        ServiceKind::Alias => u32::from(u16::MAX) + 1,
        ServiceKind::Origin => u32::from(u16::MAX) + 2,
    };
    CandidatePosition {
        protection: u8::from(request.policy.rely_on_ech && service.ech.is_none()),
        group,
        transport,
        service: at,
        address: ordered.index,
        second_family: ordered.second_family,
    }
}

fn add(
    found: &mut FoundCandidates,
    request: &PlanRequest<'_>,
    service: &ServiceInfo,
    ordered: &OrderedAddress<'_>,
    position: CandidatePosition,
    (transport, security, offer): (Transport, Security, &Result<Vec<AlpnName>, PlanReason>),
) {
    let mut reasons = service_reasons(request, service, transport);
    let (address, origin) = wire_address(request, service, ordered, &mut reasons);
    let candidate = Candidate {
        address,
        transport,
        security,
        alpn: offer.as_ref().map_or_else(|_| Vec::new(), Clone::clone),
        ech: service.ech.clone(),
        priority: service.priority(),
        origin,
    };
    // A candidate of a record is not tried again without the record, and above all not without its
    // ECH.
    let follows_records = is_beside_records(request, service);
    let uses_same_path = |known: &Candidate| {
        known.transport == candidate.transport
            && known.security == candidate.security
            && known.address == candidate.address
    };
    let is_duplicate = |draft: &CandidateDraft| {
        uses_same_path(&draft.candidate)
            && (follows_records || draft.candidate.is_same_attempt(&candidate))
    };
    if found.drafts.iter().any(is_duplicate) || found.unroutable.iter().any(is_duplicate) {
        return;
    }
    if found.len() >= MAX_CANDIDATES {
        found.ignored += 1;
        return;
    }
    let reason = not_tried(request, ordered, &candidate, offer);
    let was_dropped =
        |dropped: &DroppedCandidate| follows_records && uses_same_path(&dropped.candidate);
    if let Some(reason) = reason {
        if !found.dropped.iter().any(was_dropped) {
            found.dropped.push(DroppedCandidate { candidate, reasons: vec![reason] });
        }
        return;
    }
    found.dropped.retain(|dropped| !was_dropped(dropped));
    let (verdict, own_rtt) = request.remembered(&candidate);
    let mut draft =
        CandidateDraft { candidate, position, rtt: own_rtt.or(ordered.rtt), verdict, reasons };
    if request.network.can_try(ordered.address.ip) {
        found.drafts.push(draft);
        return;
    }
    draft.reasons.insert(
        0,
        PlanReason(ReasonKind::NoRoute { family: AddressFamily::from_ip(ordered.address.ip) }),
    );
    // Without any route at all, the driver may be wrong about routes: try everything.
    if request.network.is_offline() {
        found.drafts.push(draft);
    } else {
        found.unroutable.push(draft);
    }
}

/// Returns why the candidate is not tried on any network, if so.
fn not_tried(
    request: &PlanRequest<'_>,
    ordered: &OrderedAddress<'_>,
    candidate: &Candidate,
    offer: &Result<Vec<AlpnName>, PlanReason>,
) -> Option<PlanReason> {
    let (network, transport) = (request.network, candidate.transport);
    if !network.admits(request.policy.only_family, ordered.address.ip) {
        return Some(PlanReason(ReasonKind::FamilyNotAllowed {
            family: AddressFamily::from_ip(candidate.address.ip()),
        }));
    }
    if let Err(reason) = offer {
        return Some(reason.clone());
    }
    let lacking = network.lacking.iter().find(|lacking| lacking.transport == transport);
    lacking.map(|UnavailableTransport { why, .. }| {
        PlanReason(ReasonKind::Lacking { transport, why: why.clone() })
    })
}

/// Returns whether a service without a record is nevertheless one that records lead to.
fn is_beside_records(request: &PlanRequest<'_>, service: &ServiceInfo) -> bool {
    let leads_to_service =
        |other: &ServiceInfo| other.priority().is_some() && other.name == service.name;
    service.priority().is_none() && request.services.iter().any(leads_to_service)
}

fn service_reasons(
    request: &PlanRequest<'_>,
    service: &ServiceInfo,
    transport: Transport,
) -> Vec<PlanReason> {
    let mut reasons = vec![];
    let records = || request.services.iter().filter_map(|other| other.priority());
    let name = || service.name.clone();
    match service.kind {
        ServiceKind::Record(priority) => {
            let shuffled = records().filter(|other| *other == priority).count() > 1;
            reasons.push(PlanReason(ReasonKind::Service { name: name(), priority, shuffled }));
        }
        _ if is_beside_records(request, service) => {
            reasons.push(PlanReason(ReasonKind::BesideRecords { name: name() }));
        }
        ServiceKind::Alias => reasons.push(PlanReason(ReasonKind::Alias { name: name() })),
        ServiceKind::Origin if records().next().is_some() => {
            reasons.push(PlanReason(ReasonKind::NoRecordLeadsHere { name: name() }));
        }
        ServiceKind::Origin => {}
    }
    if request.policy.rely_on_ech && service.ech.is_some() {
        reasons.push(PlanReason(ReasonKind::Ech));
    }
    if is_http(request) && transport.has_http3() && service.priority().is_none() {
        reasons.push(PlanReason(ReasonKind::QuicUnannounced));
    }
    reasons
}

/// Returns the address used on the wire, translated by NAT64 if there is no other way.
fn wire_address(
    request: &PlanRequest<'_>,
    service: &ServiceInfo,
    ordered: &OrderedAddress<'_>,
    reasons: &mut Vec<PlanReason>,
) -> (SocketAddr, AddressOrigin) {
    let given = ordered.address;
    reasons.extend(ordered.reason.clone());
    match given.origin {
        AddressOrigin::Hint => {
            reasons.push(PlanReason(ReasonKind::Hint { name: service.name.clone() }))
        }
        AddressOrigin::Expired => {
            reasons.push(PlanReason(ReasonKind::ExpiredAddress { name: service.name.clone() }))
        }
        AddressOrigin::DeniedHint => {
            reasons.push(PlanReason(ReasonKind::DeniedHint { name: service.name.clone() }))
        }
        AddressOrigin::Literal => reasons.push(PlanReason(ReasonKind::Literal)),
        AddressOrigin::Localhost => reasons.push(PlanReason(ReasonKind::Localhost)),
        _ => {}
    }
    match given.ip {
        IpAddr::V6(ip) => {
            let address = SocketAddrV6::new(ip, service.port, 0, given.scope_id);
            (SocketAddr::V6(address), given.origin.clone())
        }
        IpAddr::V4(ip) => {
            let only = request.policy.only_family;
            let translation = request.network.synthesised(ip, only).and_then(|address| {
                let is_its_prefix = |prefix: &&(_, u8)| {
                    nat64::synthesise(**prefix, ip).is_some_and(|embedded| embedded == address)
                };
                Some((address, *request.network.pref64.iter().find(is_its_prefix)?))
            });
            let Some((address, (prefix, prefix_len))) = translation else {
                return (SocketAddr::new(given.ip, service.port), given.origin.clone());
            };
            reasons.push(PlanReason(ReasonKind::Synthesised { from: ip, prefix, prefix_len }));
            (SocketAddr::new(IpAddr::V6(address), service.port), AddressOrigin::Synthesised)
        }
    }
}
