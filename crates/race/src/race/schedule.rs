//! When the next attempt starts.

use core::time::Duration;

use super::{AttemptPurpose, AttemptState, Race, RaceAttempt, RaceStage};
use crate::candidate::Candidate;
use crate::evidence::EvidenceLevel;
use crate::io::{AttemptId, CloseReason, RaceOutput};
use crate::plan::PlanEntry;
use crate::policy::ATTEMPT_DELAY_FLOOR;

/// How many round trips to wait for an answered handshake before the next attempt starts: TCP with
/// TLS 1.2, the longest, needs two more.
const REMAINING_ROUND_TRIPS: u32 = 2;

impl Race {
    /// Starts the attempt that is due, once there is room for it.
    pub(super) fn start_due(&mut self) {
        let early = self.early_start_reason();
        if (self.may_start() || self.make_room())
            && let Some(index) = self.waiting.take_next()
        {
            self.start(index, AttemptPurpose::Win);
            if let Some(attempt) = self.attempts.last_mut() {
                attempt.reasons.extend(early);
            }
        }
    }

    /// Returns when the next attempt that may win is due, or another one must make room for it;
    /// `None` if there is none, or if it does not depend on time alone.
    pub(super) fn next_start(&self) -> Option<Duration> {
        let entry = &self.plan.entries[self.waiting.next()?];
        if self.stage != RaceStage::Racing || self.first_complete().is_some() {
            return None;
        }
        Some(self.room_at()?.max(self.next_turn(entry)))
    }

    /// Returns when this entry, the next one, is due if there is room.
    fn next_turn(&self, entry: &PlanEntry) -> Duration {
        let Some(newest) = self.attempts.last() else { return self.now };
        if self.setup.policy.simultaneous {
            return self.now;
        }
        let floor = newest.started.saturating_add(ATTEMPT_DELAY_FLOOR);
        let Some(last) = self.last_first_try() else { return floor };
        let nothing_runs = !self.attempts.iter().any(|attempt| self.is_open(attempt));
        if nothing_runs || matches!(last.state, AttemptState::Failed { .. }) {
            return floor;
        }
        let due = self.due_after(last, entry);
        let early = self.early_start(last, entry).map_or(due, |early| early.at);
        due.min(early).max(floor)
    }

    /// Returns the attempt that delays the next candidate: second tries do not.
    pub(super) fn last_first_try(&self) -> Option<&RaceAttempt> {
        self.attempts.iter().rfind(|attempt| attempt.second_try_of.is_none())
    }

    /// Returns when this entry is due: after its Connection Attempt Delay, extended by progress
    /// (HEv3 §6.1).
    pub(super) fn due_after(&self, last: &RaceAttempt, entry: &PlanEntry) -> Duration {
        let policy = &self.setup.policy;
        let delay = match entry.delay {
            // An entry inserted before those already started has no delay of its own, and
            // candidates that have been tried are not urgent.
            delay if delay.is_zero() || !self.waiting.has_untried() => policy.attempt_delay,
            delay if self.is_crowded() => delay.min(policy.attempt_delay_min),
            delay => delay,
        };
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

    /// Returns whether an attempt may still win, so that the next one should wait.
    fn is_open(&self, attempt: &RaceAttempt) -> bool {
        let is_complete = attempt.awaiting_decision_since().is_some();
        attempt.is_under_way() || (is_complete && !self.setup.policy.exhaustive)
    }

    /// Starts this entry of the plan.
    pub(super) fn start(&mut self, index: usize, purpose: AttemptPurpose) {
        let entry = &self.plan.entries[index];
        let attempt = RaceAttempt {
            id: AttemptId(0),
            candidate: entry.candidate.clone(),
            second_try_of: None,
            turn: self.turns_of(&entry.candidate),
            started: self.now,
            reasons: entry.reasons.clone(),
            from_memory: entry.from_memory,
            background: purpose != AttemptPurpose::Win,
            level: EvidenceLevel::Started,
            progress_at: self.now,
            initial_rtt: entry.initial_rtt,
            rtt: None,
            answered_at: None,
            proceeded: false,
            fell_back: false,
            short_hello: entry.short_hello,
            long_hello_failure: None,
            state: AttemptState::UnderWay(purpose),
        };
        self.launch(attempt, purpose);
    }

    /// Starts an attempt now, under the next number.
    pub(super) fn launch(&mut self, attempt: RaceAttempt, purpose: AttemptPurpose) {
        debug_assert!(self.may_start(), "started an attempt beyond the limit");
        let Ok(number) = u32::try_from(self.attempts.len()) else { return };
        let attempt = RaceAttempt {
            id: AttemptId(number),
            started: self.now,
            level: EvidenceLevel::Started,
            progress_at: self.now,
            rtt: None,
            answered_at: None,
            proceeded: false,
            fell_back: false,
            long_hello_failure: None,
            state: AttemptState::UnderWay(purpose),
            ..attempt
        };
        self.outbox.push_back(RaceOutput::Start {
            id: attempt.id,
            candidate: attempt.candidate.clone(),
            initial_rtt: attempt.initial_rtt,
            background: attempt.background,
        });
        self.slots.acquire();
        self.attempts.push(attempt);
    }

    /// Returns whether this candidate is to be tried. One that was closed by a change of network is
    /// tried anew, and so is one that lost to an attempt that failed after all.
    pub(super) fn candidate_state(&self, candidate: &Candidate) -> CandidateState {
        let is_open = self.stage == RaceStage::Racing;
        let tries = self.attempts[self.first_on_network..]
            .iter()
            .filter(|attempt| attempt.candidate.is_same_attempt(candidate));
        let mut state = CandidateState::Untried;
        for attempt in tries {
            match attempt.state {
                AttemptState::Closed { why: CloseReason::MadeRoom, at, .. } => {
                    state = CandidateState::MadeRoom((at, attempt.id));
                }
                AttemptState::Closed {
                    why: CloseReason::Lost | CloseReason::BudgetSpent, ..
                } if is_open => {}
                _ => return CandidateState::Spent,
            }
        }
        state
    }

    /// Returns whether this attempt made room and its candidate waits for another turn.
    pub(super) fn waits_for_a_turn(&self, attempt: &RaceAttempt) -> bool {
        let AttemptState::Closed { at, .. } = attempt.state else { return false };
        self.candidate_state(&attempt.candidate) == CandidateState::MadeRoom((at, attempt.id))
    }
}

/// Whether a candidate is to be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CandidateState {
    /// It has not been tried.
    Untried,
    /// Its last attempt, this one, made room for another at this time.
    MadeRoom((Duration, AttemptId)),
    /// It has been tried, and is not tried again.
    Spent,
}
