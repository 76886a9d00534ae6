//! Invariants that hold whenever a race has nothing more to decide, for property tests and fuzzers.

use super::{AttemptState, Race, RaceStage};

impl Race {
    /// Checks them in builds with debug assertions.
    pub(super) fn assert_invariants(&self) {
        debug_assert!(
            self.in_flight() <= self.setup.policy.max_in_flight.max(1),
            "more attempts in flight than the policy allows"
        );
        debug_assert!(
            self.waiting.iter().all(|entry| entry < self.plan.entries.len()),
            "a waiting candidate is not in the plan"
        );
        debug_assert_eq!(
            self.waiting.has_untried(),
            self.waiting
                .next()
                .is_some_and(|next| self.turns_of(&self.plan.entries[next].candidate) == 0),
            "the next candidate has had a turn, or one that had none is not next"
        );
        let usable = || {
            self.attempts.iter().filter(|attempt| matches!(attempt.state, AttemptState::Usable(_)))
        };
        let better =
            || self.attempts.iter().any(|attempt| matches!(attempt.state, AttemptState::Better(_)));
        match self.stage {
            RaceStage::Racing => {
                debug_assert!(usable().next().is_none(), "a winner while racing")
            }
            RaceStage::Elected(id) => debug_assert!(
                usable().next().is_none()
                    && self.attempt(id).is_some_and(|attempt| attempt.is_under_way()),
                "the elected attempt has ended"
            ),
            RaceStage::Won { best, .. } => debug_assert!(
                usable().count() == 1
                    && self.attempt(best).is_some_and(|attempt| match attempt.state {
                        AttemptState::Usable(_) => !better(),
                        AttemptState::Better(_) => true,
                        _ => false,
                    }),
                "the best attempt is neither the winner nor a later upgrade"
            ),
            RaceStage::Over => debug_assert!(
                usable().count() <= 1 && self.in_flight() == 0,
                "attempts are in progress after the end of the race"
            ),
        }
    }
}
