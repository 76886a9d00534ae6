//! The decisions that a race makes by itself, and when each is due: one table, used both to decide
//! and to compute the next timeout.
//!
//! A rule is due at a time that follows from the state of the race: now if the decision can be made
//! at once, later if it depends only on time, and never if it cannot occur. [`Race::decide`]
//! applies the first due rule of the table until none is due; the earliest of the remaining times
//! is when the race must be polled again. So no decision can be due without a timer, however many
//! others it followed from.

use core::time::Duration;

use super::{Race, Stage};

/// Decisions of one instant. Each one starts, ends, hands over or lets go on an attempt, or takes in
/// what DNS said, and none undoes another, so a race stays far below.
const MAX_DECISIONS: usize = 10_000;

/// One thing that a race decides.
struct Rule {
    /// When it is due, as things stand; `None` if time alone does not bring it about.
    due: fn(&Race) -> Option<Duration>,
    /// Decides. Afterwards it is not due at this instant any more, unless there is more of it.
    apply: fn(&mut Race),
}

/// Those of one instant apply in this order: what is complete wins before anything is given up,
/// what has come to its end makes room before anything starts, and the end comes last.
const RULES: [Rule; 12] = [
    Rule { due: Race::election_end, apply: Race::reopen },
    Rule { due: Race::next_lookup, apply: Race::look_up },
    Rule { due: Race::next_verdict, apply: Race::hand_over_winner },
    Rule { due: Race::next_upgrade, apply: Race::upgrade },
    Rule { due: Race::next_budget_end, apply: Race::end_budgets },
    Rule { due: Race::next_giving_up, apply: Race::give_up_on_refusing_hosts },
    Rule { due: Race::deadline_if_it_matters, apply: Race::meet_deadline },
    Rule { due: Race::next_proceed, apply: Race::let_proceed },
    Rule { due: Race::next_start, apply: Race::start_due },
    Rule { due: Race::next_second_try, apply: Race::start_second_try },
    Rule { due: Race::next_background_start, apply: Race::start_background },
    Rule { due: Race::next_end, apply: Race::finish },
];

impl Race {
    /// Decides everything that is due at this instant. Gives the time at which the next decision is
    /// due without an input.
    pub(super) fn decide(&mut self) -> Option<Duration> {
        for _ in 0..MAX_DECISIONS {
            if self.stage == Stage::Over {
                return None;
            }
            match self.first_due() {
                Ok(rule) => (rule.apply)(self),
                Err(next) => return next,
            }
        }
        debug_assert!(false, "decisions follow from each other without an end");
        None
    }

    /// The first rule that is due now; otherwise the time at which one will be.
    fn first_due(&self) -> Result<&'static Rule, Option<Duration>> {
        let mut next: Option<Duration> = None;
        for rule in &RULES {
            match (rule.due)(self) {
                Some(due) if due <= self.now => return Ok(rule),
                Some(due) => next = Some(next.map_or(due, |least| least.min(due))),
                None => {}
            }
        }
        Err(next)
    }
}
