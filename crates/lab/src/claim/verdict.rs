//! The outcomes of claims and their checks.

use serde::{Deserialize, Serialize};

use super::CheckBounds;
use crate::statistics::ConfidenceInterval;

/// The outcome of a claim or a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ClaimOutcome {
    /// The whole interval is within the bounds. With a single run, which has no interval, the
    /// number is.
    Accepted,
    /// The interval is entirely outside the bounds.
    Refused,
    /// The interval spans a bound: more runs or trials would decide it.
    Undecided,
    /// Something that it needs was not measured, for example with `--quick`.
    NotMeasured,
    /// What was measured says nothing about it: the machine was busy, or the run was too short to
    /// refuse it.
    NotJudged,
    /// It has no bounds: it is shown but not judged.
    ShownOnly,
}

impl ClaimOutcome {
    /// Returns a description.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::Undecided => "undecided",
            Self::NotMeasured => "not measured",
            Self::NotJudged => "not judged",
            Self::ShownOnly => "shown only",
        }
    }

    /// Returns the outcome of a claim with these checks, which must all hold.
    pub(super) fn of_all(checks: &[CheckVerdict]) -> Self {
        let any = |outcome| checks.iter().any(|check| check.outcome == outcome);
        let order = [Self::Refused, Self::NotMeasured, Self::NotJudged, Self::Undecided];
        order.into_iter().find(|outcome| any(*outcome)).unwrap_or(Self::Accepted)
    }
}

/// A number and its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct IntervalEstimate {
    /// The mean over the runs, or the value over all trials.
    pub(crate) value: f64,
    /// `None` with a single run or trial.
    pub(crate) interval: Option<ConfidenceInterval>,
}

impl CheckBounds {
    /// Judges a number by its interval.
    pub(crate) fn judge(&self, estimate: Option<IntervalEstimate>) -> ClaimOutcome {
        let Some(IntervalEstimate { value, interval }) = estimate else {
            return ClaimOutcome::NotMeasured;
        };
        if self.is_empty() {
            return ClaimOutcome::ShownOnly;
        }
        let Some(ConfidenceInterval { low, high, .. }) = interval else {
            return if self.contains(value) {
                ClaimOutcome::Accepted
            } else {
                ClaimOutcome::Refused
            };
        };
        if self.contains(low) && self.contains(high) {
            ClaimOutcome::Accepted
        } else if self.exclude(low, high) {
            ClaimOutcome::Refused
        } else {
            ClaimOutcome::Undecided
        }
    }
}

/// The verdict about a claim.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClaimVerdict {
    /// The identifier of the claim.
    pub id: String,
    /// The claim.
    pub text: String,
    /// The published number or statement.
    pub published: String,
    /// The value of the first check; null if it was not measured.
    pub measured: Option<f64>,
    /// Its 95 % confidence interval; null with a single run.
    pub interval: Option<ConfidenceInterval>,
    /// The outcome.
    pub outcome: ClaimOutcome,
    /// A note for readers.
    pub note: String,
    /// The verdicts of the checks.
    pub checks: Vec<CheckVerdict>,
}

/// The verdict about a check.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CheckVerdict {
    /// The expression.
    pub value: String,
    /// A description.
    pub about: String,
    /// The unit.
    pub unit: String,
    /// The bounds.
    pub accept: CheckBounds,
    /// The value; null if it was not measured.
    pub measured: Option<f64>,
    /// Its 95 % confidence interval; null with a single run.
    pub interval: Option<ConfidenceInterval>,
    /// The outcome.
    pub outcome: ClaimOutcome,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::statistics::IntervalMethod;

    fn judged(bounds: CheckBounds, low: f64, value: f64, high: f64) -> ClaimOutcome {
        let interval = Some(ConfidenceInterval { low, high, method: IntervalMethod::StudentT });
        bounds.judge(Some(IntervalEstimate { value, interval }))
    }

    #[test]
    fn an_interval_that_spans_a_bound_decides_nothing() {
        let at_most = CheckBounds { at_most: Some(1.05), ..CheckBounds::default() };
        assert_eq!(judged(at_most, 0.9, 1.0, 1.05), ClaimOutcome::Accepted);
        assert_eq!(judged(at_most, 0.9, 1.0, 1.1), ClaimOutcome::Undecided);
        assert_eq!(judged(at_most, 1.0, 1.06, 1.1), ClaimOutcome::Undecided);
        assert_eq!(judged(at_most, 1.06, 1.07, 1.1), ClaimOutcome::Refused);
    }

    #[test]
    fn an_interval_wider_than_what_is_accepted_decides_nothing() {
        let between =
            CheckBounds { at_least: Some(19.0), at_most: Some(19.4), ..CheckBounds::default() };
        assert_eq!(judged(between, 18.0, 19.2, 20.0), ClaimOutcome::Undecided);
        assert_eq!(judged(between, 18.0, 18.5, 20.0), ClaimOutcome::Undecided);
        assert_eq!(judged(between, 19.5, 19.6, 20.0), ClaimOutcome::Refused);
    }

    #[test]
    fn without_an_interval_the_number_decides() {
        let above = CheckBounds { above: Some(3.0), ..CheckBounds::default() };
        let alone = |value| above.judge(Some(IntervalEstimate { value, interval: None }));
        assert_eq!((alone(3.0), alone(3.1)), (ClaimOutcome::Refused, ClaimOutcome::Accepted));
        assert_eq!(above.judge(None), ClaimOutcome::NotMeasured);
        assert_eq!(judged(CheckBounds::default(), 1.0, 2.0, 3.0), ClaimOutcome::ShownOnly);
    }

    #[test]
    fn a_claim_is_as_good_as_its_worst_check() {
        let check = |outcome| CheckVerdict {
            value: String::new(),
            about: String::new(),
            unit: String::new(),
            accept: CheckBounds::default(),
            measured: None,
            interval: None,
            outcome,
        };
        let of = |outcomes: &[ClaimOutcome]| {
            ClaimOutcome::of_all(
                &outcomes.iter().map(|outcome| check(*outcome)).collect::<Vec<_>>(),
            )
        };
        use ClaimOutcome::{Accepted, NotJudged, NotMeasured, Refused, ShownOnly, Undecided};
        assert_eq!(of(&[Accepted, ShownOnly]), Accepted);
        assert_eq!(of(&[Accepted, Undecided]), Undecided);
        assert_eq!(of(&[NotJudged, Undecided, Accepted]), NotJudged);
        assert_eq!(of(&[NotMeasured, NotJudged, Undecided]), NotMeasured);
        assert_eq!(of(&[NotMeasured, Refused, Accepted]), Refused);
    }
}
