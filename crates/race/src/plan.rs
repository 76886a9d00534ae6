//! From services, policy and memory to an ordered list of attempts.
//!
//! [`plan`] is a pure function: a dry run, an explanation and the race itself all use the same
//! list. It is computed anew whenever an input changes, so a late answer is ranked as if it had
//! arrived first (HEv3 §7).
//!
//! The order is determined as follows:
//!
//! 1. **Candidates**: each address of each service over each transport of the policy. A record
//!    determines which protocols its service supports; what does not fit is dropped, with the
//!    reason.
//! 2. **Blocks**, by service priority (HEv3 §5.2), and within one, candidates that the memory knows
//!    to work before those that were never tried. After all of these come the candidates due for a
//!    re-test, and then those that failed recently.
//! 3. Within a block, **addresses** in the order of RFC 6724, with alternating families (HEv3
//!    §5.3), and one *lane* per transport: the most preferred transport starts at once, the next
//!    one after the head start, and within each lane attempts are separated by the Connection
//!    Attempt Delay.
//!
//! ```text
//! 0 ms            30 ms          250 ms           280 ms
//! quic IPv6  ──▶  tcp IPv6  ──▶  quic IPv4  ──▶   tcp IPv4
//! ```

use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::candidate::Candidate;
use crate::io::NetworkView;
use crate::memory::{MemoryVerdict, MemoryView};
use crate::policy::Policy;
use crate::reason::ReasonKind;
use crate::resolve::ServiceInfo;
use crate::target::Target;

mod address;
mod candidates;
mod destination;
mod interleave;
mod remembered;
mod schedule;
mod second_try;

#[cfg(test)]
mod tests;

pub(crate) use schedule::RTT_MARGIN;
pub(crate) use second_try::{PROCESSING_TIME, patience_for};

pub use crate::reason::PlanReason;

/// The maximum number of candidates in a plan; those of the least preferred addresses are left out.
pub const MAX_CANDIDATES: usize = 256;

/// Everything that a plan depends on.
#[derive(Clone, Copy, Debug)]
pub struct PlanRequest<'a> {
    /// The target.
    pub target: &'a Target,
    /// The caller's policy.
    pub policy: &'a Policy,
    /// The services found in DNS so far
    /// ([`RaceResolution::services`](crate::resolve::RaceResolution::services)).
    pub services: &'a [ServiceInfo],
    /// The parts of the answers that were ignored
    /// ([`RaceResolution::notes`](crate::resolve::RaceResolution::notes)).
    pub notes: &'a [PlanReason],
    /// What was learnt earlier.
    pub view: &'a MemoryView,
    /// The network of the race.
    pub network: &'a NetworkView,
    /// Decides between equals.
    pub seed: u64,
    /// The time for which the memory is evaluated.
    pub now: Duration,
}

/// What to try, in which order, and what not to try, all with reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The attempts, first to last.
    pub entries: Vec<PlanEntry>,
    /// The candidates that are not tried.
    pub dropped: Vec<DroppedCandidate>,
    /// What did not become a candidate at all: records that were ignored, addresses beyond a limit;
    /// and notes that apply to all candidates.
    pub notes: Vec<PlanReason>,
    /// The delay of the second try for an unanswered attempt, if the round-trip time to its host is
    /// unknown.
    #[serde(default)]
    pub second_try_delay: Duration,
    /// Whether the memory knows the network as lossy.
    #[serde(default)]
    pub is_lossy: bool,
}

/// One planned attempt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanEntry {
    /// The candidate to try.
    pub candidate: Candidate,
    /// The delay after the start of the previous entry; zero for the first.
    pub delay: Duration,
    /// The remembered round-trip time, as the transport's initial estimate.
    pub initial_rtt: Option<Duration>,
    /// It has this rank because the memory knows that it works.
    pub from_memory: bool,
    /// Whether it is tried beside a working connection, for the memory; without one, it is tried in
    /// turn like any other.
    pub retest: bool,
    /// Whether its ClientHello is to take one packet, because the memory knows that one of two does not get through.
    #[serde(default, skip_serializing_if = "core::ops::Not::not")]
    pub short_hello: bool,
    /// Why it has this rank.
    pub reasons: Vec<PlanReason>,
}

/// A candidate that is not tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DroppedCandidate {
    /// The candidate.
    pub candidate: Candidate,
    /// The reasons.
    pub reasons: Vec<PlanReason>,
}

/// A candidate that is not ranked yet.
#[derive(Clone, Debug)]
struct CandidateDraft {
    candidate: Candidate,
    position: CandidatePosition,
    /// The remembered round-trip time to its address, over this transport or else another.
    rtt: Option<Duration>,
    /// What the memory knows about it.
    verdict: MemoryVerdict,
    reasons: Vec<PlanReason>,
}

/// The position of a candidate without regard to the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CandidatePosition {
    /// 0 if the service provides the ECH that the caller relies on, or if none is needed; else 1.
    protection: u8,
    /// The group of services: `SvcPriority`, then the alias, then the host itself, then address
    /// hints that contradict DNS.
    group: u32,
    /// The preference of the transport.
    transport: usize,
    /// The index of its service.
    service: usize,
    /// The index of its address in the order of the service.
    address: usize,
    /// Whether its family is the second one of its service.
    second_family: bool,
}

impl CandidatePosition {
    /// Returns the block within which the memory reorders candidates: services of equal priority.
    const fn block(&self) -> (u8, u32) {
        (self.protection, self.group)
    }

    /// Returns the rank of its transport and family, most preferred first.
    const fn rank(&self) -> (usize, bool) {
        (self.transport, self.second_family)
    }
}

impl PlanRequest<'_> {
    /// Returns the verdict about a candidate, and the round-trip time to it over its transport, as
    /// far as the memory is used.
    fn remembered(&self, candidate: &Candidate) -> (MemoryVerdict, Option<Duration>) {
        if self.policy.ignore_memory {
            return (MemoryVerdict::Unknown, None);
        }
        let (verdict, round_trip) = self.view.verdict_and_round_trip(candidate, self.now);
        (verdict, round_trip.map(|round_trip| round_trip.smoothed))
    }
}

/// Plans the attempts of a race. The plan has an entry if any candidate can be tried at all.
pub fn plan(request: &PlanRequest<'_>) -> Plan {
    let mut found = candidates::find(request);
    if found.drafts.is_empty()
        && let Some(mut last) = found.take_unroutable()
    {
        last.reasons.push(PlanReason(ReasonKind::LastResort));
        found.drafts.push(last);
    }
    let assessed = remembered::assess(request, found.drafts);
    let mut dropped = found.dropped;
    dropped.extend(found.unroutable.into_iter().map(CandidateDraft::into_dropped));
    let mut notes = request.notes.to_vec();
    notes.extend(found.notes);
    let wait_times = second_try::wait_times(request);
    let mut entries = schedule::entries(request.policy, &wait_times, assessed);
    entries.iter_mut().for_each(|entry| remembered::shorten_hello(request, entry));
    let (second_try_delay, is_lossy) = (wait_times.second_try_delay, wait_times.is_lossy);
    notes.extend(wait_times.note);
    Plan { entries, dropped, notes, second_try_delay, is_lossy }
}

impl CandidateDraft {
    fn into_dropped(self) -> DroppedCandidate {
        DroppedCandidate { candidate: self.candidate, reasons: self.reasons }
    }
}
