//! The outcomes of the security layer, by set-up.

use alloc::{vec, vec::Vec};
use core::time::Duration;

use serde::{Deserialize, Serialize};

#[cfg(test)]
use super::EntryOutcome;
use super::{DatedOutcome, MemoryConfig, MemoryVerdict, PeerEntry};
use crate::candidate::{AlpnName, Candidate, Security};
#[cfg(test)]
use crate::evidence::EvidenceLevel;
use crate::evidence::TrustContext;

/// What an attempt offers and trusts. A peer may reject one set-up and accept another, for instance
/// because of a protocol that was not offered or a root that was not trusted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SetUp {
    /// The application protocols offered, most preferred first.
    pub alpn: Vec<AlpnName>,
    /// The trust of the attempt.
    pub trust: TrustContext,
    /// Whether the record of the candidate had configurations for Encrypted ClientHello (RFC 9849), which a device on the
    /// path or a server may fail while what is sent in the clear passes.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub ech: bool,
}

impl SetUp {
    /// Returns the set-up of this candidate; `None` without security.
    pub fn from_candidate(candidate: &Candidate, trust: &TrustContext) -> Option<Self> {
        let is_secured = candidate.security != Security::None;
        is_secured.then(|| Self {
            alpn: candidate.alpn.clone(),
            trust: trust.clone(),
            ech: candidate.ech.is_some(),
        })
    }

    /// Returns whether this is the set-up of this candidate.
    pub(super) fn matches(&self, candidate: &Candidate, trust: &TrustContext) -> bool {
        candidate.security != Security::None
            && self.alpn == candidate.alpn
            && self.trust == *trust
            && self.ech == candidate.ech.is_some()
    }
}

/// The outcome of the security layer with one set-up.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecurityOutcome {
    /// What was offered and trusted.
    pub set_up: SetUp,
    /// The outcome of the last attempt that came this far.
    pub seen: DatedOutcome,
}

impl PeerEntry {
    /// The maximum number of set-ups per row; the oldest are deleted first. Programs that share a
    /// memory file rarely have more for one host.
    pub const MAX_SET_UPS: usize = 8;

    /// Returns what is known about the security layer with the set-up of this candidate.
    pub fn secured(&self, candidate: &Candidate, trust: &TrustContext) -> Option<&SecurityOutcome> {
        self.secured.iter().find(|secured| secured.set_up.matches(candidate, trust))
    }

    /// Returns the verdict at `now` for each known set-up; if there is none, the verdict about
    /// candidates with this security layer in general.
    pub fn verdicts(
        &self,
        security: Security,
        now: Duration,
        config: &MemoryConfig,
    ) -> Vec<(Option<&SecurityOutcome>, MemoryVerdict)> {
        match security {
            Security::None => vec![(None, self.verdict(now, config))],
            Security::Tls | Security::Dtls if self.secured.is_empty() => {
                vec![(None, self.verdict_secured(None, now, config))]
            }
            Security::Tls | Security::Dtls => self
                .secured
                .iter()
                .map(|secured| (Some(secured), self.verdict_secured(Some(secured), now, config)))
                .collect(),
        }
    }

    /// Adds an observation with one set-up, and drops those older than `oldest`.
    pub(super) fn insert_secured(&mut self, set_up: SetUp, seen: DatedOutcome, oldest: Duration) {
        self.secured.retain(|known| known.set_up != set_up && known.seen.at >= oldest);
        self.secured.push(SecurityOutcome { set_up, seen });
        let surplus = self.secured.len().saturating_sub(Self::MAX_SET_UPS);
        self.secured.drain(..surplus);
    }
}

#[cfg(test)]
impl PeerEntry {
    /// Returns an entry for a candidate with TLS that offers no ALPN, under the default trust of
    /// tests.
    pub(crate) fn under_tls(at: Duration, outcome: EntryOutcome) -> Self {
        let seen = DatedOutcome { at, outcome };
        let (reach, secured) = match outcome {
            EntryOutcome::Bad { reached: EvidenceLevel::Started, .. } => (seen, None),
            EntryOutcome::Bad { reached, .. } | EntryOutcome::Good { level: reached } => {
                let level = reached.min(EvidenceLevel::Transport);
                (DatedOutcome { at, outcome: EntryOutcome::Good { level } }, Some(seen))
            }
        };
        let secured = secured.map(|seen| SecurityOutcome { set_up: SetUp::default(), seen });
        let secured = secured.into_iter().collect();
        Self { at, reach: Some(reach), secured, long_hello: None, round_trip: None }
    }
}
