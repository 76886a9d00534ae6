//! Second tries: unanswered candidates are tried again before their transport retransmits.
//!
//! A further attempt runs beside the previous ones as long as none of them is answered. The packets
//! of the first, or those of the answer, may have been lost; its transport will retransmit, but
//! without a known round-trip time only after a second, and a server whose answer was lost waits as
//! long. The first attempt to complete counts, and none is started once there is a winner.

use core::time::Duration;

use super::{AttemptPurpose, Race, RaceAttempt, RaceStage};
use crate::evidence::FailureCause;
use crate::plan::{PROCESSING_TIME, patience_for};
use crate::policy::ATTEMPT_DELAY_FLOOR;
use crate::reason::{PlanReason, ReasonKind};

/// A second try that is due at some time.
struct DueSecondTry {
    at: Duration,
    /// The index of the first attempt at the same candidate.
    first: usize,
    /// How long the previous one has been waited for.
    after: Duration,
}

/// What other attempts at the address of an attempt show.
pub(super) struct HeardFromHost {
    /// The round-trip time, as measured by one of them or as remembered.
    pub(super) rtt: Option<Duration>,
    /// Whether one of them was refused.
    has_refused: bool,
}

impl Race {
    /// Starts the second try that is due.
    pub(super) fn start_second_try(&mut self) {
        if let Some(due) = self.second_try() {
            self.launch_second_try(due);
        }
    }

    /// Returns when the next second try is due.
    pub(super) fn next_second_try(&self) -> Option<Duration> {
        Some(self.second_try()?.at)
    }

    /// Returns whether another attempt at the same candidate has been answered: then the silence of
    /// this one is not significant.
    pub(super) fn is_superseded(&self, attempt: &RaceAttempt) -> bool {
        attempt.second_try_of.is_some()
            || self.tries_of(attempt).any(|other| other.id != attempt.id && other.is_answered())
    }

    /// Returns whether the handshake of this attempt shows that packets were lost: its own were
    /// retransmitted, or those of an earlier try at the same candidate are still unanswered.
    pub(super) fn shows_retransmission(&self, attempt: &RaceAttempt) -> Option<bool> {
        let is_silent = |earlier: &RaceAttempt| earlier.id < attempt.id && !earlier.is_answered();
        match attempt.second_try_of.is_some() && self.tries_of(attempt).any(is_silent) {
            // What took its time was the ClientHello that did not get through.
            _ if attempt.long_hello_failure.is_some() => None,
            true => Some(true),
            false => attempt.was_retransmitted(),
        }
    }

    fn second_try(&self) -> Option<DueSecondTry> {
        let policy = &self.setup.policy;
        let is_enabled = policy.second_tries > 0
            && self.stage == RaceStage::Racing
            && !policy.simultaneous
            && !policy.exhaustive;
        if !is_enabled || self.is_room_reserved() {
            return None;
        }
        let floor = self.attempts.last()?.started.saturating_add(ATTEMPT_DELAY_FLOOR);
        let best = self.contenders().map(|complete| self.rank(complete)).min();
        let firsts = self.first_on_network..self.attempts.len();
        let useful =
            firsts.filter(|first| best.is_none_or(|best| self.rank(&self.attempts[*first]) < best));
        let due = useful
            .filter_map(|first| self.second_try_due(first, floor))
            .min_by_key(|due| due.at)?;
        (due.at < self.deadline()).then_some(due)
    }

    /// Returns whether there is no room, or no more than candidates that wait for a turn need.
    fn is_room_reserved(&self) -> bool {
        self.in_flight().saturating_add(self.waiting.len()) >= self.setup.policy.max_in_flight
            || self.slots.are_fewer_than(2)
    }

    /// Returns when the candidate of this attempt is tried again, if this is its first attempt.
    fn second_try_due(&self, first: usize, floor: Duration) -> Option<DueSecondTry> {
        let attempt = &self.attempts[first];
        if attempt.second_try_of.is_some()
            || attempt.is_answered()
            || !attempt.candidate.transport.has_second_tries()
            || attempt.purpose() != Some(AttemptPurpose::Win)
        {
            return None;
        }
        let mut second_tries = 0;
        let mut last = attempt;
        // Second tries come after the attempt that they repeat.
        for retry in
            self.attempts[first..].iter().filter(|retry| retry.second_try_of == Some(attempt.id))
        {
            if retry.is_answered() || retry.failure().is_some() {
                return None;
            }
            second_tries += 1;
            last = retry;
        }
        if second_tries >= self.setup.policy.second_tries {
            return None;
        }
        let heard = self.heard_from_host(attempt);
        if heard.has_refused {
            return None;
        }
        let after = self.patience(heard.rtt).saturating_mul(1 << second_tries);
        let at = last.started.saturating_add(after).max(floor);
        Some(DueSecondTry { at, first, after })
    }

    /// Returns all attempts at the candidate of this one, on the current network.
    fn tries_of<'a>(&'a self, attempt: &'a RaceAttempt) -> impl Iterator<Item = &'a RaceAttempt> {
        let first = attempt.second_try_of.unwrap_or(attempt.id);
        self.attempts
            .iter()
            .filter(move |attempt| attempt.id == first || attempt.second_try_of == Some(first))
    }

    /// Returns how long to wait for the first attempt at a candidate whose round-trip time is this.
    fn patience(&self, rtt: Option<Duration>) -> Duration {
        let unknown = self.plan.second_try_delay;
        let Some(rtt) = rtt else { return unknown };
        let known = patience_for(rtt);
        match self.plan.is_lossy {
            // Not longer than for an unknown host, provided that the answer can have arrived.
            true => known.min(unknown.max(rtt.saturating_add(PROCESSING_TIME))),
            false => known,
        }
    }

    /// Returns what the attempts on this network show about the host of this one.
    pub(super) fn heard_from_host(&self, attempt: &RaceAttempt) -> HeardFromHost {
        let ip = attempt.candidate.address.ip();
        let mut heard = HeardFromHost { rtt: None, has_refused: false };
        for other in &self.attempts[self.first_on_network..] {
            let refused =
                other.failure().is_some_and(|failure| failure.cause == FailureCause::Refused);
            if (refused || other.rtt.is_some()) && other.candidate.address.ip() == ip {
                heard.has_refused |= refused;
                heard.rtt = heard.rtt.into_iter().chain(other.rtt).min();
            }
        }
        heard.rtt = heard.rtt.or(attempt.initial_rtt);
        heard
    }

    fn launch_second_try(&mut self, due: DueSecondTry) {
        let first = &self.attempts[due.first];
        let Some(purpose) = first.purpose() else { return };
        let mut reasons = first.reasons.clone();
        // It has a time of its own.
        reasons.retain(|reason| !reason.is_early_start());
        reasons.push(PlanReason(ReasonKind::SecondTry { after: due.after }));
        let initial_rtt = self.heard_from_host(first).rtt;
        let retry =
            RaceAttempt { second_try_of: Some(first.id), reasons, initial_rtt, ..first.clone() };
        self.launch(retry, purpose);
    }
}
