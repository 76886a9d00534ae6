//! Second tries: unanswered candidates are tried again before their transport retransmits.
//!
//! A further attempt runs beside the previous ones as long as none of them is answered. The packets
//! of the first, or those of the answer, may have been lost; its transport will retransmit, but
//! without a known round-trip time only after a second, and a server whose answer was lost waits as
//! long. The first attempt to complete counts, and none is started once there is a winner.

use core::time::Duration;

use super::{Attempt, Purpose, Race, Stage};
use crate::evidence::Cause;
use crate::plan::{PROCESSING_TIME, patience_for};
use crate::policy::ATTEMPT_DELAY_FLOOR;
use crate::reason::Reason;

/// A further attempt to come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Due {
    at: Duration,
    /// The place of the first attempt at the same candidate.
    first: usize,
    /// How long the one before it was waited for.
    after: Duration,
}

impl Race {
    /// Starts the second try that is due.
    pub(super) fn start_second_try(&mut self) {
        if let Some(due) = self.second_try() {
            self.try_again(due);
        }
    }

    /// When the next second try is due.
    pub(super) fn next_second_try(&self) -> Option<Duration> {
        Some(self.second_try()?.at)
    }

    /// Whether another attempt at the same candidate has been heard of: then the silence of this
    /// one says nothing.
    pub(super) fn is_outdone(&self, attempt: &Attempt) -> bool {
        attempt.again_of.is_some()
            || self.tries_of(attempt).any(|other| other.id != attempt.id && other.is_answered())
    }

    /// Whether the handshake of this attempt shows that packets were lost: its own were sent again,
    /// or those of an earlier try at the same candidate are still without an answer.
    pub(super) fn sent_again(&self, attempt: &Attempt) -> Option<bool> {
        let is_silent = |one: &Attempt| one.id < attempt.id && !one.is_answered();
        match attempt.again_of.is_some() && self.tries_of(attempt).any(is_silent) {
            true => Some(true),
            false => attempt.was_sent_again(),
        }
    }

    fn second_try(&self) -> Option<Due> {
        let policy = &self.setup.policy;
        let may_be = policy.second_tries > 0
            && self.stage == Stage::Racing
            && !policy.simultaneous
            && !policy.exhaustive
            && self.may_start();
        if !may_be || self.is_room_reserved() {
            return None;
        }
        let floor = self.attempts.last()?.started.saturating_add(ATTEMPT_DELAY_FLOOR);
        let firsts = self.first_here..self.attempts.len();
        let due = firsts.filter_map(|first| self.due_again(first, floor)).min()?;
        (due.at < self.deadline()).then_some(due)
    }

    /// What waits for a turn comes first.
    fn is_room_reserved(&self) -> bool {
        self.in_flight().saturating_add(self.waiting.len()) >= self.setup.policy.max_in_flight
            || self.slots.are_fewer_than(2)
    }

    /// When the candidate of this attempt, if it is the first one at it, is to be tried again.
    fn due_again(&self, first: usize, floor: Duration) -> Option<Due> {
        let attempt = &self.attempts[first];
        if attempt.again_of.is_some()
            || attempt.is_answered()
            || !attempt.candidate.transport.has_second_tries()
            || attempt.purpose() != Some(Purpose::Win)
        {
            return None;
        }
        let mut second_tries = 0;
        let mut last = attempt;
        // Those that came after the first, for an attempt stands behind the one that it repeats.
        for again in self.attempts[first..].iter().filter(|one| one.again_of == Some(attempt.id)) {
            if again.is_answered() || again.failure().is_some() {
                return None;
            }
            second_tries += 1;
            last = again;
        }
        if second_tries >= self.setup.policy.second_tries
            || self.contenders().any(|complete| self.rank(complete) <= self.rank(attempt))
            || self.is_host_refusing(attempt)
        {
            return None;
        }
        let after = self.patience(attempt).saturating_mul(1 << second_tries);
        let at = last.started.saturating_add(after).max(floor);
        Some(Due { at, first, after })
    }

    /// All attempts at the candidate of this one, on the present network.
    fn tries_of<'a>(&'a self, attempt: &'a Attempt) -> impl Iterator<Item = &'a Attempt> {
        let first = attempt.again_of.unwrap_or(attempt.id);
        self.attempts.iter().filter(move |one| one.id == first || one.again_of == Some(first))
    }

    /// How long the first attempt at a candidate is waited for.
    fn patience(&self, attempt: &Attempt) -> Duration {
        let unknown = self.plan.second_try_delay;
        let Some(rtt) = self.round_trip_to(attempt) else { return unknown };
        let known = patience_for(rtt);
        match self.plan.is_lossy {
            // Not longer than a stranger is waited for, if the answer can have come.
            true => known.min(unknown.max(rtt.saturating_add(PROCESSING_TIME))),
            false => known,
        }
    }

    /// The round trip to its host, as remembered or as another attempt has just seen it.
    fn round_trip_to(&self, attempt: &Attempt) -> Option<Duration> {
        let ip = attempt.candidate.address.ip();
        let here = self.attempts[self.first_here..].iter();
        let measured = here.filter_map(|one| Some((one.rtt?, one.candidate.address.ip())));
        let seen = measured.filter(|(_, of)| *of == ip).map(|(rtt, _)| rtt);
        seen.min().or(attempt.initial_rtt)
    }

    fn is_host_refusing(&self, attempt: &Attempt) -> bool {
        let ip = attempt.candidate.address.ip();
        self.attempts[self.first_here..].iter().any(|other| {
            other.failure().is_some_and(|failure| failure.cause == Cause::Refused)
                && other.candidate.address.ip() == ip
        })
    }

    fn try_again(&mut self, due: Due) {
        let first = &self.attempts[due.first];
        let Some(purpose) = first.purpose() else { return };
        let mut reasons = first.reasons.clone();
        reasons.push(Reason::SecondTry { after: due.after });
        let initial_rtt = self.round_trip_to(first);
        let again = Attempt { again_of: Some(first.id), reasons, initial_rtt, ..first.clone() };
        self.launch(again, purpose);
    }
}
