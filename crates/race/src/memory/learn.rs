//! From one piece of evidence to the rows it changes.

use super::entry::is_credible;
use super::{
    Config, Entry, Handshakes, Key, Outcome, PathEntry, PeerEntry, RoundTrip, SilentHost, Verdict,
};
use crate::evidence::{Cause, Doubt, Evidence, Level};
use crate::target::Host;
use alloc::{vec, vec::Vec};

/// The rows that `evidence` changes, as they stand afterwards; at most two. `existing` gives a row
/// as it stands now.
///
/// A success below the security level changes nothing about the peer: a captive portal answers
/// every SYN. A failure during a back-off that already runs adds nothing, or ten races at once
/// would make one outage look like ten; but where the first was in doubt, one that is not in doubt
/// confirms it.
pub fn learn_rows(
    existing: &mut dyn FnMut(&Key) -> Option<Entry>,
    evidence: &Evidence,
    config: &Config,
) -> Vec<(Key, Entry)> {
    let peer_key = Key::peer(&evidence.network, &evidence.host, &evidence.candidate);
    let old = match existing(&peer_key) {
        Some(Entry::Peer(entry)) if is_credible(entry.at, evidence.at) => Some(entry),
        _ => None,
    };
    let sent_again = evidence.sent_again.or_else(|| lost_of_good(old.as_ref(), evidence, config));
    let mut rows = Vec::new();
    if let Some(entry) = peer_after(old.as_ref(), evidence, config) {
        rows.push((peer_key, Entry::Peer(entry)));
    }
    let is_news =
        !old.is_some_and(|entry| matches!(entry.verdict(evidence.at, config), Verdict::Bad { .. }));
    let sound = heard(evidence);
    if sound == Some(true) || (sound == Some(false) && is_news) {
        let key = Key::path(&evidence.network, &evidence.candidate);
        let old = match existing(&key) {
            Some(Entry::Path(entry)) if is_credible(entry.at, evidence.at) => Some(entry),
            _ => None,
        };
        rows.push((key, Entry::Path(path_after(old, evidence, sent_again))));
    }
    rows
}

fn peer_after(old: Option<&PeerEntry>, evidence: &Evidence, config: &Config) -> Option<PeerEntry> {
    let round_trip = match (old.and_then(|entry| entry.round_trip), evidence.rtt) {
        (Some(known), Some(sample)) => Some(known.and(sample)),
        (None, Some(sample)) => Some(RoundTrip::first(sample)),
        (known, None) => known,
    };
    if evidence.is_good() {
        let outcome = Outcome::Good { level: evidence.level };
        return Some(PeerEntry { at: evidence.at, outcome, round_trip });
    }
    let failure = evidence.failure.as_ref().filter(|failure| is_about_peer(failure.cause))?;
    let is_doubtful = evidence.doubt == Some(Doubt::CutShort);
    let first = u32::from(!is_doubtful);
    let strikes = match old {
        None | Some(PeerEntry { outcome: Outcome::Good { .. }, .. }) => first,
        Some(entry @ PeerEntry { outcome: Outcome::Bad { strikes, .. }, .. }) => {
            match entry.verdict(evidence.at, config) {
                Verdict::Bad { .. } if *strikes == 0 && !is_doubtful => first,
                Verdict::Bad { .. } => return None,
                Verdict::Unknown => first,
                _ => strikes.saturating_add(1),
            }
        }
    };
    let outcome = Outcome::Bad { cause: failure.cause, reached: failure.reached, strikes };
    Some(PeerEntry { at: evidence.at, outcome, round_trip })
}

/// What goes wrong on this machine says nothing about anybody else.
fn is_about_peer(cause: Cause) -> bool {
    !matches!(cause, Cause::Unsupported | Cause::Local)
}

/// Whether the network let packets of the peer through: `None` if the evidence does not tell. A
/// refusal may come from the peer or from a firewall, so it does not.
fn heard(evidence: &Evidence) -> Option<bool> {
    if evidence.level >= Level::Answered {
        return Some(true);
    }
    match evidence.failure.as_ref().map(|failure| (failure.cause, failure.reached)) {
        Some((_, reached)) if reached >= Level::Answered => Some(true),
        _ if evidence.doubt == Some(Doubt::HostRefused) => None,
        Some((Cause::Silent | Cause::Unreachable | Cause::Deadline, _)) => Some(false),
        _ => None,
    }
}

/// A peer that answered lately and is silent now: a packet was lost, or so much is likely. Of a
/// peer that never answered, silence tells nothing of the kind.
fn lost_of_good(old: Option<&PeerEntry>, evidence: &Evidence, config: &Config) -> Option<bool> {
    let was_good = matches!(old?.verdict(evidence.at, config), Verdict::Good { .. });
    let is_silent = evidence.failure.as_ref().is_some_and(|it| it.cause == Cause::Silent);
    (was_good && is_silent && evidence.doubt != Some(Doubt::HostRefused)).then_some(true)
}

fn path_after(old: Option<PathEntry>, evidence: &Evidence, sent_again: Option<bool>) -> PathEntry {
    let at = evidence.at;
    if heard(evidence) == Some(true) {
        let known = old.map_or_else(Handshakes::default, |entry| entry.handshakes);
        let handshakes = known.and(sent_again);
        return PathEntry { at, heard_at: Some(at), silent: Vec::new(), handshakes };
    }
    let silent = SilentHost { host: hash(&evidence.host), at };
    let Some(mut entry) = old else {
        let handshakes = Handshakes::default().and(sent_again);
        return PathEntry { at, heard_at: None, silent: vec![silent], handshakes };
    };
    entry.silent.retain(|known| known.host != silent.host);
    let surplus = (entry.silent.len() + 1).saturating_sub(PathEntry::MAX_SILENT);
    entry.silent.drain(..surplus);
    entry.silent.push(silent);
    let handshakes = entry.handshakes.and(sent_again);
    PathEntry { at: at.max(entry.at), handshakes, ..entry }
}

/// What is left of a row once `host` is forgotten; `None` if the row is to be deleted.
pub fn forget_row(key: &Key, entry: Entry, host: &Host) -> Option<Entry> {
    if key.host() == Some(host) {
        return None;
    }
    match entry {
        Entry::Path(mut path) => {
            path.silent.retain(|silent| silent.host != hash(host));
            (path.heard_at.is_some() || !path.silent.is_empty()).then_some(Entry::Path(path))
        }
        peer @ Entry::Peer(_) => Some(peer),
    }
}

/// FNV-1a, 64 bits: stable across processes, and only there to tell hosts apart.
fn hash(host: &Host) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0000_0100_0000_01b3;
    let add = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(PRIME);
    match host {
        Host::Name(name) => name.as_bytes().iter().fold(OFFSET, add),
        Host::Literal(core::net::IpAddr::V4(address), _) => {
            address.octets().iter().fold(OFFSET, add)
        }
        Host::Literal(core::net::IpAddr::V6(address), scope) => {
            let hash = address.octets().iter().fold(OFFSET, add);
            scope.to_be_bytes().iter().fold(hash, add)
        }
    }
}
