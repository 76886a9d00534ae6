//! The rows: what is known about a candidate, and about a path through a network.

use alloc::{string::String, vec::Vec};
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::{
    DesignationEntry, HandshakeLoss, MemoryConfig, MemoryVerdict, PathDistances, PathHandshakes,
    SecurityOutcome,
};
use crate::evidence::{EvidenceLevel, FailureCause};

/// A row from further in the future than this is ignored: the clock was set back since, and a
/// success that "lasts" until then would never be re-checked.
const CLOCK_TOLERANCE: Duration = Duration::from_mins(1);

/// Returns whether a row written at `at` can be trusted at `now`.
pub(super) fn is_credible(at: Duration, now: Duration) -> bool {
    at <= now.saturating_add(CLOCK_TOLERANCE)
}

/// One row of the memory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MemoryEntry {
    /// About one address of one host over one transport.
    Peer(PeerEntry),
    /// About one transport, family and port of a network, for all peers.
    Path(PathEntry),
    /// A readable name of a network.
    Network(NetworkEntry),
    /// What a name server of a network designates.
    Resolver(DesignationEntry),
}

impl MemoryEntry {
    /// Returns when the last evidence was added, on the epoch of the evidence.
    pub fn updated_at(&self) -> Duration {
        match self {
            Self::Peer(entry) => entry.at,
            Self::Path(entry) => entry.at,
            Self::Network(entry) => entry.at,
            Self::Resolver(entry) => entry.at,
        }
    }

    /// Returns when the row expires and can be deleted.
    pub fn expires_at(&self, config: &MemoryConfig) -> Duration {
        let at = self.updated_at();
        match self {
            Self::Peer(_) | Self::Network(_) => at.saturating_add(config.keep_for),
            Self::Path(_) => at.saturating_add(config.silent_for),
            Self::Resolver(entry) => entry.expires_at(),
        }
    }

    /// Returns whether the row is invalid at `now`, because it has expired or is from the future.
    pub fn is_expired(&self, now: Duration, config: &MemoryConfig) -> bool {
        self.expires_at(config) <= now || !is_credible(self.updated_at(), now)
    }
}

/// What is known about one address over one transport, on one network.
///
/// Whether the peer can be reached is the same for every client. Whether the security layer can be
/// established also depends on what is offered and trusted, so that is stored per set-up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PeerEntry {
    /// When the last evidence was added.
    pub at: Duration,
    /// The last outcome of reaching the peer: up to an established transport, or, without security,
    /// to the end.
    pub reach: Option<DatedOutcome>,
    /// The outcomes of the security layer, most recently used set-up last; at most
    /// [`PeerEntry::MAX_SET_UPS`].
    pub secured: Vec<SecurityOutcome>,
    /// That a ClientHello of two packets did not get through, if so; for all set-ups, as their lengths hardly differ.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub long_hello: Option<DatedOutcome>,
    /// The round-trip times of earlier handshakes; they outlive the outcome.
    pub round_trip: Option<RoundTrip>,
}

/// An outcome and when it was observed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DatedOutcome {
    /// When it was observed.
    pub at: Duration,
    /// The last outcome that counts.
    pub outcome: EntryOutcome,
}

/// A readable name of a network.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NetworkEntry {
    /// When the host was last on this network, with a resolution of one day.
    pub at: Duration,
    /// Interface and gateway, or another name that the driver chooses for the network.
    pub name: String,
}

/// How the last attempt that counts ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum EntryOutcome {
    /// Success: the peer answered, or, for a set-up, the security layer was established.
    Good {
        /// The furthest level reached.
        level: EvidenceLevel,
    },
    /// Failure.
    Bad {
        /// The cause.
        cause: FailureCause,
        /// How far it got.
        reached: EvidenceLevel,
        /// Consecutive failures, each after the back-off of the previous one; 0 after a single
        /// silence that was cut short.
        strikes: u32,
    },
}

impl DatedOutcome {
    /// Returns whether this is a single silence that was cut short.
    pub(super) const fn is_in_doubt(&self) -> bool {
        matches!(self.outcome, EntryOutcome::Bad { cause: FailureCause::Silent, strikes: 0, .. })
    }

    /// Returns the verdict at `now` from this outcome alone.
    pub fn verdict(&self, now: Duration, config: &MemoryConfig) -> MemoryVerdict {
        if !is_credible(self.at, now) || self.at.saturating_add(config.keep_for) <= now {
            return MemoryVerdict::Unknown;
        }
        match self.outcome {
            EntryOutcome::Good { .. } if now < self.at.saturating_add(config.good_for) => {
                MemoryVerdict::Good { rtt: None }
            }
            EntryOutcome::Good { .. } => MemoryVerdict::Unknown,
            EntryOutcome::Bad { cause, strikes, .. } => {
                let until = self.at.saturating_add(config.back_off(strikes));
                if now < until {
                    MemoryVerdict::Bad { cause, until }
                } else {
                    MemoryVerdict::RetestDue { cause, since: until }
                }
            }
        }
    }
}

impl PeerEntry {
    /// Returns the verdict at `now` about a candidate without security.
    pub fn verdict(&self, now: Duration, config: &MemoryConfig) -> MemoryVerdict {
        self.with_round_trip(verdict_of(self.reach.as_ref(), now, config))
    }

    /// Returns the verdict at `now` about a candidate with security, given what is known about its
    /// set-up. The peer must be reachable and accept the set-up: a failure of either makes the
    /// candidate fail.
    pub fn verdict_secured(
        &self,
        secured: Option<&SecurityOutcome>,
        now: Duration,
        config: &MemoryConfig,
    ) -> MemoryVerdict {
        let seen = secured.map(|secured| &secured.seen);
        let (reach, security) =
            (verdict_of(self.reach.as_ref(), now, config), verdict_of(seen, now, config));
        self.with_round_trip(match (reach, security) {
            (MemoryVerdict::Bad { until, .. }, MemoryVerdict::Bad { until: later, .. })
                if later > until =>
            {
                security
            }
            (MemoryVerdict::Bad { .. }, _) => reach,
            (_, MemoryVerdict::Bad { .. }) => security,
            (
                MemoryVerdict::RetestDue { since, .. },
                MemoryVerdict::RetestDue { since: later, .. },
            ) if later > since => security,
            (MemoryVerdict::RetestDue { .. }, _) => reach,
            // Being reachable says nothing about the security layer.
            _ => security,
        })
    }

    /// Returns whether the peer has answered recently, with no later evidence to the contrary.
    pub(super) fn answers(&self, now: Duration, config: &MemoryConfig) -> bool {
        matches!(verdict_of(self.reach.as_ref(), now, config), MemoryVerdict::Good { .. })
    }

    fn with_round_trip(&self, verdict: MemoryVerdict) -> MemoryVerdict {
        match verdict {
            MemoryVerdict::Good { .. } => {
                MemoryVerdict::Good { rtt: self.round_trip.map(|round_trip| round_trip.smoothed) }
            }
            other => other,
        }
    }
}

fn verdict_of(seen: Option<&DatedOutcome>, now: Duration, config: &MemoryConfig) -> MemoryVerdict {
    seen.map_or(MemoryVerdict::Unknown, |seen| seen.verdict(now, config))
}

/// The round-trip times of one candidate's handshakes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RoundTrip {
    /// Smoothed with a gain of 1/8 (RFC 6298 §2).
    pub smoothed: Duration,
    /// The minimum.
    pub min: Duration,
}

impl RoundTrip {
    /// Returns the estimate after one sample.
    pub const fn first(sample: Duration) -> Self {
        Self { smoothed: sample, min: sample }
    }

    /// Returns the estimate after one more sample.
    #[must_use]
    pub fn and(self, sample: Duration) -> Self {
        Self {
            smoothed: (self.smoothed / 8).saturating_mul(7).saturating_add(sample / 8),
            min: self.min.min(sample),
        }
    }
}

/// What is known about one transport, family and port on one network.
///
/// Silence is counted by host, since a single host without the service says nothing about the
/// network, and only until a host is heard: any answer empties the list.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PathEntry {
    /// When the row last changed.
    pub at: Duration,
    /// When a peer was last heard over this path.
    pub heard_at: Option<Duration>,
    /// The hosts that have been silent since then, oldest first, at most [`PathEntry::MAX_SILENT`].
    pub silent: Vec<SilentHost>,
    /// The most recent handshakes over the path.
    #[serde(default)]
    pub handshakes: PathHandshakes,
    /// The distances to the hosts heard over the path.
    #[serde(default)]
    pub distances: PathDistances,
}

/// A host that did not answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SilentHost {
    /// A hash of the host's name.
    pub host: u64,
    /// When it was silent.
    pub at: Duration,
}

impl PathEntry {
    /// The maximum number of silent hosts per row.
    pub const MAX_SILENT: usize = 16;

    /// Returns the loss of the most recent handshakes, as long as the last one of them is still
    /// valid.
    pub fn loss(&self, now: Duration, config: &MemoryConfig) -> HandshakeLoss {
        let is_valid =
            |at: Duration| is_credible(at, now) && now < at.saturating_add(config.good_for);
        match self.heard_at.is_some_and(is_valid) {
            true => self.handshakes.loss(),
            false => HandshakeLoss::default(),
        }
    }

    /// Returns how many distinct hosts have been silent recently, if that suggests that the network
    /// drops the packets of this path.
    pub fn swallowed(&self, now: Duration, config: &MemoryConfig) -> Option<usize> {
        let is_recent =
            |at: Duration, span: Duration| is_credible(at, now) && now < at.saturating_add(span);
        if self.heard_at.is_some_and(|at| is_recent(at, config.good_for)) {
            return None;
        }
        let mut hosts: Vec<u64> = self
            .silent
            .iter()
            .take(Self::MAX_SILENT)
            .filter(|silent| is_recent(silent.at, config.silent_for))
            .map(|silent| silent.host)
            .collect();
        hosts.sort_unstable();
        hosts.dedup();
        (hosts.len() >= config.silent_hosts.clamp(1, Self::MAX_SILENT)).then_some(hosts.len())
    }
}
