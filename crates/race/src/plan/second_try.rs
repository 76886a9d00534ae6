//! When an unanswered candidate is tried again, and the effect of a lossy network.

use core::time::Duration;

use super::{PlanRequest, Reason};
use crate::policy::ATTEMPT_DELAY_FLOOR;

/// How many round trips an attempt is waited for: the one of its answer, and as much again for a
/// busy server and a path whose round trips differ, as a probe timeout has it (RFC 9002 §6.2.1).
const ROUND_TRIPS: u32 = 3;

/// What a server and the two hosts need besides.
pub(crate) const WORK: Duration = Duration::from_millis(10);

/// What a second try needs beyond the round trip of a near host, until it is complete.
const CHANCE: Duration = Duration::from_millis(20);

/// How a race waits.
pub(super) struct Waits {
    /// What a more wanted transport gets at least before the next one.
    pub(super) head_start: Duration,
    /// How long an attempt is waited for where the round trip to its host is not known.
    pub(super) second_try_delay: Duration,
    /// Whether the network is known to lose packets.
    pub(super) is_lossy: bool,
    /// Why, if there is something to say.
    pub(super) note: Option<Reason>,
}

/// Returns how long to wait for an attempt if the round-trip time to its host is known.
pub(crate) fn known_patience(rtt: Duration) -> Duration {
    rtt.saturating_mul(ROUND_TRIPS).saturating_add(WORK)
}

/// Returns how a race with this policy waits, given what is remembered of the network.
pub(super) fn waits(request: &PlanRequest<'_>) -> Waits {
    let (policy, view, now) = (request.policy, request.view, request.now);
    let is_asked = !policy.ignore_memory;
    let loss = view.loss(now).filter(|_| is_asked);
    let longest = view.longest_round_trip(now).filter(|_| is_asked);
    let (least, most) = match loss {
        None => (policy.second_try_delay_min, policy.second_try_delay),
        Some(_) => (
            policy.head_start.max(ATTEMPT_DELAY_FLOOR),
            policy.second_try_delay.min(policy.lossy_second_try_delay),
        ),
    };
    let second_try_delay = longest.map_or(most, |rtt| known_patience(rtt).max(least).min(most));
    let (head_start, note) = match loss {
        Some(loss) if policy.second_tries > 0 => {
            let chance = second_try_delay.saturating_add(CHANCE);
            let head_start = policy.head_start.max(policy.lossy_head_start.min(chance));
            let second_tries = policy.second_tries;
            (head_start, Some(Reason::NetworkLoses { loss, head_start, second_tries }))
        }
        _ => (policy.head_start, None),
    };
    Waits { head_start, second_try_delay, is_lossy: loss.is_some(), note }
}
