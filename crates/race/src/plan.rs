//! From services, policy and memory to an ordered list of attempts.
//!
//! [`plan`] is a pure function: a dry run, an explanation and the race itself see the same list. It
//! is made anew whenever a fact changes, so a late answer stands where it would have stood had it
//! come first (HEv3 §7).
//!
//! The order is made in this way:
//!
//! 1. **Candidates**: each address of each service over each transport of the policy. A record
//!    decides what is spoken at its service; what does not fit is dropped with the reason.
//! 2. **Blocks**, by service priority (HEv3 §5.2), and in it what the memory knows to work before
//!    what was never tried. Behind all of these stands what is due for a retest, then what failed
//!    lately.
//! 3. Within a block **addresses** in the order of RFC 6724, families alternating (HEv3 §5.3), and
//!    one *lane* for each transport: the most wanted starts at once, the next after the head start,
//!    and in each lane the Connection Attempt Delay lies between two attempts.
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
use crate::memory::View;
use crate::policy::Policy;
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

pub(crate) use second_try::{WORK, known_patience};

pub use crate::reason::{AddressRule, Reason, RecordFault};

/// Candidates that one plan takes; those of the least preferred addresses are left out.
pub const MAX_CANDIDATES: usize = 256;

/// Everything that a plan depends on.
#[derive(Clone, Copy, Debug)]
pub struct PlanRequest<'a> {
    /// Whom to reach.
    pub target: &'a Target,
    /// What the caller wants.
    pub policy: &'a Policy,
    /// What DNS has said so far ([`Resolution::services`](crate::resolve::Resolution::services)).
    pub services: &'a [ServiceInfo],
    /// What was ignored of it ([`Resolution::notes`](crate::resolve::Resolution::notes)).
    pub notes: &'a [Reason],
    /// What was learnt earlier.
    pub view: &'a View,
    /// Where the race runs.
    pub network: &'a NetworkView,
    /// Decides among equals.
    pub seed: u64,
    /// The time at which the memory is asked.
    pub now: Duration,
}

/// What to try, in order, and what not, all with reasons.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Plan {
    /// The attempts, first to last.
    pub entries: Vec<Entry>,
    /// Candidates that are not tried.
    pub dropped: Vec<Dropped>,
    /// What did not come to be a candidate at all: records ignored, addresses beyond a bound; and
    /// what holds for all of them.
    pub notes: Vec<Reason>,
    /// When an attempt that nobody answers is followed by a second try, where the round trip to its
    /// host is not known.
    #[serde(default)]
    pub second_try_delay: Duration,
    /// Whether the network is remembered to lose packets.
    #[serde(default)]
    pub is_lossy: bool,
}

/// One attempt to come.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// What to try.
    pub candidate: Candidate,
    /// How long after the start of the entry before it; zero for the first.
    pub delay: Duration,
    /// The remembered round trip, as the transport's first estimate.
    pub initial_rtt: Option<Duration>,
    /// It stands here because the memory knows that it works.
    pub from_memory: bool,
    /// To be tried beside a working connection, so that the memory learns; without one, in its
    /// turn like any other.
    pub retest: bool,
    /// Why it stands here.
    pub reasons: Vec<Reason>,
}

/// One candidate that is not tried.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dropped {
    /// What is not tried.
    pub candidate: Candidate,
    /// Why.
    pub reasons: Vec<Reason>,
}

/// A candidate on its way into the plan.
#[derive(Clone, Debug)]
struct Draft {
    candidate: Candidate,
    place: Place,
    /// The remembered round trip to its address, over this transport or else another.
    rtt: Option<Duration>,
    reasons: Vec<Reason>,
}

/// Where a candidate stands without memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    /// 0 if the service has what the caller relies on (ECH), else 1.
    protection: u8,
    /// The group of services: `SvcPriority`, then the alias, then the host itself, then hints that
    /// DNS denies.
    group: u32,
    /// Preference of the transport.
    transport: usize,
    /// Its service among all, in order.
    service: usize,
    /// Its address among those of the service, in order.
    address: usize,
    /// Whether its family is the second one of its service.
    second_family: bool,
}

impl Place {
    /// What the memory's knowledge is compared within: services of one priority.
    const fn block(&self) -> (u8, u32) {
        (self.protection, self.group)
    }

    /// Which way it goes, best first.
    const fn way(&self) -> (usize, bool) {
        (self.transport, self.second_family)
    }
}

/// Plans the attempts of a race. If any candidate can be tried at all, the plan has an entry.
pub fn plan(request: &PlanRequest<'_>) -> Plan {
    let mut found = candidates::find(request);
    if found.drafts.is_empty()
        && let Some(mut last) = found.take_unroutable()
    {
        last.reasons.push(Reason::LastResort);
        found.drafts.push(last);
    }
    let weighed = remembered::weigh(request, found.drafts);
    let mut dropped = found.dropped;
    dropped.extend(found.unroutable.into_iter().map(Draft::into_dropped));
    let mut notes = request.notes.to_vec();
    notes.extend(found.notes);
    let waits = second_try::waits(request);
    notes.extend(waits.note.clone());
    let entries = schedule::entries(request.policy, &waits, weighed);
    let (second_try_delay, is_lossy) = (waits.second_try_delay, waits.is_lossy);
    Plan { entries, dropped, notes, second_try_delay, is_lossy }
}

impl Draft {
    fn into_dropped(self) -> Dropped {
        Dropped { candidate: self.candidate, reasons: self.reasons }
    }
}
