//! When each attempt starts: lanes of transports within blocks.

use alloc::vec::Vec;
use core::time::Duration;

use super::remembered::AssessedCandidate;
use super::second_try::{PROCESSING_TIME, WaitTimes};
use super::{CandidateDraft, PlanEntry, PlanReason};
use crate::candidate::{Candidate, Transport};
use crate::policy::{ATTEMPT_DELAY_FLOOR, Policy};
use crate::reason::ReasonKind;

/// With a single sample, the first retransmission is sent after three round trips: SRTT + 4 ×
/// SRTT/2 (RFC 6298 §2.2; RFC 9002 §6.2.1 gives the same). A later attempt has no reason to start
/// earlier.
const ROUND_TRIPS_TO_RETRANSMISSION: u32 = 3;

/// By how much an answer may exceed the remembered round-trip time, which is a mean.
pub(crate) const RTT_MARGIN: Duration = PROCESSING_TIME.saturating_mul(2);

/// The longest head start derived from a remembered round-trip time, unless the policy asks for
/// more. A longer head start costs more if the first flight is lost, so a distant server gets no
/// more than an unknown one.
pub(super) const REMEMBERED_HEAD_START_MAX: Duration = Duration::from_millis(100);

/// A candidate that starts first because it is remembered. Relative to it, a less preferred
/// transport of the same services waits for a head start only: as long as without memory, or long
/// enough not to be started in vain.
#[derive(Clone, Copy)]
struct RememberedCandidate {
    transport: Transport,
    start: Duration,
    rtt: Option<Duration>,
    position: (u8, u32),
}

/// The end of what has been scheduled: the start of the last attempt, and the remembered round-trip
/// time to its address.
#[derive(Clone, Copy)]
struct LastStart {
    start: Duration,
    rtt: Option<Duration>,
    delays: u32,
}

impl LastStart {
    const fn from_assessed(assessed: &AssessedCandidate) -> Self {
        Self { start: assessed.start, rtt: assessed.draft.rtt, delays: assessed.delays }
    }
}

/// Returns the entries in the order in which they start.
pub(super) fn entries(
    policy: &Policy,
    wait_times: &WaitTimes,
    mut assessed: Vec<AssessedCandidate>,
) -> Vec<PlanEntry> {
    let mut last: Option<LastStart> = None;
    let mut remembered = None;
    for block in assessed.chunk_by_mut(|previous, next| previous.block() == next.block()) {
        let base = last.map(|last| next_start(policy, last));
        let beside = remembered.filter(|remembered: &RememberedCandidate| {
            block.first().is_some_and(|first| first.draft.position.block() == remembered.position)
        });
        schedule_lanes(policy, wait_times, (base, beside), block);
        // Of two that start together, the more preferred transport comes first.
        last = block.iter().max_by_key(|candidate| candidate.start).map(LastStart::from_assessed);
        let first = block.iter().min_by_key(|candidate| candidate.start);
        remembered = first.filter(|first| first.from_memory).map(|first| {
            let draft = &first.draft;
            let (transport, position) = (draft.candidate.transport, draft.position.block());
            RememberedCandidate { transport, start: first.start, rtt: draft.rtt, position }
        });
    }
    // A lane timed by a remembered candidate may start before other lanes of its block, but never
    // before that candidate.
    if !assessed.is_sorted_by_key(|candidate| candidate.start) {
        assessed.sort_by_cached_key(|candidate| candidate.start);
    }
    in_order(policy, assessed)
}

/// Returns the entries for attempts in the order in which they start.
fn in_order(policy: &Policy, assessed: Vec<AssessedCandidate>) -> Vec<PlanEntry> {
    let mut previous: Option<Duration> = None;
    assessed
        .into_iter()
        .map(|AssessedCandidate { draft, from_memory, retest, start, .. }| {
            let start = match previous {
                None => start,
                Some(previous) if policy.simultaneous => previous,
                Some(previous) => start.max(previous.saturating_add(ATTEMPT_DELAY_FLOOR)),
            };
            let delay = start.saturating_sub(previous.unwrap_or(start));
            previous = Some(start);
            PlanEntry {
                candidate: draft.candidate,
                delay,
                initial_rtt: draft.rtt,
                from_memory,
                retest,
                short_hello: false,
                reasons: draft.reasons,
            }
        })
        .collect()
}

/// Schedules the attempts of one block: each transport is a lane, and each lane starts after the
/// head starts of those before it.
fn schedule_lanes(
    policy: &Policy,
    wait_times: &WaitTimes,
    (base, remembered): (Option<NextStart>, Option<RememberedCandidate>),
    block: &mut [AssessedCandidate],
) {
    let (mut lane_start, delays_before, mut first_reason) = match base {
        Some(NextStart { start, delays, reason }) => (start, delays, Some(reason)),
        None => (Duration::ZERO, 0, None),
    };
    let mut opener_rtt: Option<Duration> = None;
    let mut previous: Option<(Transport, LastStart)> = None;
    // The candidates of a block are sorted by transport, so a lane ends where the transport
    // changes.
    for assessed in block {
        let transport = assessed.draft.candidate.transport;
        let opens_lane = previous.is_none_or(|(of, _)| of != transport);
        let mut delays = delays_before;
        let (mut start, mut reason) = match previous {
            Some((same, last)) if same == transport => {
                let next = next_start(policy, last);
                delays = next.delays;
                (next.start, next.reason)
            }
            Some((of, _)) => {
                let (delay, reason) = head_start(wait_times, (of, opener_rtt), &assessed.draft);
                (lane_start.saturating_add(delay), reason)
            }
            None => (lane_start, first_reason.take().unwrap_or_else(|| choice(policy, transport))),
        };
        if opens_lane {
            let remembered = remembered
                .filter(|remembered| policy.rank(remembered.transport) < policy.rank(transport));
            if let Some(remembered) = remembered {
                let (delay, head_start_reason) =
                    head_start(wait_times, (remembered.transport, remembered.rtt), &assessed.draft);
                let beside = remembered.start.saturating_add(delay);
                (start, reason) =
                    if beside < start { (beside, head_start_reason) } else { (start, reason) };
            }
            lane_start = start;
            opener_rtt = assessed.draft.rtt;
        }
        assessed.draft.reasons.push(reason);
        (assessed.start, assessed.delays) = (start, delays);
        previous = Some((transport, LastStart::from_assessed(assessed)));
    }
}

/// Returns why the very first attempt uses this transport.
fn choice(policy: &Policy, transport: Transport) -> PlanReason {
    match policy.rank(transport) {
        Some(0) => PlanReason(ReasonKind::FirstChoice { transport }),
        _ => PlanReason(ReasonKind::NextChoice { transport }),
    }
}

/// When an attempt starts, and why.
struct NextStart {
    start: Duration,
    delays: u32,
    reason: PlanReason,
}

/// Returns the start of the attempt after this one.
fn next_start(policy: &Policy, last: LastStart) -> NextStart {
    let delay = attempt_delay(policy, last);
    let delays = last.delays.saturating_add(u32::from(last.rtt.is_none()));
    let reason = PlanReason(ReasonKind::AttemptDelay { delay, rtt: last.rtt });
    NextStart { start: last.start.saturating_add(delay), delays, reason }
}

/// Returns the Connection Attempt Delay after this attempt.
fn attempt_delay(policy: &Policy, last: LastStart) -> Duration {
    let delay = match last.rtt {
        Some(rtt) => rtt.saturating_mul(ROUND_TRIPS_TO_RETRANSMISSION),
        None => grown(policy, last.delays),
    };
    delay.min(policy.attempt_delay_max).max(policy.attempt_delay_min)
}

/// Returns the delay after so many others, which grow up to the maximum.
fn grown(policy: &Policy, delays: u32) -> Duration {
    let mut delay = policy.attempt_delay;
    for _ in 0..delays {
        if policy.attempt_delay_factor <= 100 || delay >= policy.attempt_delay_max {
            break;
        }
        delay = delay.saturating_mul(policy.attempt_delay_factor) / 100;
    }
    delay
}

/// Returns the head start of the lane that begins with this remembered round-trip time over the
/// lane that begins with `next`, and its reason.
///
/// It is never shorter than without memory, because the wait costs less than a second handshake. It
/// is the time that the preferred transport needs for its answer, so that the other one is not
/// started in vain; unless that is long ([`REMEMBERED_HEAD_START_MAX`]), or the network loses
/// packets, or the other one would be ready long before. A connection must not become slower
/// because of what is remembered: as far as round-trip times predict, no one waits longer than the
/// minimum head start beyond the time that the less preferred transport needs, except for a
/// preferred one that has answered by then, which is waited for (HEv3 §6.1). The late switch still
/// leads to the preferred one.
fn head_start(
    wait_times: &WaitTimes,
    (of, rtt): (Transport, Option<Duration>),
    next: &CandidateDraft,
) -> (Duration, PlanReason) {
    let min = wait_times.head_start;
    let plain = (min, PlanReason(ReasonKind::HeadStart { of, delay: min, rtt: None }));
    let Some(rtt) = rtt.filter(|_| !wait_times.is_lossy) else { return plain };
    let needs = rtt.saturating_add(RTT_MARGIN);
    if needs <= min || needs > REMEMBERED_HEAD_START_MAX {
        return plain;
    }
    if let Some(next_needs) = handshakes(next)
        && needs > min.saturating_add(next_needs)
    {
        let other = next.candidate.transport;
        return (
            min,
            PlanReason(ReasonKind::HeadStartCut { of, delay: min, rtt, other, needs: next_needs }),
        );
    }
    (needs, PlanReason(ReasonKind::HeadStart { of, delay: needs, rtt: Some(rtt) }))
}

/// Returns how long the handshakes of this candidate take according to its remembered round-trip
/// time.
fn handshakes(draft: &CandidateDraft) -> Option<Duration> {
    let Candidate { transport, security, .. } = draft.candidate;
    Some(draft.rtt?.saturating_mul(transport.round_trips_under(security)))
}
