//! What runs beside a connection that already works.

use core::time::Duration;

use super::crown::index;
use super::{Attempt, Purpose, Race, Stage};
use crate::memory::Verdict;
use crate::policy::ATTEMPT_DELAY_FLOOR;

/// The most attempts that one race starts in the background. What is left over has its turn in
/// the next race.
pub const MAX_BACKGROUND: usize = 4;

impl Race {
    /// Starts what is due in the background.
    pub(super) fn start_background(&mut self) {
        while self.next_background_start().is_some_and(|due| due <= self.now) {
            let Some(position) = self.next_in_background() else { return };
            let Some(entry) = self.waiting.remove(position) else { return };
            let until = self.now.saturating_add(self.setup.policy.late_switch_for);
            self.start(entry, Purpose::Retest(until));
        }
    }

    /// When the next attempt beside the winner is due; `None` if none is. A driver that is about to
    /// end learns more if it waits for it.
    pub fn next_background_start(&self) -> Option<Duration> {
        let Stage::Won { at, .. } = self.stage else { return None };
        let started = || self.attempts.iter().filter(|attempt| attempt.background);
        if !self.may_start() || started().count() >= MAX_BACKGROUND {
            return None;
        }
        self.next_in_background()?;
        let after_last = self
            .attempts
            .last()
            .map_or(at, |last| last.started.saturating_add(ATTEMPT_DELAY_FLOOR));
        let paced = started()
            .next_back()
            .map_or(at, |last| last.started.saturating_add(self.setup.policy.attempt_delay));
        let due = at.max(after_last).max(paced);
        (self.now.max(due) < self.deadline()).then_some(due)
    }

    /// The place in the waiting list of what is to be tried beside the winner: what waited for no
    /// back-off in the order of the plan, then what has been due for longest. In any other order
    /// the first few, failing again in each race, would keep the rest from ever being tried.
    fn next_in_background(&self) -> Option<usize> {
        let Stage::Won { best, .. } = self.stage else { return None };
        let policy = &self.setup.policy;
        if policy.exhaustive {
            return None;
        }
        let standing = self.rank(&self.attempts[index(best)]);
        let due = self.waiting.iter().enumerate().filter_map(|(place, waiting)| {
            let entry = &self.plan.entries[*waiting];
            let transport = entry.candidate.transport;
            let verdict = self.setup.view.verdict(&entry.candidate, self.now);
            let could_upgrade = policy.late_switch
                && policy.rank(transport).is_some_and(|rank| rank < standing)
                && !self.runs(|attempt| {
                    attempt.candidate.transport == transport
                        && self.now < self.patience_end(attempt)
                })
                && matches!(verdict, Verdict::Good { .. } | Verdict::Unknown);
            (entry.retest || could_upgrade).then(|| (verdict.due_since(), place))
        });
        due.min().map(|(_, place)| place)
    }

    /// When an attempt has gone on for so long without progress that the next one of its transport
    /// is worth a try.
    fn patience_end(&self, attempt: &Attempt) -> Duration {
        attempt.progress_at.saturating_add(self.setup.policy.late_switch_for)
    }

    /// When the next attempt loses the patience that keeps others from the background.
    pub(super) fn next_patience_end(&self) -> Option<Duration> {
        if !matches!(self.stage, Stage::Won { .. }) || self.waiting.is_empty() {
            return None;
        }
        let running = self.attempts.iter().filter(|attempt| attempt.is_under_way());
        running.map(|attempt| self.patience_end(attempt)).filter(|end| *end > self.now).min()
    }

    pub(super) fn runs(&self, which: impl Fn(&Attempt) -> bool) -> bool {
        self.attempts.iter().any(|attempt| attempt.is_under_way() && which(attempt))
    }
}
