//! When the next attempt starts.

use core::time::Duration;

use super::{Attempt, AttemptState, Purpose, Race, Stage};
use crate::candidate::Candidate;
use crate::evidence::Level;
use crate::io::{AttemptId, CloseReason, Output};
use crate::plan::Entry;
use crate::policy::ATTEMPT_DELAY_FLOOR;

/// How many round trips a handshake that has been answered is given before the next attempt
/// starts: TCP with TLS 1.2, the longest, needs two more.
const REMAINING_ROUND_TRIPS: u32 = 2;

impl Race {
    /// Starts everything that is due to win the race.
    pub(super) fn start_due(&mut self) {
        while self.next_start().is_some_and(|due| due <= self.now) {
            let Some(index) = self.waiting.pop_front() else { return };
            if !self.may_start() {
                self.make_room();
            }
            self.start(index, Purpose::Win);
        }
    }

    /// When the next attempt that may win is due; `None` if there is none, or if something else
    /// than time keeps it from starting.
    pub(super) fn next_start(&self) -> Option<Duration> {
        let entry = &self.plan.entries[*self.waiting.front()?];
        let may_start = self.may_start() || self.slots != Some(0) && self.gives_way().is_some();
        if self.stage != Stage::Racing || !may_start || self.first_complete().is_some() {
            return None;
        }
        let Some(newest) = self.attempts.last() else { return Some(self.now) };
        if self.setup.policy.simultaneous {
            return Some(self.now);
        }
        let floor = newest.started.saturating_add(ATTEMPT_DELAY_FLOOR);
        // A second try holds up nobody.
        let mut firsts = self.attempts.iter().filter(|attempt| attempt.again_of.is_none());
        let Some(last) = firsts.next_back() else { return Some(floor) };
        let nothing_runs = !self.attempts.iter().any(|attempt| self.is_open(attempt));
        if nothing_runs || matches!(last.state, AttemptState::Failed { .. }) {
            return Some(floor);
        }
        Some(self.due_after(last, entry).max(floor))
    }

    /// The Connection Attempt Delay of this entry, extended by progress
    /// (draft-ietf-happy-happyeyeballs-v3 §6.1).
    fn due_after(&self, last: &Attempt, entry: &Entry) -> Duration {
        let policy = &self.setup.policy;
        // An entry that was sorted in before those already started has no delay of its own.
        let delay = if entry.delay.is_zero() { policy.attempt_delay } else { entry.delay };
        let due = last.started.saturating_add(delay);
        let latest = last.started.saturating_add(policy.attempt_delay_max.max(delay));
        let running = self.attempts.iter().filter(|attempt| self.is_open(attempt));
        running
            .filter(|attempt| attempt.is_answered())
            .map(|attempt| {
                let rest = attempt.rtt.unwrap_or_default().saturating_mul(REMAINING_ROUND_TRIPS);
                attempt.progress_at.saturating_add(delay.max(rest)).min(latest)
            })
            .fold(due, Duration::max)
    }

    /// Whether an attempt may still win, so that the next one is worth waiting with.
    fn is_open(&self, attempt: &Attempt) -> bool {
        let is_complete = attempt.awaiting_verdict_since().is_some();
        attempt.is_under_way() || (is_complete && !self.setup.policy.exhaustive)
    }

    /// Whether the limits on attempts in flight allow one more.
    pub(super) fn may_start(&self) -> bool {
        let in_flight = self.attempts.iter().filter(|attempt| attempt.is_under_way()).count();
        in_flight < self.setup.policy.max_in_flight.max(1) && self.slots != Some(0)
    }

    /// Starts this entry of the plan.
    pub(super) fn start(&mut self, index: usize, purpose: Purpose) {
        let entry = &self.plan.entries[index];
        let attempt = Attempt {
            id: AttemptId(0),
            candidate: entry.candidate.clone(),
            again_of: None,
            started: self.now,
            reasons: entry.reasons.clone(),
            from_memory: entry.from_memory,
            background: purpose != Purpose::Win,
            level: Level::Started,
            progress_at: self.now,
            initial_rtt: entry.initial_rtt,
            rtt: None,
            answered_at: None,
            proceeded: false,
            state: AttemptState::UnderWay(purpose),
        };
        self.launch(attempt, purpose);
    }

    /// Starts an attempt now, under the next number.
    pub(super) fn launch(&mut self, attempt: Attempt, purpose: Purpose) {
        let Ok(number) = u32::try_from(self.attempts.len()) else { return };
        let attempt = Attempt {
            id: AttemptId(number),
            started: self.now,
            level: Level::Started,
            progress_at: self.now,
            rtt: None,
            answered_at: None,
            proceeded: false,
            state: AttemptState::UnderWay(purpose),
            ..attempt
        };
        self.outbox.push_back(Output::Start {
            id: attempt.id,
            candidate: attempt.candidate.clone(),
            initial_rtt: attempt.initial_rtt,
            background: attempt.background,
        });
        self.slots = self.slots.map(|slots| slots.saturating_sub(1));
        self.attempts.push(attempt);
    }

    /// Whether this candidate was tried and need not be tried again. What a change of network
    /// closed is to be tried anew, and so is what made room for an attempt that failed after all.
    pub(super) fn is_spent(&self, candidate: &Candidate) -> bool {
        let made_room = [CloseReason::Lost, CloseReason::BudgetSpent];
        self.attempts[self.first_here..]
            .iter()
            .filter(|attempt| attempt.candidate.is_same_attempt(candidate))
            .any(|attempt| match attempt.state {
                AttemptState::Closed { why, .. } => {
                    self.stage != Stage::Racing || !made_room.contains(&why)
                }
                _ => true,
            })
    }
}
