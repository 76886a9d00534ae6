//! Starts that changed DNS answers bring forward (HEv3 §7).
//!
//! > While a DNS update alone does not justify rescheduling the timer, if at least one connection
//! > attempt started before the DNS update has not made progress within an expected time window,
//! > the client MAY treat this as a signal that the previous addresses may no longer be viable and
//! > fire the timer sooner to start a connection attempt to the next address in the updated list,
//! > subject to the Minimum Connection Attempt Delay.
//!
//! The expected window is one round trip to the host with a margin, where that is known. Otherwise
//! it is how long second tries wait for an unknown host, which follows from the distance of others
//! on this network; without any history it is as long as the Connection Attempt Delay, and nothing
//! is brought forward. But an attempt whose address the update has withdrawn has to answer within
//! the minimum delay.

use core::time::Duration;

use super::{AttemptState, Race, RaceAttempt};
use crate::plan::{PlanEntry, RTT_MARGIN};
use crate::reason::{PlanReason, ReasonKind};

/// A start that changed answers bring forward.
pub(super) struct EarlyStart {
    pub(super) at: Duration,
    /// When the attempt was started that should have been answered by then.
    silent_since: Duration,
}

impl Race {
    /// Returns the early start of this entry, the next one after the attempt `last`, if there is
    /// one.
    pub(super) fn early_start(&self, last: &RaceAttempt, entry: &PlanEntry) -> Option<EarlyStart> {
        // Only the timer that was running at the update is rescheduled.
        let updated_at = self.next_address_since.filter(|updated| last.started < *updated)?;
        let here = &self.attempts[self.first_on_network..];
        let ip = entry.candidate.address.ip();
        let is_tried = here.iter().any(|attempt| attempt.candidate.address.ip() == ip);
        let makes_progress =
            here.iter().any(|attempt| attempt.is_under_way() && attempt.is_answered());
        let has_failed = matches!(last.state, AttemptState::Failed { .. });
        if is_tried || makes_progress || has_failed || self.setup.policy.exhaustive {
            return None;
        }
        let (window_end, silent_since) = here
            .iter()
            .filter(|attempt| attempt.is_under_way() && attempt.started < updated_at)
            .map(|attempt| {
                (attempt.started.saturating_add(self.answer_window(attempt)), attempt.started)
            })
            .min()?;
        let min = last.started.saturating_add(self.setup.policy.attempt_delay_min);
        Some(EarlyStart { at: window_end.max(updated_at).max(min), silent_since })
    }

    /// Returns within which time this attempt is expected to be answered.
    fn answer_window(&self, attempt: &RaceAttempt) -> Duration {
        let ip = attempt.candidate.address.ip();
        let is_listed = || self.plan.entries.iter().any(|entry| entry.candidate.address.ip() == ip);
        match self.heard_from_host(attempt).rtt {
            Some(rtt) => rtt.saturating_add(RTT_MARGIN),
            None if is_listed() => self.plan.second_try_delay,
            None => self.setup.policy.attempt_delay_min,
        }
    }

    /// Returns why the next entry starts now, if it is not due yet without changed answers.
    pub(super) fn early_start_reason(&self) -> Option<PlanReason> {
        let entry = &self.plan.entries[self.waiting.next()?];
        let last = self.last_first_try()?;
        let early = self.early_start(last, entry)?;
        let after = self.now.saturating_sub(early.silent_since);
        let is_early = early.at <= self.now && self.due_after(last, entry) > self.now;
        is_early.then_some(PlanReason(ReasonKind::AnswersChanged { after }))
    }
}
