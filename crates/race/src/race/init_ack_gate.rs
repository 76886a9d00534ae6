//! Attempts that wait at the peer's first answer.
//!
//! Until the COOKIE ECHO, an association costs the peer nothing (RFC 9260 §5.1). So an SCTP attempt
//! stops at the INIT ACK, and proceeds only while it can still be useful.

use core::time::Duration;

use super::{Attempt, Purpose, Race};
use crate::io::Output;

impl Race {
    /// When an attempt may go on that waits: now, if there is one.
    pub(super) fn next_proceed(&self) -> Option<Duration> {
        self.attempts.iter().any(|attempt| self.may_proceed(attempt)).then_some(self.now)
    }

    /// Lets go on what has been answered and may still be of use.
    pub(super) fn let_proceed(&mut self) {
        for index in 0..self.attempts.len() {
            if self.may_proceed(&self.attempts[index]) {
                let attempt = &mut self.attempts[index];
                attempt.proceeded = true;
                self.outbox.push_back(Output::Proceed { id: attempt.id });
            }
        }
    }

    fn may_proceed(&self, attempt: &Attempt) -> bool {
        let waits = attempt.candidate.transport.waits_when_answered()
            && attempt.is_answered()
            && !attempt.proceeded;
        waits
            && match attempt.purpose() {
                // The first answer was all that it was to show, or it has ended.
                None | Some(Purpose::Silence(_)) => false,
                Some(Purpose::Win) => !self.has_lost_already(attempt),
                Some(Purpose::Upgrade(_) | Purpose::Retest(_) | Purpose::Evidence(_)) => true,
            }
    }

    /// Whether something at least as wanted is complete, and waits only for what is wanted more.
    fn has_lost_already(&self, attempt: &Attempt) -> bool {
        !self.setup.policy.exhaustive
            && self.attempts.iter().any(|other| {
                other.awaiting_verdict_since().is_some() && self.rank(other) <= self.rank(attempt)
            })
    }
}
