//! When each attempt starts: lanes of transports within blocks.

use alloc::vec::Vec;
use core::time::Duration;

use super::remembered::Weighed;
use super::second_try::{WORK, Waits};
use super::{Draft, Entry, Reason};
use crate::candidate::{Candidate, Transport};
use crate::policy::{ATTEMPT_DELAY_FLOOR, Policy};

/// A first retransmission comes after three round trips when one sample is all there is: SRTT +
/// 4 × SRTT/2 (RFC 6298 §2.2; RFC 9002 §6.2.1 comes to the same). A later attempt has no reason to
/// start before it.
const ROUND_TRIPS_TO_RETRANSMISSION: u32 = 3;

/// What an answer may take beyond the remembered round trip, which is a mean.
const SLACK: Duration = WORK.saturating_mul(2);

/// The longest head start that a remembered round trip gives, if the policy does not ask for more.
/// What is waited for longer than a stranger costs that much more where its first flight is lost, so
/// a server that is far away gets no more than a stranger.
pub(super) const REMEMBERED_HEAD_START_MAX: Duration = Duration::from_millis(100);

/// What the memory lets go first, and before it a lesser transport of the same services waits no
/// longer than for a head start: as long as it would if nothing were remembered, or so that it does
/// not start for nothing.
#[derive(Clone, Copy)]
struct Remembered {
    transport: Transport,
    start: Duration,
    rtt: Option<Duration>,
    place: (u8, u32),
}

/// An attempt with its start.
struct Timed {
    start: Duration,
    weighed: Weighed,
}

/// Returns the entries in the order in which they start.
pub(super) fn entries(policy: &Policy, waits: &Waits, blocks: Vec<Vec<Weighed>>) -> Vec<Entry> {
    let mut timed: Vec<Timed> = Vec::new();
    let mut remembered = None;
    for block in blocks {
        let base = timed.last().map(|last| {
            let (delay, rtt) = attempt_delay(policy, last.weighed.draft.rtt);
            (last.start.saturating_add(delay), Reason::AttemptDelay { delay, rtt })
        });
        let beside = remembered.filter(|one: &Remembered| {
            block.first().is_some_and(|first| first.draft.place.block() == one.place)
        });
        let lanes = lanes(policy, waits, (base, beside), block);
        remembered = lanes.first().filter(|first| first.weighed.from_memory).map(|first| {
            let draft = &first.weighed.draft;
            let (transport, place) = (draft.candidate.transport, draft.place.block());
            Remembered { transport, start: first.start, rtt: draft.rtt, place }
        });
        timed.extend(lanes);
    }
    // A lane beside what is remembered may start before other lanes of its block, never before it.
    timed.sort_by_key(|one| one.start);
    let mut previous: Option<Duration> = None;
    timed
        .into_iter()
        .map(|Timed { start, weighed }| {
            let start = match previous {
                None => start,
                Some(previous) if policy.simultaneous => previous,
                Some(previous) => start.max(previous.saturating_add(ATTEMPT_DELAY_FLOOR)),
            };
            let delay = start.saturating_sub(previous.unwrap_or(start));
            previous = Some(start);
            let Weighed { draft, from_memory, retest, .. } = weighed;
            Entry {
                candidate: draft.candidate,
                delay,
                initial_rtt: draft.rtt,
                from_memory,
                retest,
                reasons: draft.reasons,
            }
        })
        .collect()
}

/// Schedules the attempts of one block: each transport is a lane, and each lane starts after the
/// head starts of those before it.
fn lanes(
    policy: &Policy,
    waits: &Waits,
    (base, remembered): (Option<(Duration, Reason)>, Option<Remembered>),
    block: Vec<Weighed>,
) -> Vec<Timed> {
    let (mut lane_start, mut first_reason) = match base {
        Some((start, reason)) => (start, Some(reason)),
        None => (Duration::ZERO, None),
    };
    let mut timed: Vec<Timed> = Vec::with_capacity(block.len());
    let mut opener_rtt: Option<Duration> = None;
    // Candidates of a block come sorted by transport, so a lane ends where the transport changes.
    for mut weighed in block {
        let transport = weighed.draft.candidate.transport;
        let previous = timed.last().map(|last| {
            let draft = &last.weighed.draft;
            (draft.candidate.transport, last.start, draft.rtt)
        });
        let opens_lane = previous.is_none_or(|(of, _, _)| of != transport);
        let (mut start, mut reason) = match previous {
            Some((same, start, rtt)) if same == transport => {
                let (delay, rtt) = attempt_delay(policy, rtt);
                (start.saturating_add(delay), Reason::AttemptDelay { delay, rtt })
            }
            Some((of, _, _)) => {
                let (delay, reason) = head_start(waits, (of, opener_rtt), &weighed.draft);
                (lane_start.saturating_add(delay), reason)
            }
            None => (lane_start, first_reason.take().unwrap_or_else(|| choice(policy, transport))),
        };
        if opens_lane {
            let one = remembered.filter(|one| policy.rank(one.transport) < policy.rank(transport));
            if let Some(one) = one {
                let (delay, told) = head_start(waits, (one.transport, one.rtt), &weighed.draft);
                let beside = one.start.saturating_add(delay);
                (start, reason) = if beside < start { (beside, told) } else { (start, reason) };
            }
            lane_start = start;
            opener_rtt = weighed.draft.rtt;
        }
        weighed.draft.reasons.push(reason);
        timed.push(Timed { start, weighed });
    }
    // Stable: of two that start together the more wanted transport is first.
    timed.sort_by_key(|one| one.start);
    timed
}

/// Returns why the very first attempt uses this transport.
fn choice(policy: &Policy, transport: Transport) -> Reason {
    match policy.rank(transport) {
        Some(0) => Reason::FirstChoice { transport },
        _ => Reason::NextChoice { transport },
    }
}

/// Returns the Connection Attempt Delay after an attempt with this remembered round-trip time, and
/// that time if it was used.
fn attempt_delay(policy: &Policy, rtt: Option<Duration>) -> (Duration, Option<Duration>) {
    let adapted = match rtt {
        Some(rtt) => rtt.saturating_mul(ROUND_TRIPS_TO_RETRANSMISSION),
        None => policy.attempt_delay,
    };
    (adapted.min(policy.attempt_delay_max).max(policy.attempt_delay_min), rtt)
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
    waits: &Waits,
    (of, rtt): (Transport, Option<Duration>),
    next: &Draft,
) -> (Duration, Reason) {
    let least = waits.head_start;
    let plain = (least, Reason::HeadStart { of, delay: least, rtt: None });
    let Some(rtt) = rtt.filter(|_| !waits.is_lossy) else { return plain };
    let needs = rtt.saturating_add(SLACK);
    if needs <= least || needs > REMEMBERED_HEAD_START_MAX {
        return plain;
    }
    if let Some(next_needs) = handshakes(next)
        && needs > least.saturating_add(next_needs)
    {
        let other = next.candidate.transport;
        return (least, Reason::HeadStartCut { of, delay: least, rtt, other, needs: next_needs });
    }
    (needs, Reason::HeadStart { of, delay: needs, rtt: Some(rtt) })
}

/// Returns how long the handshakes of this candidate take according to its remembered round-trip
/// time.
fn handshakes(draft: &Draft) -> Option<Duration> {
    let Candidate { transport, security, .. } = draft.candidate;
    Some(draft.rtt?.saturating_mul(transport.round_trips_under(security)))
}
