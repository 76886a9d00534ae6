//! Claims: the statements of a publication, as numbers that a run must reproduce.
//!
//! | file | purpose |
//! | --- | --- |
//! | `mod` | claims and their verdicts |
//! | `basis` | the points that claims are about |
//! | `error` | why a claim cannot be judged |
//! | `expression` | the expressions to be evaluated |
//! | `judged` | which points claims are judged by |
//! | `parser` | parsing expressions |
//! | `read` | access to measurements |
//! | `trials` | expressions over the trials of live runs |
//! | `verdict` | outcomes of claims and checks |

mod basis;
mod error;
mod expression;
mod judged;
mod parser;
mod read;
mod trials;
mod verdict;

#[cfg(test)]
mod tests;

use serde::{Deserialize, Serialize};

use crate::run::RunResults;
use crate::situation::SituationGrid;
use crate::statistics::{ConfidenceInterval, SampleSummary};
use error::{ClaimError, ClaimErrorReason};

pub(crate) use basis::JudgingBasis;
pub use error::ExpressionError;
pub(crate) use expression::ClaimExpression;
pub(crate) use judged::JudgedPoints;
pub(crate) use trials::summaries;
pub(crate) use verdict::IntervalEstimate;
pub use verdict::{CheckVerdict, ClaimOutcome, ClaimVerdict};

/// A claim as a plan writes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaimText {
    id: String,
    text: String,
    published: String,
    #[serde(default)]
    note: String,
    check: Vec<CheckText>,
}

/// A check as a plan writes it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CheckText {
    value: String,
    #[serde(default)]
    about: String,
    #[serde(default)]
    unit: String,
    at_least: Option<f64>,
    at_most: Option<f64>,
    above: Option<f64>,
    below: Option<f64>,
    /// The first bound, and why it was changed.
    #[serde(default)]
    changed: String,
}

impl CheckText {
    fn bounds(&self) -> CheckBounds {
        let Self { at_least, at_most, above, below, .. } = *self;
        CheckBounds { at_least, at_most, above, below }
    }
}

/// A claim and its checks.
#[derive(Clone, Debug, PartialEq)]
pub struct Claim {
    /// The identifier, unique in the plan.
    pub id: String,
    /// The claim.
    pub text: String,
    /// The published number or statement.
    pub published: String,
    /// A note for readers, such as why something does not reproduce.
    pub note: String,
    /// The checks, which must all hold.
    pub checks: Vec<ClaimCheck>,
}

/// A number and its bounds.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimCheck {
    /// The expression as text.
    pub text: String,
    /// A description.
    pub about: String,
    /// The unit.
    pub unit: String,
    /// The parsed expression.
    pub(crate) value: ClaimExpression,
    /// The bounds of the mean over the runs.
    pub bounds: CheckBounds,
}

/// The bounds of a number. Without bounds it is shown but not judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct CheckBounds {
    /// The inclusive minimum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_least: Option<f64>,
    /// The inclusive maximum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at_most: Option<f64>,
    /// The exclusive minimum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub above: Option<f64>,
    /// The exclusive maximum.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub below: Option<f64>,
}

impl CheckBounds {
    /// Returns whether a number is within the bounds.
    #[must_use]
    pub fn contains(&self, number: f64) -> bool {
        self.at_least.is_none_or(|bound| number >= bound)
            && self.at_most.is_none_or(|bound| number <= bound)
            && self.above.is_none_or(|bound| number > bound)
            && self.below.is_none_or(|bound| number < bound)
    }

    /// Returns whether no number in this range is within the bounds.
    fn exclude(&self, low: f64, high: f64) -> bool {
        self.at_least.is_some_and(|bound| high < bound)
            || self.above.is_some_and(|bound| high <= bound)
            || self.at_most.is_some_and(|bound| low > bound)
            || self.below.is_some_and(|bound| low >= bound)
    }

    /// Returns whether there are no bounds.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Returns the bounds as text: `≥ 19`, `19 to 19.4`, `< 3`.
    #[must_use]
    pub fn describe(&self) -> String {
        match (self.at_least, self.at_most) {
            (Some(low), Some(high)) => return format!("{low} to {high}"),
            (Some(low), None) if self.below.is_none() => return format!("≥ {low}"),
            (None, Some(high)) if self.above.is_none() => return format!("≤ {high}"),
            _ => {}
        }
        let parts = [
            self.at_least.map(|bound| format!("≥ {bound}")),
            self.above.map(|bound| format!("> {bound}")),
            self.at_most.map(|bound| format!("≤ {bound}")),
            self.below.map(|bound| format!("< {bound}")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(" and ")
    }
}

/// Evaluates an expression over live points, with its uncertainty, whether they are judged or not;
/// `None` if something was not measured.
pub(crate) fn estimate(
    value: &ClaimExpression,
    basis: JudgingBasis<'_>,
    results: &RunResults,
) -> Option<(f64, Option<ConfidenceInterval>)> {
    let everything = JudgingBasis { judged: &[], ..basis };
    trials::measure(value, everything, results).map(|estimate| (estimate.value, estimate.interval))
}

impl Claim {
    pub(crate) fn parse(text: ClaimText, grid: &SituationGrid) -> Result<Self, ClaimError> {
        let refused = |reason| ClaimError { id: text.id.clone(), reason };
        let judged = text.check.iter().any(|check| !check.bounds().is_empty());
        if !judged {
            return Err(refused(ClaimErrorReason::NoBounds));
        }
        let check = |check: &CheckText| {
            let value = ClaimExpression::parse(&check.value, grid).map_err(|cause| {
                refused(ClaimErrorReason::Expression { value: check.value.clone(), cause })
            })?;
            if !value.has_interval() {
                return Err(refused(ClaimErrorReason::NoInterval(check.value.clone())));
            }
            Ok(ClaimCheck {
                text: check.value.clone(),
                about: check.about.clone(),
                unit: check.unit.clone(),
                value,
                bounds: check.bounds(),
            })
        };
        let checks = text.check.iter().map(check).collect::<Result<_, ClaimError>>()?;
        let changed: Vec<&str> = text.check.iter().map(|check| check.changed.as_str()).collect();
        let changed = changed.into_iter().filter(|changed| !changed.is_empty());
        let changed: String =
            changed.map(|changed| format!(" The first bound was {changed}.")).collect();
        let note = format!("{}{changed}", text.note).trim_start().to_owned();
        let ClaimText { id, text, published, .. } = text;
        Ok(Self { id, text, published, note, checks })
    }

    /// Judges the claim.
    pub(crate) fn judge(&self, basis: JudgingBasis<'_>, results: &RunResults) -> ClaimVerdict {
        let checks: Vec<_> = self.checks.iter().map(|check| check.judge(basis, results)).collect();
        ClaimVerdict {
            id: self.id.clone(),
            text: self.text.clone(),
            published: self.published.clone(),
            measured: checks.first().and_then(|check| check.measured),
            interval: checks.first().and_then(|check| check.interval),
            outcome: ClaimOutcome::of_all(&checks),
            note: self.note.clone(),
            checks,
        }
    }
}

impl ClaimCheck {
    fn judge(&self, basis: JudgingBasis<'_>, results: &RunResults) -> CheckVerdict {
        let estimate = if basis.grid.is_pooled() {
            trials::measure(&self.value, basis, results)
        } else {
            self.over_runs(basis, results)
        };
        let outcome = match self.bounds.judge(estimate) {
            // A shorter run has not shown what a claim about the whole one needs.
            ClaimOutcome::Refused if basis.shortened => ClaimOutcome::NotJudged,
            ClaimOutcome::NotMeasured if self.is_excluded(basis, results) => {
                ClaimOutcome::NotJudged
            }
            outcome => outcome,
        };
        CheckVerdict {
            value: self.text.clone(),
            about: self.about.clone(),
            unit: self.unit.clone(),
            accept: self.bounds,
            measured: estimate.map(|estimate| estimate.value),
            interval: estimate.and_then(|estimate| estimate.interval),
            outcome,
        }
    }

    /// Returns whether it was measured, but only at points that are not judged.
    fn is_excluded(&self, basis: JudgingBasis<'_>, results: &RunResults) -> bool {
        let everything = JudgingBasis { judged: &[], ..basis };
        !basis.judged.is_empty() && trials::measure(&self.value, everything, results).is_some()
    }

    /// Evaluates the expression for each run and returns the mean.
    fn over_runs(&self, basis: JudgingBasis<'_>, results: &RunResults) -> Option<IntervalEstimate> {
        let samples: Option<Vec<f64>> = (0..basis.grid.runs as usize)
            .map(|run| {
                let read = |point: &str, measure: &_| basis.value(results, point, measure, run);
                self.value.evaluate(basis, &read)?.single()
            })
            .collect();
        let SampleSummary { value, interval, .. } = SampleSummary::from_samples(&samples?)?;
        Some(IntervalEstimate { value, interval })
    }
}
