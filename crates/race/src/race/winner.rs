//! Decides which attempt wins, which one is better, and what happens to the others.

use core::time::Duration;

use super::{AttemptPurpose, AttemptState, Race, RaceAttempt, RaceStage};
use crate::evidence::EvidenceLevel;
use crate::io::{AttemptId, CloseReason, RaceOutput};
use crate::policy::LoserPolicy;

impl Race {
    /// Returns when an attempt wins or is elected, unless something happens first.
    pub(super) fn next_win(&self) -> Option<Duration> {
        if !matches!(self.stage, RaceStage::Racing | RaceStage::Elected(_)) {
            return None;
        }
        if self.winner().is_some() || self.elect().is_some() {
            return Some(self.now);
        }
        self.hold_until()
    }

    /// Declares the winner or elects an attempt, and settles the others.
    pub(super) fn declare_winner(&mut self) {
        if let Some(id) = self.winner() {
            self.win(id);
        } else if let Some(id) = self.elect() {
            self.stage = RaceStage::Elected(id);
            self.settle_losers(id);
        }
    }

    /// Returns the complete attempt that wins now, unless it must wait for a more preferred one.
    fn winner(&self) -> Option<AttemptId> {
        if self.setup.policy.exhaustive {
            return if self.everything_ended() { self.fastest_of_most_preferred() } else { None };
        }
        let best = self.contenders().min_by_key(|attempt| self.preference(attempt))?;
        let waits = self.hold_until().is_some_and(|until| self.now < until);
        (!waits).then_some(best.id)
    }

    /// Returns the winner of an exhaustive race.
    pub(super) fn fastest_of_most_preferred(&self) -> Option<AttemptId> {
        let best = self.contenders().min_by_key(|attempt| {
            let handshake = attempt.ended().unwrap_or_default().saturating_sub(attempt.started);
            (self.rank(attempt), handshake, attempt.id)
        })?;
        Some(best.id)
    }

    /// Returns the attempt in progress that has reached the policy's level, if that is below the
    /// level of a complete connection.
    fn elect(&self) -> Option<AttemptId> {
        if self.stage != RaceStage::Racing || self.setup.policy.exhaustive {
            return None;
        }
        let reached_win_level = || {
            let here = self.attempts[self.first_on_network..].iter();
            here.filter(|attempt| attempt.level >= self.setup.policy.win_at)
        };
        // Once such an attempt has failed or stalled, the level proves nothing on this network.
        let failed_or_stalled = |attempt: &RaceAttempt| {
            attempt.failure().is_some()
                || attempt.completion().is_none() && self.stalled_at(attempt) <= self.now
        };
        if reached_win_level().any(failed_or_stalled) {
            return None;
        }
        let under_way = reached_win_level().filter(|attempt| attempt.is_under_way());
        Some(under_way.min_by_key(|attempt| (self.rank(attempt), attempt.id))?.id)
    }

    /// Returns when the elected attempt, if there is one, counts as stalled and the race is open
    /// again.
    pub(super) fn election_end(&self) -> Option<Duration> {
        let RaceStage::Elected(id) = self.stage else { return None };
        Some(self.stalled_at(&self.attempts[index(id)]))
    }

    /// Returns when an attempt counts as stalled. An elected one must keep making progress, or a
    /// server that accepts and stays silent would keep every other candidate from being tried.
    fn stalled_at(&self, attempt: &RaceAttempt) -> Duration {
        attempt.progress_at.saturating_add(self.setup.policy.attempt_delay_max)
    }

    /// Returns the complete attempts that reached the level at which the policy lets them win.
    pub(super) fn contenders(&self) -> impl Iterator<Item = &RaceAttempt> {
        self.attempts.iter().filter(|attempt| {
            attempt.awaiting_decision_since().is_some()
                && attempt.level >= self.level_to_win(attempt)
        })
    }

    /// Returns the level at which this attempt wins: without security, a complete connection
    /// suffices.
    fn level_to_win(&self, attempt: &RaceAttempt) -> EvidenceLevel {
        match self.setup.policy.win_at {
            level @ (EvidenceLevel::FirstByte | EvidenceLevel::FullPacket) => level,
            level => level.min(attempt.complete_at()),
        }
    }

    /// Returns when the first of the undecided complete attempts completed.
    pub(super) fn first_complete(&self) -> Option<Duration> {
        if self.setup.policy.exhaustive {
            return None;
        }
        self.contenders().filter_map(RaceAttempt::awaiting_decision_since).min()
    }

    /// Returns until when the best complete attempt waits for a more preferred one in progress.
    pub(super) fn hold_until(&self) -> Option<Duration> {
        if matches!(self.stage, RaceStage::Won { .. } | RaceStage::Over) {
            return None;
        }
        let first = self.first_complete()?;
        let best = self.contenders().map(|attempt| self.rank(attempt)).min()?;
        let is_more_preferred = |attempt: &RaceAttempt| {
            attempt.purpose() == Some(AttemptPurpose::Win) && self.rank(attempt) < best
        };
        let until = first.saturating_add(self.setup.policy.grace);
        self.attempts.iter().any(is_more_preferred).then_some(until)
    }

    /// Returns the rank of an attempt's transport; smaller is more preferred.
    pub(super) fn rank(&self, attempt: &RaceAttempt) -> usize {
        self.setup.policy.rank(attempt.transport()).unwrap_or(usize::MAX)
    }

    fn preference(&self, attempt: &RaceAttempt) -> (usize, Option<Duration>, AttemptId) {
        (self.rank(attempt), attempt.awaiting_decision_since(), attempt.id)
    }

    /// Makes this attempt the winner.
    pub(super) fn win(&mut self, id: AttemptId) {
        debug_assert!(
            matches!(self.stage, RaceStage::Racing | RaceStage::Elected(_)),
            "the race already has a winner"
        );
        let attempt = self.attempt_mut(id);
        debug_assert!(attempt.awaiting_decision_since().is_some(), "the winner is not complete");
        if let AttemptState::Complete(completion) = &attempt.state {
            attempt.state = AttemptState::Usable(completion.clone());
        }
        self.outbox.push_back(RaceOutput::Usable(id));
        self.stage = RaceStage::Won { at: self.now, best: id };
        self.settle_losers(id);
    }

    /// Decides what happens to all other attempts after this one won.
    fn settle_losers(&mut self, winner: AttemptId) {
        let policy = &self.setup.policy;
        let (late_switch, losers) = (policy.late_switch && !policy.exhaustive, policy.losers);
        let late_until = self.now.saturating_add(policy.late_switch_for);
        let best = self.rank(&self.attempts[index(winner)]);
        self.heard_level = match self.attempts[index(winner)].level {
            EvidenceLevel::FirstByte | EvidenceLevel::FullPacket => EvidenceLevel::FirstByte,
            _ => EvidenceLevel::Answered,
        };
        for loser in 0..self.attempts.len() {
            let attempt = &self.attempts[loser];
            if attempt.id == winner {
                continue;
            }
            let is_more_preferred = late_switch && self.rank(attempt) < best;
            // Another attempt at the candidate of the winner provides no more evidence.
            let is_superseded = self.is_superseded(attempt)
                || attempt.candidate.is_same_attempt(&self.attempts[index(winner)].candidate);
            match (&attempt.state, losers) {
                (AttemptState::UnderWay(AttemptPurpose::Win), _) if is_more_preferred => {
                    self.attempts[loser].state =
                        AttemptState::UnderWay(AttemptPurpose::Upgrade(late_until));
                }
                (AttemptState::UnderWay(AttemptPurpose::Win), LoserPolicy::Cancel)
                    if late_switch
                        && loser < index(winner)
                        && !self.is_heard(attempt)
                        && !is_superseded =>
                {
                    self.attempts[loser].state =
                        AttemptState::UnderWay(AttemptPurpose::Silence(late_until));
                }
                (AttemptState::UnderWay(AttemptPurpose::Win), LoserPolicy::Finish(budget)) => {
                    let until = self.now.saturating_add(budget);
                    self.attempts[loser].state =
                        AttemptState::UnderWay(AttemptPurpose::Evidence(until));
                }
                (AttemptState::UnderWay(AttemptPurpose::Win) | AttemptState::Complete(_), _) => {
                    self.close(loser, CloseReason::Lost);
                }
                _ => {}
            }
        }
    }

    /// Returns when an attempt that completed after the win can be passed on or closed: now, if
    /// there is one.
    pub(super) fn next_upgrade(&self) -> Option<Duration> {
        let RaceStage::Won { best, .. } = self.stage else { return None };
        let best_rank = self.rank(&self.attempts[index(best)]);
        let is_any = self.attempts.iter().any(|attempt| self.is_redundant(attempt, best_rank));
        is_any.then_some(self.now)
    }

    /// Returns whether an attempt is of no more use beside a connection of this rank.
    fn is_redundant(&self, attempt: &RaceAttempt, best_rank: usize) -> bool {
        match attempt.state {
            AttemptState::Complete(_) => true,
            AttemptState::UnderWay(AttemptPurpose::Upgrade(_)) => self.rank(attempt) >= best_rank,
            AttemptState::UnderWay(AttemptPurpose::Silence(_)) => self.is_heard(attempt),
            _ => false,
        }
    }

    /// Processes what completed after the win: the most preferred becomes `Better`, the others
    /// lose.
    pub(super) fn upgrade(&mut self) {
        let RaceStage::Won { at, best } = self.stage else { return };
        let best_rank = self.rank(&self.attempts[index(best)]);
        let most_preferred = self
            .contenders()
            .min_by_key(|attempt| self.preference(attempt))
            .filter(|attempt| self.setup.policy.late_switch && self.rank(attempt) < best_rank)
            .map(|attempt| attempt.id);
        if let Some(id) = most_preferred {
            let attempt = self.attempt_mut(id);
            if let AttemptState::Complete(completion) = &attempt.state {
                attempt.state = AttemptState::Better(completion.clone());
            }
            self.outbox.push_back(RaceOutput::Better(id));
            self.stage = RaceStage::Won { at, best: id };
        }
        let best_rank = most_preferred.map_or(best_rank, |id| self.rank(&self.attempts[index(id)]));
        for loser in 0..self.attempts.len() {
            if self.is_redundant(&self.attempts[loser], best_rank) {
                self.close(loser, CloseReason::Lost);
            }
        }
    }

    /// Closes an attempt that is in progress or complete but undecided.
    pub(super) fn close(&mut self, index: usize, why: CloseReason) {
        let at = self.now;
        let attempt = &mut self.attempts[index];
        let completed = attempt.awaiting_decision_since();
        debug_assert!(attempt.is_under_way() || completed.is_some(), "closed twice");
        attempt.state = AttemptState::Closed { at, why, completed };
        self.outbox.push_back(RaceOutput::Close { id: attempt.id, why });
    }

    fn attempt_mut(&mut self, id: AttemptId) -> &mut RaceAttempt {
        &mut self.attempts[index(id)]
    }
}

/// Returns the index of an attempt in the list of attempts, for numbers assigned by the race
/// itself.
pub(super) const fn index(id: AttemptId) -> usize {
    id.0 as usize
}
