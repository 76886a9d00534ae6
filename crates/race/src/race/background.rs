//! What runs beside a connection that already works.

use core::time::Duration;

use super::crown::index;
use super::{Attempt, Purpose, Race, Stage};
use crate::candidate::Transport;
use crate::memory::Verdict;
use crate::policy::ATTEMPT_DELAY_FLOOR;

/// The most attempts that one race starts in the background. What is left over has its turn in
/// the next race.
pub const MAX_BACKGROUND: usize = 4;

impl Race {
    /// Starts what is due in the background.
    pub(super) fn start_background(&mut self) {
        let Some(entry) =
            self.next_in_background().and_then(|(_, place)| self.waiting.remove(place))
        else {
            return;
        };
        let until = self.now.saturating_add(self.setup.policy.late_switch_for);
        self.start(entry, Purpose::Retest(until));
    }

    /// When the next attempt beside the winner is due; `None` if none is. A driver that is about to
    /// end learns more if it waits for it.
    pub fn next_background_start(&self) -> Option<Duration> {
        let (due, _) = self.next_in_background()?;
        (due < self.deadline()).then_some(due)
    }

    /// When something is to be tried beside the winner, and its place in the waiting list. Of
    /// several: what waited for no back-off in the order of the plan, then what has been due for
    /// longest. In any other order the first few, failing again in each race, would keep the rest
    /// from ever being tried.
    fn next_in_background(&self) -> Option<(Duration, usize)> {
        let Stage::Won { at, best } = self.stage else { return None };
        let policy = &self.setup.policy;
        if self.waiting.is_empty() || policy.exhaustive || !self.may_start() {
            return None;
        }
        let paced = self.background_pace(at)?.max(self.now);
        let standing = self.rank(&self.attempts[index(best)]);
        let due = self.waiting.iter().enumerate().filter_map(|(place, waiting)| {
            let entry = &self.plan.entries[*waiting];
            let transport = entry.candidate.transport;
            let verdict = self.setup.view.verdict(&entry.candidate, self.planned_at);
            let could_upgrade = policy.late_switch
                && policy.rank(transport).is_some_and(|rank| rank < standing)
                && matches!(verdict, Verdict::Good { .. } | Verdict::Unknown);
            let due = if entry.retest {
                paced
            } else if could_upgrade {
                paced.max(self.patience_end(transport))
            } else {
                return None;
            };
            Some((due, verdict.due_since(), place))
        });
        due.min().map(|(due, _, place)| (due, place))
    }

    /// When the next attempt in the background may start at the earliest; `None` once there were
    /// enough of them.
    fn background_pace(&self, won_at: Duration) -> Option<Duration> {
        let mut started = self.attempts.iter().filter(|attempt| attempt.background);
        if started.clone().count() >= MAX_BACKGROUND {
            return None;
        }
        let after = |attempt: Option<&Attempt>, delay: Duration| {
            attempt.map_or(won_at, |one| one.started.saturating_add(delay))
        };
        let after_last = after(self.attempts.last(), ATTEMPT_DELAY_FLOOR);
        Some(
            won_at.max(after_last).max(after(started.next_back(), self.setup.policy.attempt_delay)),
        )
    }

    /// When everything under way over this transport has gone on for so long without progress that
    /// the next attempt over it is worth a try.
    fn patience_end(&self, transport: Transport) -> Duration {
        let patience = self.setup.policy.late_switch_for;
        self.attempts
            .iter()
            .filter(|attempt| attempt.is_under_way() && attempt.candidate.transport == transport)
            .map(|attempt| attempt.progress_at.saturating_add(patience))
            .max()
            .unwrap_or_default()
    }

    pub(super) fn runs(&self, which: impl Fn(&Attempt) -> bool) -> bool {
        self.attempts.iter().any(|attempt| attempt.is_under_way() && which(attempt))
    }
}
