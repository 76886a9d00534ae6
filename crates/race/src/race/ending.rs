//! How a race ends: by its deadline, its budgets, the caller, the network, or because nothing is
//! left to do.

use alloc::{sync::Arc, vec::Vec};
use core::time::Duration;

use super::{AttemptPurpose, AttemptState, Race, RaceAttempt, RaceStage, WaitingEntries};
use crate::candidate::Candidate;
use crate::evidence::{AttemptFailure, FailureCause};
use crate::io::{CloseReason, NetworkChange, RaceFailure, RaceOutput};
use crate::plan::Plan;

impl Race {
    /// Returns the deadline of the race.
    pub(super) fn deadline(&self) -> Duration {
        self.started_at.saturating_add(self.setup.policy.deadline)
    }

    /// Returns the deadline, unless the race is won and has nothing in progress that it would end.
    pub(super) fn next_deadline(&self) -> Option<Duration> {
        let is_won = matches!(self.stage, RaceStage::Won { .. });
        (!is_won || self.runs(|_| true)).then(|| self.deadline())
    }

    /// Returns whether DNS answers still matter.
    pub(super) fn reads_dns(&self) -> bool {
        match self.stage {
            RaceStage::Racing | RaceStage::Elected(_) => true,
            RaceStage::Won { at, .. } => self.now < self.dns_end(at),
            RaceStage::Over => false,
        }
    }

    /// Returns until when the race stays open after the win for pending DNS answers.
    pub(super) fn dns_awaited_until(&self) -> Option<Duration> {
        let RaceStage::Won { at, .. } = self.stage else { return None };
        let until = self.dns_end(at);
        (self.now < until && !self.lookup.is_complete()).then_some(until)
    }

    fn dns_end(&self, won_at: Duration) -> Duration {
        won_at.saturating_add(self.setup.policy.dns_after_win).min(self.deadline())
    }

    /// Returns whether every candidate has been tried to its end.
    pub(super) fn everything_ended(&self) -> bool {
        self.lookup.is_complete() && self.waiting.is_empty() && !self.runs(|_| true)
    }

    /// Ends the attempts whose time to gather evidence after the win is over.
    pub(super) fn end_budgets(&mut self) {
        for index in 0..self.attempts.len() {
            let attempt = &self.attempts[index];
            if self.budget_end(attempt).is_none_or(|end| self.now < end) {
                continue;
            }
            if !matches!(attempt.purpose(), Some(AttemptPurpose::Evidence(_))) {
                self.learn_stalled(index);
            }
            self.close(index, CloseReason::BudgetSpent);
        }
    }

    pub(super) fn next_budget_end(&self) -> Option<Duration> {
        self.attempts.iter().filter_map(|attempt| self.budget_end(attempt)).min()
    }

    /// Returns when the time of this attempt after the win is over. An attempt that has been heard
    /// continues until the deadline, unless it only gathers evidence.
    fn budget_end(&self, attempt: &RaceAttempt) -> Option<Duration> {
        match attempt.purpose()? {
            AttemptPurpose::Evidence(end) => Some(end),
            AttemptPurpose::Upgrade(end)
            | AttemptPurpose::Retest(end)
            | AttemptPurpose::Silence(end) => (!self.is_heard(attempt)).then_some(end),
            AttemptPurpose::Win => None,
        }
    }

    /// Ends everything at the deadline.
    pub(super) fn apply_deadline(&mut self) {
        let is_won = matches!(self.stage, RaceStage::Won { .. });
        let best = if is_won { None } else { self.fastest_of_most_preferred() };
        let tried = if is_won || best.is_some() { None } else { Some(self.tried()) };
        for index in 0..self.attempts.len() {
            if self.attempts[index].is_under_way() {
                self.learn_stalled_if_long(index);
                self.close(index, CloseReason::Deadline);
            }
        }
        if let Some(best) = best {
            self.win(best);
        }
        if let Some(tried) = tried {
            // Complete attempts that did not reach the level required by the policy; their success
            // was learnt.
            self.close_all(CloseReason::Deadline);
            self.fail(match self.no_address() {
                Some(failure) if tried.is_empty() => failure,
                _ => RaceFailure::Deadline(tried),
            });
        }
    }

    /// Returns when the race ends because nothing is left that could happen.
    pub(super) fn next_end(&self) -> Option<Duration> {
        match self.stage {
            RaceStage::Won { .. } => {
                let continues = self.runs(|_| true) || self.next_background_start().is_some();
                (!continues).then(|| self.dns_awaited_until().unwrap_or(self.now))
            }
            RaceStage::Racing => {
                let is_undecided =
                    |attempt: &RaceAttempt| attempt.awaiting_decision_since().is_some();
                (self.everything_ended() && !self.attempts.iter().any(is_undecided))
                    .then_some(self.now)
            }
            RaceStage::Elected(_) | RaceStage::Over => None,
        }
    }

    /// Ends the race because nothing is left that could happen.
    pub(super) fn finish(&mut self) {
        if let RaceStage::Won { .. } = self.stage {
            self.end();
        } else {
            self.fail(self.failure_reason());
        }
    }

    fn failure_reason(&self) -> RaceFailure {
        let failed: Vec<_> = self
            .attempts
            .iter()
            .filter(|attempt| attempt.second_try_of.is_none())
            .filter_map(|attempt| Some((attempt.candidate.clone(), attempt.failure()?.clone())))
            .collect();
        // Without a network every attempt fails as unreachable, which is less specific.
        let nothing_reachable =
            failed.iter().all(|(_, failure)| failure.cause == FailureCause::Unreachable);
        if self.setup.network.is_offline() && nothing_reachable {
            return RaceFailure::NoNetwork;
        }
        if !failed.is_empty() {
            return RaceFailure::AllFailed(failed);
        }
        if !self.plan.dropped.is_empty() {
            return RaceFailure::NoCandidate;
        }
        self.no_address().unwrap_or(RaceFailure::NoCandidate)
    }

    fn no_address(&self) -> Option<RaceFailure> {
        let failures = self.lookup.failures();
        (!failures.is_empty()).then_some(RaceFailure::NoAddress(failures))
    }

    /// Returns the candidates that were tried, each with its failure if it failed.
    fn tried(&self) -> Vec<(Candidate, Option<AttemptFailure>)> {
        self.attempts
            .iter()
            .filter(|attempt| attempt.second_try_of.is_none())
            .filter(|attempt| match &attempt.state {
                AttemptState::Closed { .. } => self.waits_for_a_turn(attempt),
                _ => true,
            })
            .map(|attempt| (attempt.candidate.clone(), attempt.failure().cloned()))
            .collect()
    }

    /// Ends the race because the caller gave up, or needs nothing more.
    pub(super) fn cancel(&mut self) {
        for index in 0..self.attempts.len() {
            if self.is_silent_beside_winner(&self.attempts[index]) {
                self.learn_silent_so_far(index);
            }
        }
        if matches!(self.stage, RaceStage::Won { .. }) {
            self.close_all(CloseReason::Cancelled);
            self.end();
        } else {
            self.close_all(CloseReason::Cancelled);
            self.fail(RaceFailure::Cancelled);
        }
    }

    /// Starts anew on another network: the addresses of the attempts are gone, and DNS may answer
    /// differently. The deadline remains. A winner belongs to the caller and is not touched.
    pub(super) fn change_network(&mut self, change: NetworkChange) {
        let is_same = self.setup.network.id == change.network.id;
        let setup = Arc::make_mut(&mut self.setup);
        setup.network = change.network;
        setup.view = change.view;
        if is_same {
            return self.lookup.invalidate_plan();
        }
        self.close_all(CloseReason::NetworkChanged);
        match self.stage {
            RaceStage::Racing | RaceStage::Elected(_) => {
                self.stage = RaceStage::Racing;
                self.first_on_network = self.attempts.len();
                self.lookup.restart(&self.setup, self.now);
                self.plan = Plan::default();
                self.waiting = WaitingEntries::default();
            }
            RaceStage::Won { .. } => self.end(),
            RaceStage::Over => {}
        }
    }

    fn close_all(&mut self, why: CloseReason) {
        for index in 0..self.attempts.len() {
            let attempt = &self.attempts[index];
            if attempt.is_under_way() || attempt.awaiting_decision_since().is_some() {
                self.close(index, why);
            }
        }
    }

    fn fail(&mut self, failure: RaceFailure) {
        self.outbox.push_back(RaceOutput::Failed(failure));
        self.end();
    }

    fn end(&mut self) {
        self.outbox.push_back(RaceOutput::Finished);
        self.stage = RaceStage::Over;
    }
}
