//! Turns: how many attempts may be in flight, and which one ends so that another can start.
//!
//! When no more may be in flight and candidates are waiting, the attempt whose turn has been over
//! for longest makes room: a second try at once, any other attempt after its turn. An unanswered
//! attempt has a turn of [`DELAYS_OF_FIRST_TURN`]; that of an answered one restarts with each
//! progress. A candidate that made room waits again, behind everything that has not been tried yet,
//! and its next turn is twice as long: so a silent address deprives no other of its turn, and a
//! slow one gets the time it needs as soon as nothing faster is left.
//!
//! An exhaustive race tries everything to its end. There a first turn is as long as the deadline
//! allows, and at most [`Policy::late_switch_for`]. A candidate that was silent for that long has
//! failed. Any other was cut short, answered or not, and waits again like the candidates of other
//! races: when everything has been tried, it gets a second turn, twice as long, and so on until the
//! deadline.
//!
//! The limit of the process is shared with other races, whose sockets are not ours. A race that
//! cannot start an attempt because of it ends one of its own, and waits until it is told that there
//! is room. Since the slot may go to another race, it only ends an attempt that has been silent for
//! [`Policy::late_switch_for`] and has little to lose.
//!
//! `waiting` has the queue of candidates, `schedule` the times between starts.
//!
//! [`Policy::late_switch_for`]: crate::policy::Policy::late_switch_for

use alloc::format;
use core::time::Duration;

use super::attempt::ROUND_TRIPS_WITH_RETRANSMISSION;
use super::{AttemptState, Race, RaceAttempt};
use crate::candidate::Candidate;
use crate::evidence::{AttemptFailure, FailureCause};
use crate::io::{CloseReason, RaceOutput};
use crate::policy::ATTEMPT_DELAY_FLOOR;

/// The minimum turn of an unanswered attempt, in Connection Attempt Delays. With the default delay
/// it is longer than nearly all round trips on the Internet, and short enough that a limit of eight
/// attempts does not slow the starts down.
const DELAYS_OF_FIRST_TURN: u32 = 2;

/// The maximum number of times a turn is doubled; it is then longer than any deadline.
const MAX_DOUBLINGS: u32 = 16;

/// How many attempts this race may start under the limit of the process.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AttemptSlots {
    /// Unlimited until first reported.
    left: Option<usize>,
    /// Whether an attempt made room, and it has not been reported yet whether this race gets the
    /// slot.
    released: bool,
}

impl AttemptSlots {
    /// Creates slots of which this many are left, as reported by the driver.
    pub(super) const fn with_left(left: usize) -> Self {
        Self { left: Some(left), released: false }
    }

    /// Takes the slot of an attempt that starts, until the driver reports the number again.
    pub(super) fn acquire(&mut self) {
        self.left = self.left.map(|left| left.saturating_sub(1));
    }

    /// Records that an attempt made room. Returns whether another may start in its place at once:
    /// not if no slot was left, because the one that became free may go to another race.
    fn release(&mut self) -> bool {
        self.released = self.are_fewer_than(1);
        !self.released
    }

    /// Returns whether fewer than this many are left.
    pub(super) fn are_fewer_than(&self, number: usize) -> bool {
        self.left.is_some_and(|left| left < number)
    }
}

impl Race {
    /// Returns whether the limits on attempts in flight allow one more.
    pub(super) fn may_start(&self) -> bool {
        self.in_flight() < self.setup.policy.max_in_flight.max(1) && !self.slots.are_fewer_than(1)
    }

    pub(super) fn in_flight(&self) -> usize {
        self.attempts.iter().filter(|attempt| attempt.is_under_way()).count()
    }

    /// Returns when there is room for one more attempt that may win: zero if there is now; `None`
    /// if no room can be made.
    pub(super) fn room_at(&self) -> Option<Duration> {
        if self.may_start() {
            return Some(Duration::ZERO);
        }
        if self.slots.released {
            return None;
        }
        Some(self.next_to_make_room()?.0)
    }

    /// Ends the attempt that makes room, and returns whether another may start in its place at
    /// once.
    pub(super) fn make_room(&mut self) -> bool {
        let Some((_, index)) = self.next_to_make_room() else { return false };
        let attempt = &self.attempts[index];
        let is_exhaustive = self.setup.policy.exhaustive;
        if attempt.second_try_of.is_some() {
            self.close(index, CloseReason::Lost);
        } else if is_exhaustive && self.was_silent_for_long(attempt) {
            self.fail_after_turn(index);
        } else {
            // In an exhaustive race, what was cut short is decided by its last turn.
            if !is_exhaustive {
                self.learn_stalled_if_long(index);
            }
            self.close(index, CloseReason::MadeRoom);
            self.queue_again(index);
        }
        self.slots.release()
    }

    /// Queues the candidate of an attempt that made room for another turn, unless DNS has withdrawn
    /// its address: then it is no longer in the plan.
    fn queue_again(&mut self, index: usize) {
        let candidate = &self.attempts[index].candidate;
        let mut entries = self.plan.entries.iter();
        let entry = entries.position(|entry| entry.candidate.is_same_attempt(candidate));
        if let Some(entry) = entry {
            self.waiting.push_returning(entry);
        }
    }

    /// Returns how often this candidate has made room for others on the current network.
    pub(super) fn turns_of(&self, candidate: &Candidate) -> u32 {
        let made_room = self.attempts[self.first_on_network..]
            .iter()
            .filter(|attempt| attempt.made_room() && attempt.candidate.is_same_attempt(candidate));
        u32::try_from(made_room.count()).unwrap_or(u32::MAX)
    }

    /// Returns whether as many candidates have been tried on the current network as may be in
    /// flight.
    pub(super) fn is_crowded(&self) -> bool {
        let here = self.attempts[self.first_on_network..].iter();
        let firsts = here.filter(|attempt| attempt.second_try_of.is_none());
        firsts.count() >= self.setup.policy.max_in_flight
    }

    /// Returns from when on an attempt may be ended for another one, and the index of that attempt.
    fn next_to_make_room(&self) -> Option<(Duration, usize)> {
        let second_try = self.attempts.iter().rposition(|attempt| {
            attempt.second_try_of.is_some() && attempt.is_under_way() && !attempt.is_answered()
        });
        // Its slot may go to another race, so it must have little to lose.
        let min_silence = match self.slots.are_fewer_than(1) {
            true => self.setup.policy.late_switch_for,
            false => Duration::ZERO,
        };
        let silence_end = |attempt: &RaceAttempt| attempt.progress_at.saturating_add(min_silence);
        if let Some(index) = second_try {
            return Some((silence_end(&self.attempts[index]), index));
        }
        let here = self.attempts.iter().enumerate().skip(self.first_on_network);
        here.filter(|(_, attempt)| attempt.is_under_way())
            .map(|(index, attempt)| (self.turn_end(attempt).max(silence_end(attempt)), index))
            .min()
    }

    /// Returns when the turn of an attempt that is under way ends.
    fn turn_end(&self, attempt: &RaceAttempt) -> Duration {
        let policy = &self.setup.policy;
        let min_turn = if policy.exhaustive { self.share_of_deadline() } else { Duration::ZERO };
        let (begin, length) = if attempt.is_answered() {
            (attempt.progress_at, policy.attempt_delay_max)
        } else if policy.exhaustive {
            (attempt.started, min_turn)
        } else {
            let delays = policy.attempt_delay.saturating_mul(DELAYS_OF_FIRST_TURN);
            let known_rtt = attempt.initial_rtt.unwrap_or_default();
            let round_trips = known_rtt.saturating_mul(ROUND_TRIPS_WITH_RETRANSMISSION);
            (attempt.started, delays.max(round_trips))
        };
        // Without a delay, too, a turn takes time, or two candidates would make room for each other
        // forever.
        let length = length.max(min_turn).max(ATTEMPT_DELAY_FLOOR);
        let doublings = attempt.turn.min(MAX_DOUBLINGS);
        begin.saturating_add(length.saturating_mul(1 << doublings))
    }

    /// Returns whether this attempt was unanswered for as long as counts as silence.
    fn was_silent_for_long(&self, attempt: &RaceAttempt) -> bool {
        let waited = self.now.saturating_sub(attempt.started);
        !attempt.is_answered() && waited >= self.setup.policy.late_switch_for
    }

    /// Returns how long each attempt of an exhaustive race may take so that all have a turn before
    /// the deadline, with one share reserved for DNS and the delays.
    fn share_of_deadline(&self) -> Duration {
        let policy = &self.setup.policy;
        let rounds = self.plan.entries.len().div_ceil(policy.max_in_flight.max(1));
        let shares = u32::try_from(rounds).unwrap_or(u32::MAX).saturating_add(1);
        (policy.deadline / shares).min(policy.late_switch_for)
    }

    /// Lets an attempt fail that was silent for its whole turn in an exhaustive race.
    fn fail_after_turn(&mut self, index: usize) {
        let at = self.now;
        self.learn_stalled_if_long(index);
        let attempt = &mut self.attempts[index];
        let waited = at.saturating_sub(attempt.started).as_millis();
        let detail = format!("no answer in {waited} ms, and other candidates waited for a turn");
        let failure = AttemptFailure::new(FailureCause::Silent, attempt.level, detail);
        attempt.state = AttemptState::Failed { at, failure };
        self.outbox.push_back(RaceOutput::Close { id: attempt.id, why: CloseReason::MadeRoom });
    }
}
