//! The effect of the memory on the order.
//!
//! Candidates known to work go first among services of the same priority, and those that failed go
//! last; so the next connection goes straight to what works, and still nothing is out of reach
//! forever. A candidate that is preferred to what works, but was never tried, is tried beside the
//! working connection: otherwise each success would make the second best last longer.

use alloc::vec::Vec;
use core::time::Duration;

use super::{Draft, PlanRequest};
use crate::candidate::{Family, Transport};
use crate::memory::{Verdict, path_port};
use crate::reason::Reason;
use crate::seed;

/// A candidate with its verdict from the memory.
pub(super) struct Weighed {
    pub(super) draft: Draft,
    pub(super) from_memory: bool,
    pub(super) retest: bool,
    /// When the back-off ended; zero for a candidate that is due without one.
    due_since: Duration,
    standing: Standing,
}

/// How the memory changes a place. The order is that of the plan, within and across priorities:
/// see [`Weighed::key`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Standing {
    Good,
    Untried,
    Retest,
    Bad,
}

/// Asks the memory about each candidate. Gives them in blocks to be run one after another. Nothing is
/// left out: what worked may not work any more, and what the network swallowed may come through.
pub(super) fn weigh(request: &PlanRequest<'_>, drafts: Vec<Draft>) -> Vec<Vec<Weighed>> {
    let mut weighed: Vec<Weighed> =
        drafts.into_iter().map(|draft| Weighed::new(request, draft)).collect();
    weighed.sort_by_key(|one| one.key());
    if !request.policy.exhaustive {
        mark_retests(&mut weighed);
        mark_more_wanted(&mut weighed);
    }
    let mut blocks: Vec<Vec<Weighed>> = Vec::new();
    for one in weighed {
        match blocks.last_mut() {
            Some(block) if block.last().is_some_and(|last| last.block() == one.block()) => {
                block.push(one);
            }
            _ => blocks.push(alloc::vec![one]),
        }
    }
    blocks
}

impl Weighed {
    fn new(request: &PlanRequest<'_>, mut draft: Draft) -> Self {
        let verdict = if request.policy.ignore_memory {
            Verdict::Unknown
        } else {
            request.view.verdict(&draft.candidate, request.now)
        };
        let due_since = verdict.due_since();
        let (standing, reasons) = judge(request, &draft, verdict);
        draft.reasons.splice(0..0, reasons);
        Self { from_memory: standing == Standing::Good, retest: false, due_since, draft, standing }
    }

    /// Returns the block: working and untried candidates keep their priority; the others follow all
    /// of them.
    fn block(&self) -> (Standing, (u8, u32), Standing) {
        let class = match self.standing {
            Standing::Good | Standing::Untried => Standing::Good,
            behind => behind,
        };
        (class, self.draft.place.block(), self.standing)
    }

    fn key(&self) -> impl Ord + use<> {
        (self.block(), self.draft.place)
    }

    const fn transport_and_family(&self) -> (Transport, Family) {
        let candidate = &self.draft.candidate;
        (candidate.transport, Family::of(candidate.address.ip()))
    }
}

fn judge(request: &PlanRequest<'_>, draft: &Draft, verdict: Verdict) -> (Standing, Vec<Reason>) {
    let (transport, address) = (draft.candidate.transport, draft.candidate.address);
    match verdict {
        Verdict::Unknown => (Standing::Untried, Vec::new()),
        Verdict::Good { rtt } => (Standing::Good, alloc::vec![Reason::KnownGood { rtt }]),
        Verdict::Bad { cause, until } => {
            let retest_in = until.saturating_sub(request.now);
            (Standing::Bad, alloc::vec![Reason::KnownBad { cause, retest_in }])
        }
        Verdict::RetestDue { cause, .. } => {
            (Standing::Retest, alloc::vec![Reason::RetestDue { cause }])
        }
        Verdict::NetworkBad { silent_hosts, probe_one_in } => {
            let (family, port) = (Family::of(address.ip()), path_port(&draft.candidate));
            let silent = Reason::NetworkSilent { transport, family, port, silent_hosts };
            let draw = seed::draw(request.seed, b"probe of a silent network");
            if draw.is_multiple_of(u64::from(probe_one_in.max(1))) {
                (Standing::Retest, alloc::vec![silent, Reason::Probe { one_in: probe_one_in }])
            } else {
                (Standing::Bad, alloc::vec![silent])
            }
        }
    }
}

/// Marks as retests the candidates that have been due longest, one for each way to connect: one is
/// enough to learn, and the others have their turns in later races. If nothing better precedes
/// them, they are ordinary attempts.
fn mark_retests(weighed: &mut [Weighed]) {
    if !weighed.iter().any(|one| one.standing <= Standing::Untried) {
        return;
    }
    let is_due = |one: &&mut Weighed| one.standing == Standing::Retest;
    let mut due: Vec<&mut Weighed> = weighed.iter_mut().filter(is_due).collect();
    due.sort_by_key(|one| one.due_since);
    let mut marked: Vec<(Transport, Family)> = Vec::new();
    for one in due {
        if !marked.contains(&one.transport_and_family()) {
            marked.push(one.transport_and_family());
            one.retest = true;
        }
    }
}

/// Marks the best untried candidate of the same services that is preferred (by transport, then
/// family) to the best working one.
fn mark_more_wanted(weighed: &mut [Weighed]) {
    let Some(good) = weighed.iter().find(|one| one.standing == Standing::Good) else { return };
    let (block, rank) = (good.draft.place.block(), good.draft.place.rank());
    let (than, family) = good.transport_and_family();
    let more_wanted = weighed.iter_mut().find(|one| {
        let place = &one.draft.place;
        one.standing == Standing::Untried && place.block() == block && place.rank() < rank
    });
    if let Some(more_wanted) = more_wanted {
        more_wanted.retest = true;
        more_wanted.draft.reasons.insert(0, Reason::MoreWanted { than, family });
    }
}
