//! Attempts that run beside a connection that already works.

use core::time::Duration;

use super::winner::index;
use super::{AttemptPurpose, Race, RaceAttempt, RaceStage};
use crate::candidate::Transport;
use crate::memory::MemoryVerdict;
use crate::policy::ATTEMPT_DELAY_FLOOR;

/// The maximum number of background attempts per race. The others are left to the next race.
pub const MAX_BACKGROUND: usize = 4;

impl Race {
    /// Starts the background attempt that is due.
    pub(super) fn start_background(&mut self) {
        let Some(entry) =
            self.next_in_background().and_then(|(_, index)| self.waiting.remove(index))
        else {
            return;
        };
        let until = self.now.saturating_add(self.setup.policy.late_switch_for);
        self.start(entry, AttemptPurpose::Retest(until));
    }

    /// Returns when the next background attempt is due; `None` if there is none. A driver that is
    /// about to end learns more if it waits for it.
    pub fn next_background_start(&self) -> Option<Duration> {
        let (due, _) = self.next_in_background()?;
        (due < self.deadline()).then_some(due)
    }

    /// Returns when the next candidate is due beside the winner, and its index in the waiting list.
    /// Candidates without a back-off come first, in the order of the plan, then those that have
    /// been due for longest. In any other order the first few, failing again in each race, would
    /// keep the rest from ever being tried. The last background attempt is reserved for a candidate
    /// that could replace the winner, if there is one: it may have to wait longer, and no retest
    /// may take its turn.
    fn next_in_background(&self) -> Option<(Duration, usize)> {
        let RaceStage::Won { at, best } = self.stage else { return None };
        let policy = &self.setup.policy;
        if self.waiting.is_empty() || policy.exhaustive || !self.may_start() {
            return None;
        }
        let left = MAX_BACKGROUND.checked_sub(self.started_in_background().count())?;
        let earliest = self.background_pace(at).max(self.now);
        let best_rank = self.rank(&self.attempts[index(best)]);
        let due = self.waiting.iter().enumerate().filter_map(|(index, waiting)| {
            let entry = &self.plan.entries[waiting];
            let transport = entry.candidate.transport;
            let verdict = self.setup.view.verdict(&entry.candidate, self.planned_at);
            let upgrade = policy.rank(transport).filter(|rank| {
                let may_work =
                    matches!(verdict, MemoryVerdict::Good { .. } | MemoryVerdict::Unknown);
                policy.late_switch && *rank < best_rank && may_work && !entry.retest
            });
            let due = match upgrade {
                Some(_) => earliest.max(self.patience_end(transport)),
                None if entry.retest => earliest,
                None => return None,
            };
            Some((upgrade.unwrap_or(usize::MAX), due, verdict.due_since(), index))
        });
        let next = match left {
            0 => None,
            1 => due.min(),
            _ => due.min_by_key(|(_, due, since, index)| (*due, *since, *index)),
        };
        next.map(|(_, due, _, index)| (due, index))
    }

    fn started_in_background(&self) -> impl DoubleEndedIterator<Item = &RaceAttempt> {
        self.attempts.iter().filter(|attempt| attempt.background)
    }

    /// Returns the earliest time at which the next background attempt may start.
    fn background_pace(&self, won_at: Duration) -> Duration {
        let after = |attempt: Option<&RaceAttempt>, delay: Duration| {
            attempt.map_or(won_at, |attempt| attempt.started.saturating_add(delay))
        };
        let after_last = after(self.attempts.last(), ATTEMPT_DELAY_FLOOR);
        let last = self.started_in_background().next_back();
        won_at.max(after_last).max(after(last, self.setup.policy.attempt_delay))
    }

    /// Returns when every attempt in progress over this transport has been without progress for so
    /// long that another attempt over it is worthwhile.
    fn patience_end(&self, transport: Transport) -> Duration {
        let patience = self.setup.policy.late_switch_for;
        self.attempts
            .iter()
            .filter(|attempt| attempt.is_under_way() && attempt.candidate.transport == transport)
            .map(|attempt| attempt.progress_at.saturating_add(patience))
            .max()
            .unwrap_or_default()
    }

    pub(super) fn runs(&self, which: impl Fn(&RaceAttempt) -> bool) -> bool {
        self.attempts.iter().any(|attempt| attempt.is_under_way() && which(attempt))
    }
}
