//! The decisions that a race makes by itself, and when each is due: one table, used both to decide
//! and to compute the next timeout.
//!
//! A rule is due at a time that follows from the state of the race: now if the decision can be made
//! at once, later if it depends only on time, and never if it cannot occur. [`Race::decide`]
//! applies the first due rule of the table until none is due; the earliest of the remaining times
//! is when the race must be polled again. So no decision can be due without a timer, however many
//! others it followed from.

use core::time::Duration;

use super::{Race, RaceStage};

/// The maximum number of decisions at one instant. Each one starts, ends, passes on or continues an
/// attempt, or processes a DNS answer, and none undoes another, so a race stays far below.
const MAX_DECISIONS: usize = 10_000;

/// A decision of the race.
struct RaceRule {
    /// Returns when it is due in the current state; `None` if time alone does not make it due.
    due: fn(&Race) -> Option<Duration>,
    /// Makes the decision. Afterwards the rule is no longer due at this instant, unless it applies
    /// again.
    apply: fn(&mut Race),
}

/// Rules due at the same instant apply in this order: complete attempts win before any is given up,
/// attempts that ended make room before others start, and the end comes last.
const RULES: [RaceRule; 12] = [
    RaceRule { due: Race::election_end, apply: Race::reopen },
    RaceRule { due: Race::next_lookup, apply: Race::look_up },
    RaceRule { due: Race::next_win, apply: Race::declare_winner },
    RaceRule { due: Race::next_upgrade, apply: Race::upgrade },
    RaceRule { due: Race::next_budget_end, apply: Race::end_budgets },
    RaceRule { due: Race::next_give_up, apply: Race::give_up_beside_refusals },
    RaceRule { due: Race::next_deadline, apply: Race::apply_deadline },
    RaceRule { due: Race::next_proceed, apply: Race::proceed_answered },
    RaceRule { due: Race::next_start, apply: Race::start_due },
    RaceRule { due: Race::next_second_try, apply: Race::start_second_try },
    RaceRule { due: Race::next_background_start, apply: Race::start_background },
    RaceRule { due: Race::next_end, apply: Race::finish },
];

impl Race {
    /// Makes every decision that is due at this instant, and returns when the next one is due
    /// without an input.
    pub(super) fn decide(&mut self) -> Option<Duration> {
        for _ in 0..MAX_DECISIONS {
            if self.stage == RaceStage::Over {
                return None;
            }
            match self.first_due() {
                Ok(rule) => (rule.apply)(self),
                Err(next) => return next,
            }
        }
        debug_assert!(false, "endless sequence of decisions at one instant");
        None
    }

    /// Returns the first rule that is due now; otherwise the time at which one will be.
    fn first_due(&self) -> Result<&'static RaceRule, Option<Duration>> {
        let mut next: Option<Duration> = None;
        for rule in &RULES {
            match (rule.due)(self) {
                Some(due) if due <= self.now => return Ok(rule),
                Some(due) => next = Some(next.map_or(due, |earliest| earliest.min(due))),
                None => {}
            }
        }
        Err(next)
    }
}
