//! Decides who wins, who is better, and what happens to the others.

use core::time::Duration;

use super::{Attempt, AttemptState, Purpose, Race, Stage};
use crate::evidence::Level;
use crate::io::{AttemptId, CloseReason, Output};
use crate::policy::Losers;

impl Race {
    /// When somebody wins or is elected, unless something happens first.
    pub(super) fn next_verdict(&self) -> Option<Duration> {
        if !matches!(self.stage, Stage::Racing | Stage::Elected(_)) {
            return None;
        }
        if self.winner().is_some() || self.elect().is_some() {
            return Some(self.now);
        }
        self.hold_until()
    }

    /// Hands over what has won, and decides over the others.
    pub(super) fn hand_over_winner(&mut self) {
        if let Some(id) = self.winner() {
            self.win(id);
        } else if let Some(id) = self.elect() {
            self.stage = Stage::Elected(id);
            self.settle_losers(id);
        }
    }

    /// The complete attempt that wins now, unless it is to wait for a more wanted one.
    fn winner(&self) -> Option<AttemptId> {
        if self.setup.policy.exhaustive {
            return if self.everything_ended() { self.quickest_of_the_most_wanted() } else { None };
        }
        let best = self.contenders().min_by_key(|attempt| self.wanted(attempt))?;
        let waits = self.hold_until().is_some_and(|until| self.now < until);
        (!waits).then_some(best.id)
    }

    /// The winner of an exhaustive race.
    pub(super) fn quickest_of_the_most_wanted(&self) -> Option<AttemptId> {
        let best = self.contenders().min_by_key(|attempt| {
            let handshake = attempt.ended().unwrap_or_default().saturating_sub(attempt.started);
            (self.rank(attempt), handshake, attempt.id)
        })?;
        Some(best.id)
    }

    /// The attempt under way that has come far enough to win, if the policy's level lies below
    /// that of a complete connection.
    fn elect(&self) -> Option<AttemptId> {
        if self.stage != Stage::Racing || self.setup.policy.exhaustive {
            return None;
        }
        let came_far = || {
            let here = self.attempts[self.first_here..].iter();
            here.filter(|attempt| attempt.level >= self.setup.policy.win_at)
        };
        // Once such an attempt has come to nothing, the level proves nothing here.
        let came_to_nothing = |attempt: &Attempt| {
            attempt.failure().is_some()
                || attempt.completion().is_none() && self.stalled_at(attempt) <= self.now
        };
        if came_far().any(came_to_nothing) {
            return None;
        }
        let under_way = came_far().filter(|attempt| attempt.is_under_way());
        Some(under_way.min_by_key(|attempt| (self.rank(attempt), attempt.id))?.id)
    }

    /// When the elected attempt, if there is one, counts as stalled, and the race is open again.
    pub(super) fn election_end(&self) -> Option<Duration> {
        let Stage::Elected(id) = self.stage else { return None };
        Some(self.stalled_at(&self.attempts[index(id)]))
    }

    /// What came far enough to be elected must go on making progress, or a server that accepts
    /// and stays silent would keep every other candidate from being tried.
    fn stalled_at(&self, attempt: &Attempt) -> Duration {
        attempt.progress_at.saturating_add(self.setup.policy.attempt_delay_max)
    }

    /// Complete attempts that came to the level at which the policy lets them win.
    pub(super) fn contenders(&self) -> impl Iterator<Item = &Attempt> {
        self.attempts.iter().filter(|attempt| {
            attempt.awaiting_verdict_since().is_some() && attempt.level >= self.needed(attempt)
        })
    }

    /// No level of security is waited for where there is none.
    fn needed(&self, attempt: &Attempt) -> Level {
        match self.setup.policy.win_at {
            level @ (Level::FirstByte | Level::FullPacket) => level,
            level => level.min(attempt.complete_at()),
        }
    }

    /// The complete attempt that has waited longest for the verdict.
    pub(super) fn first_complete(&self) -> Option<Duration> {
        if self.setup.policy.exhaustive {
            return None;
        }
        self.contenders().filter_map(Attempt::awaiting_verdict_since).min()
    }

    /// Until when the best complete attempt waits for a more wanted one that is under way.
    pub(super) fn hold_until(&self) -> Option<Duration> {
        if matches!(self.stage, Stage::Won { .. } | Stage::Over) {
            return None;
        }
        let first = self.first_complete()?;
        let best = self.contenders().map(|attempt| self.rank(attempt)).min()?;
        let is_wanted_more = |attempt: &Attempt| {
            attempt.purpose() == Some(Purpose::Win) && self.rank(attempt) < best
        };
        let until = first.saturating_add(self.setup.policy.grace);
        self.attempts.iter().any(is_wanted_more).then_some(until)
    }

    /// How much an attempt's transport is wanted; less is more.
    pub(super) fn rank(&self, attempt: &Attempt) -> usize {
        self.setup.policy.rank(attempt.transport()).unwrap_or(usize::MAX)
    }

    fn wanted(&self, attempt: &Attempt) -> (usize, Option<Duration>, AttemptId) {
        (self.rank(attempt), attempt.awaiting_verdict_since(), attempt.id)
    }

    /// Crowns this attempt.
    pub(super) fn win(&mut self, id: AttemptId) {
        debug_assert!(matches!(self.stage, Stage::Racing | Stage::Elected(_)), "two winners");
        let attempt = self.attempt_mut(id);
        debug_assert!(attempt.awaiting_verdict_since().is_some(), "what won is not complete");
        if let AttemptState::Complete(completion) = &attempt.state {
            attempt.state = AttemptState::Usable(completion.clone());
        }
        self.outbox.push_back(Output::Usable(id));
        self.stage = Stage::Won { at: self.now, best: id };
        self.settle_losers(id);
    }

    /// Decides over everything that this winner leaves behind.
    fn settle_losers(&mut self, winner: AttemptId) {
        let policy = &self.setup.policy;
        let (late_switch, losers) = (policy.late_switch && !policy.exhaustive, policy.losers);
        let late_until = self.now.saturating_add(policy.late_switch_for);
        let best = self.rank(&self.attempts[index(winner)]);
        self.heard_from = match self.attempts[index(winner)].level {
            Level::FirstByte | Level::FullPacket => Level::FirstByte,
            _ => Level::Answered,
        };
        for loser in 0..self.attempts.len() {
            let attempt = &self.attempts[loser];
            if attempt.id == winner {
                continue;
            }
            let is_wanted_more = late_switch && self.rank(attempt) < best;
            // What the winner has outdone at its own candidate has nothing more to show.
            let is_outdone = self.is_outdone(attempt)
                || attempt.candidate.is_same_attempt(&self.attempts[index(winner)].candidate);
            match (&attempt.state, losers) {
                (AttemptState::UnderWay(Purpose::Win), _) if is_wanted_more => {
                    self.attempts[loser].state =
                        AttemptState::UnderWay(Purpose::Upgrade(late_until));
                }
                (AttemptState::UnderWay(Purpose::Win), Losers::Cancel)
                    if late_switch
                        && loser < index(winner)
                        && !self.is_heard(attempt)
                        && !is_outdone =>
                {
                    self.attempts[loser].state =
                        AttemptState::UnderWay(Purpose::Silence(late_until));
                }
                (AttemptState::UnderWay(Purpose::Win), Losers::Finish(budget)) => {
                    let until = self.now.saturating_add(budget);
                    self.attempts[loser].state = AttemptState::UnderWay(Purpose::Evidence(until));
                }
                (AttemptState::UnderWay(Purpose::Win) | AttemptState::Complete(_), _) => {
                    self.close(loser, CloseReason::Lost);
                }
                _ => {}
            }
        }
    }

    /// When there is something to take in that completed after the win, or to close: now, if there
    /// is.
    pub(super) fn next_upgrade(&self) -> Option<Duration> {
        let Stage::Won { best, .. } = self.stage else { return None };
        let standing = self.rank(&self.attempts[index(best)]);
        let is_any = self.attempts.iter().any(|attempt| self.is_pointless(attempt, standing));
        is_any.then_some(self.now)
    }

    /// Whether an attempt has nothing more to wait for beside a connection of this rank.
    fn is_pointless(&self, attempt: &Attempt, standing: usize) -> bool {
        match attempt.state {
            AttemptState::Complete(_) => true,
            AttemptState::UnderWay(Purpose::Upgrade(_)) => self.rank(attempt) >= standing,
            AttemptState::UnderWay(Purpose::Silence(_)) => self.is_heard(attempt),
            _ => false,
        }
    }

    /// Takes what completed after the win: the most wanted becomes `Better`, the rest lose.
    pub(super) fn upgrade(&mut self) {
        let Stage::Won { at, best } = self.stage else { return };
        let standing = self.rank(&self.attempts[index(best)]);
        let most_wanted = self
            .contenders()
            .min_by_key(|attempt| self.wanted(attempt))
            .filter(|attempt| self.setup.policy.late_switch && self.rank(attempt) < standing)
            .map(|attempt| attempt.id);
        if let Some(id) = most_wanted {
            let attempt = self.attempt_mut(id);
            if let AttemptState::Complete(completion) = &attempt.state {
                attempt.state = AttemptState::Better(completion.clone());
            }
            self.outbox.push_back(Output::Better(id));
            self.stage = Stage::Won { at, best: id };
        }
        let standing = most_wanted.map_or(standing, |id| self.rank(&self.attempts[index(id)]));
        for loser in 0..self.attempts.len() {
            if self.is_pointless(&self.attempts[loser], standing) {
                self.close(loser, CloseReason::Lost);
            }
        }
    }

    /// Closes an attempt that is under way or waits for the verdict.
    pub(super) fn close(&mut self, index: usize, why: CloseReason) {
        let at = self.now;
        let attempt = &mut self.attempts[index];
        let completed = attempt.awaiting_verdict_since();
        debug_assert!(attempt.is_under_way() || completed.is_some(), "closed twice");
        attempt.state = AttemptState::Closed { at, why, completed };
        self.outbox.push_back(Output::Close { id: attempt.id, why });
    }

    fn attempt_mut(&mut self, id: AttemptId) -> &mut Attempt {
        &mut self.attempts[index(id)]
    }
}

/// An attempt's place in the list of attempts. Only for numbers that the race itself gave.
pub(super) const fn index(id: AttemptId) -> usize {
    id.0 as usize
}
