//! Applies evidence to the rows.

use super::entry::is_credible;
use super::{
    DatedOutcome, EntryOutcome, MemoryConfig, MemoryEntry, MemoryKey, MemoryVerdict, NetworkEntry,
    PathDistances, PathEntry, PathHandshakes, PeerEntry, RoundTrip, SetUp, SilentHost,
};
use crate::candidate::Security;
use crate::evidence::{
    AttemptFailure, Evidence, EvidenceLevel, FailureCause, FailureDoubt, NetworkId, TrustContext,
};
use crate::target::TargetHost;
use alloc::{vec, vec::Vec};
use core::time::Duration;

/// Returns the new state of the rows that `evidence`, observed under this trust, changes; at most
/// two. `existing` returns the current state of a row.
///
/// Below the security level, a success says only that the peer answers, not that it works: a
/// captive portal answers every SYN. A failure during a running back-off adds nothing, since
/// otherwise ten concurrent races would make one outage look like ten; but if the first failure was
/// doubtful, one that is not confirms it.
pub fn learn_rows(
    existing: &mut dyn FnMut(&MemoryKey) -> Option<MemoryEntry>,
    evidence: &Evidence,
    trust: &TrustContext,
    config: &MemoryConfig,
) -> Vec<(MemoryKey, MemoryEntry)> {
    let peer_key = MemoryKey::peer(&evidence.network, &evidence.host, &evidence.candidate);
    let old = match existing(&peer_key) {
        Some(MemoryEntry::Peer(entry)) if is_credible(entry.at, evidence.at) => Some(entry),
        _ => None,
    };
    let reach = old.as_ref().and_then(|entry| entry.reach);
    let previous =
        reach.map_or(MemoryVerdict::Unknown, |outcome| outcome.verdict(evidence.at, config));
    let retransmitted = evidence.sent_again.or_else(|| loss_shown_by_silence(previous, evidence));
    let mut rows = Vec::new();
    if let Some(entry) = peer_after(old, evidence, trust, config) {
        rows.push((peer_key, MemoryEntry::Peer(entry)));
    }
    let is_unexpected = !matches!(previous, MemoryVerdict::Bad { .. });
    let heard = was_heard(evidence);
    if heard == Some(true) || (heard == Some(false) && is_unexpected) {
        let key = MemoryKey::path(&evidence.network, &evidence.candidate);
        let old = match existing(&key) {
            Some(MemoryEntry::Path(entry)) if is_credible(entry.at, evidence.at) => Some(entry),
            _ => None,
        };
        rows.push((key, MemoryEntry::Path(path_after(old, evidence, retransmitted))));
    }
    rows
}

fn peer_after(
    old: Option<PeerEntry>,
    evidence: &Evidence,
    trust: &TrustContext,
    config: &MemoryConfig,
) -> Option<PeerEntry> {
    let set_up = SetUp::from_candidate(&evidence.candidate, trust);
    let known = old.as_ref().and_then(|entry| entry.secured(&evidence.candidate, trust));
    let known = known.map(|secured| secured.seen);
    let updated = |known, finding| outcome_after(known, finding, evidence, config);
    let reach = reach_finding(evidence)
        .and_then(|finding| updated(old.as_ref().and_then(|entry| entry.reach), finding));
    let secured = security_finding(evidence).and_then(|finding| updated(known, finding));
    if reach.is_none() && secured.is_none() {
        return None;
    }
    let mut entry = old.unwrap_or_else(|| PeerEntry {
        at: evidence.at,
        reach: None,
        secured: Vec::new(),
        long_hello: None,
        round_trip: None,
    });
    entry.at = evidence.at;
    entry.reach = reach.or(entry.reach);
    if let (Some(set_up), Some(outcome)) = (set_up, secured) {
        entry.insert_secured(set_up, outcome, evidence.at.saturating_sub(config.keep_for));
    }
    entry.long_hello = long_hello_after(entry.long_hello, evidence, config);
    entry.round_trip = match (entry.round_trip, evidence.rtt) {
        (Some(known), Some(sample)) => Some(known.and(sample)),
        (None, Some(sample)) => Some(RoundTrip::first(sample)),
        (known, None) => known,
    };
    Some(entry)
}

/// What evidence says about reaching a peer, or about its security layer.
enum EvidenceFinding<'a> {
    Good(EvidenceLevel),
    Bad(&'a AttemptFailure),
}

/// Returns what this evidence says about reaching the peer, for every client and set-up.
fn reach_finding(evidence: &Evidence) -> Option<EvidenceFinding<'_>> {
    let answered = |level: EvidenceLevel| {
        (level >= EvidenceLevel::Answered)
            .then_some(EvidenceFinding::Good(level.min(EvidenceLevel::Transport)))
    };
    match &evidence.failure {
        Some(failure) if concerns_security(evidence, failure) => {
            answered(failure.reached.max(evidence.level))
        }
        Some(failure) => failure.concerns_peer().then_some(EvidenceFinding::Bad(failure)),
        None if evidence.candidate.security != Security::None => answered(evidence.level),
        None => evidence.is_good().then_some(EvidenceFinding::Good(evidence.level)),
    }
}

/// Returns what this evidence says about the security layer, for one set-up.
fn security_finding(evidence: &Evidence) -> Option<EvidenceFinding<'_>> {
    if evidence.candidate.security == Security::None {
        return None;
    }
    match &evidence.failure {
        None => evidence.is_good().then_some(EvidenceFinding::Good(evidence.level)),
        // The attempt went on with a shorter ClientHello, which decides.
        Some(failure) if failure.cause == FailureCause::LongClientHello => None,
        Some(failure) => (concerns_security(evidence, failure) && failure.concerns_peer())
            .then_some(EvidenceFinding::Bad(failure)),
    }
}

/// Returns whether a failure occurred after the peer had been reached, and therefore concerns only
/// attempts with the same offer and trust. QUIC's transport and its security are established
/// together (RFC 9001 §4.1).
fn concerns_security(evidence: &Evidence, failure: &AttemptFailure) -> bool {
    let candidate = &evidence.candidate;
    let security_from = if candidate.transport.has_own_security() {
        EvidenceLevel::Answered
    } else {
        EvidenceLevel::Transport
    };
    candidate.security != Security::None
        && (failure.reached.max(evidence.level) >= security_from || failure.cause.is_of_security())
}

/// Returns what is known about ClientHellos of two packets after this evidence. While one is not due, attempts have short
/// ones, whose success says nothing about it.
fn long_hello_after(
    known: Option<DatedOutcome>,
    evidence: &Evidence,
    config: &MemoryConfig,
) -> Option<DatedOutcome> {
    match &evidence.failure {
        Some(failure) if failure.cause == FailureCause::LongClientHello => {
            outcome_after(known, EvidenceFinding::Bad(failure), evidence, config).or(known)
        }
        None if evidence.is_good() => known.filter(|known| {
            matches!(known.verdict(evidence.at, config), MemoryVerdict::Bad { .. })
        }),
        _ => known,
    }
}

/// Returns the outcome after this finding; `None` if nothing changes.
fn outcome_after(
    known: Option<DatedOutcome>,
    finding: EvidenceFinding<'_>,
    evidence: &Evidence,
    config: &MemoryConfig,
) -> Option<DatedOutcome> {
    let failure = match finding {
        EvidenceFinding::Good(level) => {
            return Some(DatedOutcome { at: evidence.at, outcome: EntryOutcome::Good { level } });
        }
        EvidenceFinding::Bad(failure) => failure,
    };
    let is_doubtful = evidence.doubt == Some(FailureDoubt::CutShort);
    let first = u32::from(!is_doubtful);
    let strikes = match known {
        None | Some(DatedOutcome { outcome: EntryOutcome::Good { .. }, .. }) => first,
        Some(last @ DatedOutcome { outcome: EntryOutcome::Bad { strikes, .. }, .. }) => {
            match last.verdict(evidence.at, config) {
                MemoryVerdict::Bad { .. } if strikes == 0 && !is_doubtful => first,
                MemoryVerdict::Bad { .. } => return None,
                MemoryVerdict::Unknown => first,
                _ => strikes.saturating_add(1),
            }
        }
    };
    let outcome = EntryOutcome::Bad { cause: failure.cause, reached: failure.reached, strikes };
    Some(DatedOutcome { at: evidence.at, outcome })
}

/// Returns whether the network passed packets from the peer; `None` if the evidence does not show
/// it. A refusal may come from the peer or from a firewall, so it does not.
fn was_heard(evidence: &Evidence) -> Option<bool> {
    // What came back was TCP: this neither shows that the network passes MPTCP nor that it drops it.
    if evidence.failure.as_ref().is_some_and(|failure| failure.cause == FailureCause::FellBack) {
        return None;
    }
    if evidence.level >= EvidenceLevel::Answered {
        return Some(true);
    }
    match evidence.failure.as_ref().map(|failure| (failure.cause, failure.reached)) {
        Some((_, reached)) if reached >= EvidenceLevel::Answered => Some(true),
        _ if evidence.doubt == Some(FailureDoubt::HostRefused) => None,
        Some((FailureCause::Silent | FailureCause::Unreachable | FailureCause::Deadline, _)) => {
            Some(false)
        }
        _ => None,
    }
}

/// Returns the loss that is likely if a peer that answered recently is silent now. Silence of a
/// peer that never answered shows no loss.
fn loss_shown_by_silence(previous: MemoryVerdict, evidence: &Evidence) -> Option<bool> {
    let was_good = matches!(previous, MemoryVerdict::Good { .. });
    let is_silent =
        evidence.failure.as_ref().is_some_and(|failure| failure.cause == FailureCause::Silent);
    (was_good && is_silent && evidence.doubt != Some(FailureDoubt::HostRefused)).then_some(true)
}

fn path_after(
    old: Option<PathEntry>,
    evidence: &Evidence,
    retransmitted: Option<bool>,
) -> PathEntry {
    let at = evidence.at;
    if was_heard(evidence) == Some(true) {
        let (handshakes, distances) =
            old.map_or_else(Default::default, |entry| (entry.handshakes, entry.distances));
        let handshakes = handshakes.and(retransmitted);
        let distances = distances.and(hash(&evidence.host), evidence.rtt);
        return PathEntry { at, heard_at: Some(at), silent: Vec::new(), handshakes, distances };
    }
    let silent = SilentHost { host: hash(&evidence.host), at };
    let Some(mut entry) = old else {
        let handshakes = PathHandshakes::default().and(retransmitted);
        let silent = vec![silent];
        return PathEntry {
            at,
            heard_at: None,
            silent,
            handshakes,
            distances: PathDistances::default(),
        };
    };
    entry.silent.retain(|known| known.host != silent.host);
    let surplus = (entry.silent.len() + 1).saturating_sub(PathEntry::MAX_SILENT);
    entry.silent.drain(..surplus);
    entry.silent.push(silent);
    let handshakes = entry.handshakes.and(retransmitted);
    PathEntry { at: at.max(entry.at), handshakes, ..entry }
}

/// How long the name of a network counts as fresh.
const NAME_FRESH_FOR: Duration = Duration::from_hours(24);

/// Returns the row with the name of this network, if it has to be written. `existing` is its
/// current state.
pub fn name_row(
    existing: Option<&MemoryEntry>,
    network: &NetworkId,
    name: &str,
    now: Duration,
) -> Option<(MemoryKey, MemoryEntry)> {
    let is_fresh = |known: &NetworkEntry| {
        known.name == name
            && is_credible(known.at, now)
            && now < known.at.saturating_add(NAME_FRESH_FOR)
    };
    match existing {
        Some(MemoryEntry::Network(known)) if is_fresh(known) => None,
        _ => {
            let entry = NetworkEntry { at: now, name: name.into() };
            Some((MemoryKey::network(network), MemoryEntry::Network(entry)))
        }
    }
}

/// Returns what remains of a row after `host` has been forgotten; `None` if the row is to be
/// deleted.
pub fn forget_row(key: &MemoryKey, entry: MemoryEntry, host: &TargetHost) -> Option<MemoryEntry> {
    if key.host() == Some(host) {
        return None;
    }
    match entry {
        MemoryEntry::Path(mut path) => {
            path.silent.retain(|silent| silent.host != hash(host));
            path.distances.forget(hash(host));
            (path.heard_at.is_some() || !path.silent.is_empty()).then_some(MemoryEntry::Path(path))
        }
        MemoryEntry::Peer(mut peer) => {
            let names_host = |trust: &TrustContext| trust.certificate_host.as_ref() == Some(host);
            peer.secured.retain(|secured| !names_host(&secured.set_up.trust));
            Some(MemoryEntry::Peer(peer))
        }
        MemoryEntry::Resolver(resolver) => resolver.without(host).map(MemoryEntry::Resolver),
        network @ MemoryEntry::Network(_) => Some(network),
    }
}

/// Computes FNV-1a with 64 bits: stable across processes, and only used to distinguish hosts.
fn hash(host: &TargetHost) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    match host {
        TargetHost::Name(name) => name.as_bytes().iter().fold(OFFSET, add),
        TargetHost::Literal(core::net::IpAddr::V4(address), _) => {
            address.octets().iter().fold(OFFSET, add)
        }
        TargetHost::Literal(core::net::IpAddr::V6(address), scope) => {
            let hash = address.octets().iter().fold(OFFSET, add);
            scope.to_be_bytes().iter().fold(hash, add)
        }
    }
}
