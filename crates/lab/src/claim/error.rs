//! Why a claim of a plan cannot be judged.

use eyas_emulator::units::ParseAmountError;

use super::expression::SeriesFunction;
use crate::measure::ParseMeasureError;

/// The error of parsing an expression.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExpressionError {
    /// There is more after a complete expression.
    #[error("unexpected input {0:?}")]
    Rest(String),
    /// A character is missing.
    #[error("expected {wanted:?} before {rest:?}")]
    Missing {
        /// The character.
        wanted: char,
        /// What is there instead.
        rest: String,
    },
    /// More brackets are open than any claim needs.
    #[error("brackets are nested too deeply")]
    Depth,
    /// Digits and dots that are no number.
    #[error("{0:?} is not a number")]
    Number(String),
    /// There is nothing to calculate with.
    #[error("expected a number, a measure or a function before {0:?}")]
    Operand(String),
    /// There is no such function.
    #[error("{0:?} is not a function; functions are {names}", names = SeriesFunction::ALL.map(|entry| entry.0).join(", "))]
    UnknownFunction(String),
    /// A function has too few or too many arguments.
    #[error("{function} does not take {count} arguments")]
    Arguments {
        /// Its name.
        function: String,
        /// The number of arguments.
        count: usize,
    },
    /// There is no such measure.
    #[error(transparent)]
    Measure(#[from] ParseMeasureError),
    /// The brackets after a measure do not have as many parts as the plan needs.
    #[error("expected {measure}{form}, not [{found}]")]
    Form {
        /// The measure.
        measure: String,
        /// The form of the brackets.
        form: &'static str,
        /// What is inside them.
        found: String,
    },
    /// The plan has no such scene.
    #[error("there is no scene {0:?}")]
    UnknownScene(String),
    /// The plan has no such curve.
    #[error("there is no curve {0:?}")]
    UnknownCurve(String),
    /// A place on the axis is neither a number nor an amount.
    #[error(transparent)]
    Amount(#[from] ParseAmountError),
    /// No place on the axis is given.
    #[error("expected a place on the axis")]
    NoPlace,
}

/// The error of reading a claim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("claim {id:?}: {reason}")]
pub(crate) struct ClaimError {
    pub(super) id: String,
    pub(super) reason: ClaimErrorReason,
}

/// What is invalid in a claim.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum ClaimErrorReason {
    #[error("no check has bounds: at_least, at_most, above, below")]
    NoBounds,
    #[error("{value}: {cause}")]
    Expression { value: String, cause: ExpressionError },
    #[error("{0}: the maximum of a series has an interval only by itself")]
    NoInterval(String),
}
