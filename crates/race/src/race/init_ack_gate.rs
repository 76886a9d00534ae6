//! Attempts that wait at the peer's first answer.
//!
//! Until the COOKIE ECHO, an association costs the peer nothing (RFC 9260 §5.1). So an SCTP attempt
//! stops at the INIT ACK, and proceeds only while it can still be useful.

use core::time::Duration;

use super::{AttemptPurpose, Race, RaceAttempt};
use crate::io::RaceOutput;

impl Race {
    /// Returns when a waiting attempt may proceed: now, if there is one.
    pub(super) fn next_proceed(&self) -> Option<Duration> {
        self.attempts.iter().any(|attempt| self.may_proceed(attempt)).then_some(self.now)
    }

    /// Lets the answered attempts proceed that can still be useful.
    pub(super) fn proceed_answered(&mut self) {
        for index in 0..self.attempts.len() {
            if self.may_proceed(&self.attempts[index]) {
                let attempt = &mut self.attempts[index];
                attempt.proceeded = true;
                self.outbox.push_back(RaceOutput::Proceed { id: attempt.id });
            }
        }
    }

    fn may_proceed(&self, attempt: &RaceAttempt) -> bool {
        let waits = attempt.candidate.transport.waits_when_answered()
            && attempt.is_answered()
            && !attempt.proceeded;
        waits
            && match attempt.purpose() {
                // It has ended, or the first answer was all it had to show.
                None | Some(AttemptPurpose::Silence(_)) => false,
                Some(AttemptPurpose::Win) => !self.has_lost_already(attempt),
                Some(
                    AttemptPurpose::Upgrade(_)
                    | AttemptPurpose::Retest(_)
                    | AttemptPurpose::Evidence(_),
                ) => true,
            }
    }

    /// Returns whether an attempt of at least the same preference is complete and waits only for
    /// more preferred ones.
    fn has_lost_already(&self, attempt: &RaceAttempt) -> bool {
        !self.setup.policy.exhaustive
            && self.attempts.iter().any(|other| {
                other.awaiting_decision_since().is_some() && self.rank(other) <= self.rank(attempt)
            })
    }
}
