//! When an unanswered candidate is tried again, and the effect of a lossy network.

use core::time::Duration;

use super::{PlanReason, PlanRequest};
use crate::policy::ATTEMPT_DELAY_FLOOR;
use crate::reason::ReasonKind;

/// How many round trips to wait for an attempt: one for its answer, and the rest for a busy server
/// and for varying round-trip times, as in the probe timeout (RFC 9002 §6.2.1).
const ROUND_TRIPS: u32 = 3;

/// The processing time of the server and of both hosts.
pub(crate) const PROCESSING_TIME: Duration = Duration::from_millis(10);

/// The time that a second try to a nearby host needs to complete.
const HANDSHAKE_ALLOWANCE: Duration = Duration::from_millis(20);

/// How long a race waits.
pub(super) struct WaitTimes {
    /// The minimum head start of a more preferred transport over the next one.
    pub(super) head_start: Duration,
    /// How long to wait for an attempt if the round-trip time to its host is unknown.
    pub(super) second_try_delay: Duration,
    /// Whether the network is known as lossy.
    pub(super) is_lossy: bool,
    /// The reason, if they differ from the defaults.
    pub(super) note: Option<PlanReason>,
}

/// Returns how long to wait for an attempt if the round-trip time to its host is known.
pub(crate) fn patience_for(rtt: Duration) -> Duration {
    rtt.saturating_mul(ROUND_TRIPS).saturating_add(PROCESSING_TIME)
}

/// Returns how long a race with this policy waits, given what is remembered about the network.
pub(super) fn wait_times(request: &PlanRequest<'_>) -> WaitTimes {
    let (policy, view, now) = (request.policy, request.view, request.now);
    let uses_memory = !policy.ignore_memory;
    let loss = view.loss(now).filter(|_| uses_memory);
    let longest = view.longest_round_trip(now).filter(|_| uses_memory);
    let (min, max) = match loss {
        None => (policy.second_try_delay_min, policy.second_try_delay),
        Some(_) => (
            policy.head_start.max(ATTEMPT_DELAY_FLOOR),
            policy.second_try_delay.min(policy.lossy_second_try_delay),
        ),
    };
    let second_try_delay = longest.map_or(max, |rtt| patience_for(rtt).max(min).min(max));
    let (head_start, note) = match loss {
        Some(loss) if policy.second_tries > 0 => {
            let until_complete = second_try_delay.saturating_add(HANDSHAKE_ALLOWANCE);
            let head_start = policy.head_start.max(policy.lossy_head_start.min(until_complete));
            let second_tries = policy.second_tries;
            (
                head_start,
                Some(PlanReason(ReasonKind::NetworkLoses { loss, head_start, second_tries })),
            )
        }
        _ => (policy.head_start, None),
    };
    WaitTimes { head_start, second_try_delay, is_lossy: loss.is_some(), note }
}
