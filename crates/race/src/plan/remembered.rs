//! The effect of the memory on the order.
//!
//! Candidates known to work go first among services of the same priority, and those that failed go
//! last; so the next connection goes straight to what works, and still nothing is excluded forever.
//! A candidate that is preferred to what works, but was never tried, is tried beside the working
//! connection: otherwise each success would make the second best last longer.

use alloc::vec::Vec;
use core::time::Duration;

use super::interleave::interleave;
use super::{CandidateDraft, PlanEntry, PlanRequest};
use crate::candidate::{AddressFamily, Transport};
use crate::memory::{MemoryVerdict, path_port};
use crate::reason::{PlanReason, ReasonKind};
use crate::seed;

/// A candidate with its verdict from the memory.
pub(super) struct AssessedCandidate {
    pub(super) draft: CandidateDraft,
    pub(super) from_memory: bool,
    pub(super) retest: bool,
    /// When it starts, counted from the start of the first attempt; set by the schedule.
    pub(super) start: Duration,
    /// How many Connection Attempt Delays without a known round-trip time come before that.
    pub(super) delays: u32,
    /// When the back-off ended; zero for a candidate that is due without one.
    due_since: Duration,
    class: CandidateClass,
}

/// How the memory classifies a candidate. The order is that of the plan, within and across
/// priorities: see [`AssessedCandidate::key`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum CandidateClass {
    Good,
    Untried,
    Retest,
    Bad,
}

/// Classifies each candidate by what the memory knows, and returns them by
/// [block](AssessedCandidate::block), in the order in which the blocks run. None is left out: one that worked
/// may have stopped working, and packets that the network dropped may now pass.
pub(super) fn assess(
    request: &PlanRequest<'_>,
    drafts: Vec<CandidateDraft>,
) -> Vec<AssessedCandidate> {
    let mut assessed: Vec<AssessedCandidate> =
        drafts.into_iter().map(|draft| AssessedCandidate::new(request, draft)).collect();
    if !assessed.is_sorted_by_key(AssessedCandidate::key) {
        assessed.sort_by_cached_key(AssessedCandidate::key);
    }
    if assessed.iter().any(|candidate| candidate.class != CandidateClass::Untried) {
        assessed = alternating(assessed, request.policy.preferred_family_count);
    }
    if !request.policy.exhaustive {
        mark_retests(&mut assessed);
        mark_more_preferred(&mut assessed);
    }
    assessed
}

impl AssessedCandidate {
    fn new(request: &PlanRequest<'_>, mut draft: CandidateDraft) -> Self {
        let due_since = draft.verdict.due_since();
        let class = classify(request, &mut draft);
        Self {
            from_memory: class == CandidateClass::Good,
            retest: false,
            start: Duration::ZERO,
            delays: 0,
            due_since,
            draft,
            class,
        }
    }

    /// Returns the block: working and untried candidates keep their priority; the others follow all
    /// of them.
    pub(super) fn block(&self) -> impl Ord + use<> {
        let group = match self.class {
            CandidateClass::Good | CandidateClass::Untried => CandidateClass::Good,
            class => class,
        };
        (group, self.draft.position.block(), self.class)
    }

    fn key(&self) -> impl Ord + use<> {
        (self.block(), self.draft.position)
    }

    /// Returns what the candidates share among which the families alternate: the block, the
    /// transport and the service.
    fn alternation(&self) -> impl Ord + use<> {
        (self.block(), self.draft.position.transport, self.draft.position.service)
    }

    const fn transport_and_family(&self) -> (Transport, AddressFamily) {
        let candidate = &self.draft.candidate;
        (candidate.transport, AddressFamily::from_ip(candidate.address.ip()))
    }
}

/// Has the candidate begin with a ClientHello of one packet, if one of two did not get through to it recently.
pub(super) fn shorten_hello(request: &PlanRequest<'_>, entry: &mut PlanEntry) {
    if request.policy.ignore_memory {
        return;
    }
    if let Some(until) = request.view.short_hello_until(&entry.candidate, request.now) {
        let retest_in = until.saturating_sub(request.now);
        entry.short_hello = true;
        entry.reasons.push(PlanReason(ReasonKind::ShortHello { retest_in }));
    }
}

/// Returns the class of a candidate, and puts the reasons for it first.
fn classify(request: &PlanRequest<'_>, draft: &mut CandidateDraft) -> CandidateClass {
    let (transport, address) = (draft.candidate.transport, draft.candidate.address);
    let (class, reason) = match draft.verdict {
        MemoryVerdict::Unknown => return CandidateClass::Untried,
        MemoryVerdict::Good { rtt } => {
            (CandidateClass::Good, PlanReason(ReasonKind::KnownGood { rtt }))
        }
        MemoryVerdict::Bad { cause, until } => {
            let retest_in = until.saturating_sub(request.now);
            (CandidateClass::Bad, PlanReason(ReasonKind::KnownBad { cause, retest_in }))
        }
        MemoryVerdict::RetestDue { cause, .. } => {
            (CandidateClass::Retest, PlanReason(ReasonKind::RetestDue { cause }))
        }
        MemoryVerdict::NetworkBad { silent_hosts, probe_one_in } => {
            let draw = seed::draw(request.seed, b"probe of a silent network");
            let is_probe = draw.is_multiple_of(u64::from(probe_one_in.max(1)));
            if is_probe {
                draft.reasons.insert(0, PlanReason(ReasonKind::Probe { one_in: probe_one_in }));
            }
            let (family, port) =
                (AddressFamily::from_ip(address.ip()), path_port(&draft.candidate));
            let silent =
                PlanReason(ReasonKind::NetworkSilent { transport, family, port, silent_hosts });
            (if is_probe { CandidateClass::Retest } else { CandidateClass::Bad }, silent)
        }
    };
    draft.reasons.insert(0, reason);
    class
}

/// Alternates between the families anew among the candidates that the memory ranks alike, beginning
/// with the preferred one. Where the first address of that family does not work, the order of all
/// addresses would put one of the other family before its next address, which works as well, and
/// all connections would stay with the other family.
fn alternating(assessed: Vec<AssessedCandidate>, count: usize) -> Vec<AssessedCandidate> {
    let mut all = Vec::with_capacity(assessed.len());
    let mut alike: Vec<AssessedCandidate> = Vec::with_capacity(assessed.len());
    let is_second = |candidate: &AssessedCandidate| candidate.draft.position.second_family;
    for candidate in assessed {
        if alike.last().is_some_and(|last| last.alternation() != candidate.alternation()) {
            all.extend(interleave(core::mem::take(&mut alike), false, count, is_second));
        }
        alike.push(candidate);
    }
    all.extend(interleave(alike, false, count, is_second));
    all
}

/// Marks as retests the candidates that have been due longest, one for each way to connect: one is
/// enough to learn, and the others are re-tested in later races. If nothing better precedes them,
/// they are ordinary attempts.
fn mark_retests(assessed: &mut [AssessedCandidate]) {
    if !assessed.iter().any(|candidate| candidate.class <= CandidateClass::Untried) {
        return;
    }
    let is_due = |candidate: &&mut AssessedCandidate| candidate.class == CandidateClass::Retest;
    let mut due: Vec<&mut AssessedCandidate> = assessed.iter_mut().filter(is_due).collect();
    due.sort_by_key(|candidate| candidate.due_since);
    let mut marked: Vec<(Transport, AddressFamily)> = Vec::new();
    for candidate in due {
        if !marked.contains(&candidate.transport_and_family()) {
            marked.push(candidate.transport_and_family());
            candidate.retest = true;
        }
    }
}

/// Marks the best untried candidate of the same services that is preferred (by transport, then
/// family) to the best working one.
fn mark_more_preferred(assessed: &mut [AssessedCandidate]) {
    let Some(good) = assessed.iter().find(|one| one.class == CandidateClass::Good) else { return };
    let (block, rank) = (good.draft.position.block(), good.draft.position.rank());
    let (than, family) = good.transport_and_family();
    let more_preferred = assessed.iter_mut().find(|candidate| {
        let position = &candidate.draft.position;
        candidate.class == CandidateClass::Untried
            && position.block() == block
            && position.rank() < rank
    });
    if let Some(more_preferred) = more_preferred {
        more_preferred.retest = true;
        more_preferred.draft.reasons.insert(0, PlanReason(ReasonKind::MoreWanted { than, family }));
    }
}
