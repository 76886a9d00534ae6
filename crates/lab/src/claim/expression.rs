//! The expressions of claims: measures at points or along curves, and simple arithmetic.

use super::basis::JudgingBasis;
use super::read::ReadMeasure;
use crate::measure::Measure;
use crate::situation::{GridPoint, SituationGrid};
use crate::statistics::{RegressionLine, TrialStatistic};

/// An expression over one run of every point.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ClaimExpression {
    /// A number.
    Number(f64),
    /// `measure[scene, curve, where]`.
    Read {
        /// The measure.
        measure: Measure,
        /// The scene; empty if the plan has none.
        scene: String,
        /// The curve.
        curve: String,
        /// The place on the axis.
        span: AxisSpan,
    },
    /// A binary operation.
    Binary(BinaryOperator, Box<ClaimExpression>, Box<ClaimExpression>),
    /// A function call.
    Call(SeriesFunction, Vec<ClaimExpression>),
}

/// A place on the axis, in the unit of the axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum AxisSpan {
    /// One value: the result is a number.
    At(f64),
    /// The largest value of the curve: the result is a number.
    Largest,
    /// An inclusive range: the result is a series.
    Between(f64, f64),
}

/// A binary operator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BinaryOperator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
}

impl BinaryOperator {
    fn apply(self, left: f64, right: f64) -> f64 {
        match self {
            Self::Add => left + right,
            Self::Subtract => left - right,
            Self::Multiply => left * right,
            Self::Divide => left / right,
        }
    }
}

/// The functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SeriesFunction {
    /// `least(a)`: the smallest number of a series.
    Least,
    /// `most(a)`: the largest number of a series.
    Most,
    /// `mean(a)`: the mean of a series.
    Mean,
    /// `slope(a)`: the slope of the regression line through a series, per unit of the axis.
    Slope,
    /// `r2(a)`: the coefficient of determination of that line.
    R2,
    /// `reach(a, b)`: the first place on the axis where a is at least b; infinite if there is none.
    Reach,
    /// `min(a, b, …)`: the smaller one, place by place.
    Min,
    /// `max(a, b, …)`: the larger one, place by place.
    Max,
    /// `abs(a)`: the absolute value.
    Abs,
}

impl SeriesFunction {
    /// Every function with its name and its minimum and maximum number of arguments.
    pub(super) const ALL: [(&'static str, Self, usize, usize); 9] = [
        ("least", Self::Least, 1, 1),
        ("most", Self::Most, 1, 1),
        ("mean", Self::Mean, 1, 1),
        ("slope", Self::Slope, 1, 1),
        ("r2", Self::R2, 1, 1),
        ("reach", Self::Reach, 2, 2),
        ("min", Self::Min, 2, 16),
        ("max", Self::Max, 2, 16),
        ("abs", Self::Abs, 1, 1),
    ];
}

/// Numbers along the axis, or a single number.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct AxisSeries {
    /// The places; empty for a single number.
    pub xs: Vec<f64>,
    /// The numbers; `None` where the point is not judged (`[[judged]]` of the plan).
    pub ys: Vec<Option<f64>>,
}

impl AxisSeries {
    /// Creates a single number.
    #[must_use]
    pub(crate) fn number(y: f64) -> Self {
        Self { xs: Vec::new(), ys: vec![Some(y)] }
    }

    /// Returns the number if it is a single one.
    #[must_use]
    pub(crate) fn single(&self) -> Option<f64> {
        match self.ys.as_slice() {
            [number] => *number,
            _ => None,
        }
    }

    /// Returns the places that are judged.
    fn judged(&self) -> (Vec<f64>, Vec<f64>) {
        let pairs = self.xs.iter().zip(&self.ys);
        pairs.filter_map(|(x, y)| Some((*x, (*y)?))).unzip()
    }

    /// Combines two series place by place. A single number is combined with every place; a place
    /// that is not judged on one side is not judged in the result. Returns `None` if the places
    /// differ.
    fn combined(&self, other: &Self, act: impl Fn(f64, f64) -> f64) -> Option<Self> {
        let (xs, count) = match (self.xs.is_empty(), other.xs.is_empty()) {
            (true, true) => (Vec::new(), 1),
            (false, true) => (self.xs.clone(), self.ys.len()),
            (true, false) => (other.xs.clone(), other.ys.len()),
            (false, false) if self.xs == other.xs => (self.xs.clone(), self.ys.len()),
            (false, false) => return None,
        };
        let at = |series: &Self, index: usize| match series.xs.is_empty() {
            true => series.ys[0],
            false => series.ys[index],
        };
        Some(Self {
            xs,
            ys: (0..count).map(|index| Some(act(at(self, index)?, at(other, index)?))).collect(),
        })
    }
}

impl ClaimExpression {
    /// Evaluates the expression; `None` if something was not measured.
    pub(crate) fn evaluate(
        &self,
        basis: JudgingBasis<'_>,
        read: &ReadMeasure<'_>,
    ) -> Option<AxisSeries> {
        match self {
            Self::Number(number) => Some(AxisSeries::number(*number)),
            Self::Read { measure, scene, curve, span } => {
                let points: Vec<&GridPoint> = basis.grid.points_of_curve(scene, curve).collect();
                series(&points, *span, &|point| {
                    let number = read(&point.id, measure)?;
                    let mut rules = basis.judged.iter().filter(|rule| rule.is_about(measure));
                    let counts = rules.try_fold(true, |counts, rule| {
                        Some(rule.counts(&point.id, read)? && counts)
                    });
                    Some(counts?.then_some(number))
                })
            }
            Self::Binary(operator, left, right) => {
                let (left, right) = (left.evaluate(basis, read)?, right.evaluate(basis, read)?);
                left.combined(&right, |left, right| operator.apply(left, right))
            }
            Self::Call(function, arguments) => {
                let arguments: Vec<AxisSeries> = arguments
                    .iter()
                    .map(|argument| argument.evaluate(basis, read))
                    .collect::<Option<_>>()?;
                call(*function, &arguments)
            }
        }
    }
}

impl ClaimExpression {
    /// Returns the measure that it reads, if it is a single number of a single point.
    pub(super) fn only_read(&self) -> Option<&Measure> {
        let mut reads = Vec::new();
        self.collect_reads(&mut reads);
        match reads.as_slice() {
            [Self::Read { measure, span: AxisSpan::At(_) | AxisSpan::Largest, .. }] => {
                Some(measure)
            }
            _ => None,
        }
    }

    /// Returns whether an interval of it can be computed: the maximum of a series of trials must be
    /// all that it reads.
    pub(super) fn has_interval(&self) -> bool {
        let is_maximum =
            |measure: &Measure| matches!(measure, Measure::Column(TrialStatistic::MostOf(_), _));
        !self.reads(is_maximum) || self.only_read().is_some()
    }

    /// Returns whether it reads a measure that satisfies this condition.
    pub(super) fn reads(&self, condition: fn(&Measure) -> bool) -> bool {
        let mut reads = Vec::new();
        self.collect_reads(&mut reads);
        let satisfies =
            |read: &&Self| matches!(read, Self::Read { measure, .. } if condition(measure));
        reads.iter().any(satisfies)
    }

    /// Calls a function for each measure of each point that it reads.
    pub(super) fn for_each_read<'a>(
        &'a self,
        grid: &'a SituationGrid,
        show: &mut dyn FnMut(&'a GridPoint, &Measure),
    ) {
        let mut reads = Vec::new();
        self.collect_reads(&mut reads);
        for read in reads {
            let Self::Read { measure, scene, curve, .. } = read else { continue };
            grid.points_of_curve(scene, curve).for_each(|point| show(point, measure));
        }
    }

    fn collect_reads<'a>(&'a self, reads: &mut Vec<&'a Self>) {
        match self {
            Self::Number(_) => {}
            Self::Read { .. } => reads.push(self),
            Self::Binary(_, left, right) => {
                left.collect_reads(reads);
                right.collect_reads(reads);
            }
            Self::Call(_, arguments) => {
                arguments.iter().for_each(|argument| argument.collect_reads(reads));
            }
        }
    }
}

/// Outer `None`: not measured; inner `None`: not judged.
type ReadPoint<'a> = dyn Fn(&GridPoint) -> Option<Option<f64>> + 'a;

fn series(points: &[&GridPoint], span: AxisSpan, read: &ReadPoint<'_>) -> Option<AxisSeries> {
    let single = |point: &GridPoint| Some(AxisSeries { xs: Vec::new(), ys: vec![read(point)?] });
    let same = |x: f64, wanted: f64| (x - wanted).abs() <= wanted.abs() * 1e-9;
    match span {
        AxisSpan::At(x) => {
            let point = points.iter().find(|point| same(point.x, x))?;
            single(point)
        }
        AxisSpan::Largest => single(points.last()?),
        AxisSpan::Between(low, high) => {
            let inside = points.iter().filter(|point| (low..=high).contains(&point.x));
            let pairs: Vec<(f64, Option<f64>)> =
                inside.map(|point| Some((point.x, read(point)?))).collect::<Option<_>>()?;
            let (xs, ys) = pairs.into_iter().unzip::<_, _, Vec<_>, Vec<_>>();
            (!xs.is_empty()).then_some(AxisSeries { xs, ys })
        }
    }
}

fn call(function: SeriesFunction, arguments: &[AxisSeries]) -> Option<AxisSeries> {
    let first = arguments.first()?;
    let numbers = || first.ys.iter().flatten().copied();
    let line = || {
        let (xs, ys) = first.judged();
        RegressionLine::fit(&xs, &ys)
    };
    let number = match function {
        SeriesFunction::Least => numbers().reduce(f64::min)?,
        SeriesFunction::Most => numbers().reduce(f64::max)?,
        SeriesFunction::Mean => {
            let count = numbers().count();
            (count > 0).then(|| numbers().sum::<f64>() / count as f64)?
        }
        SeriesFunction::Slope => line()?.slope,
        SeriesFunction::R2 => line()?.r_squared,
        SeriesFunction::Reach => {
            let level = arguments.get(1)?.single()?;
            let index = first.ys.iter().position(|y| y.is_some_and(|y| y >= level));
            index.and_then(|index| first.xs.get(index)).copied().unwrap_or(f64::INFINITY)
        }
        SeriesFunction::Min => return combine(arguments, f64::min),
        SeriesFunction::Max => return combine(arguments, f64::max),
        SeriesFunction::Abs => {
            let ys = first.ys.iter().map(|y| y.map(f64::abs)).collect();
            return Some(AxisSeries { xs: first.xs.clone(), ys });
        }
    };
    Some(AxisSeries::number(number))
}

fn combine(arguments: &[AxisSeries], act: fn(f64, f64) -> f64) -> Option<AxisSeries> {
    let (first, rest) = arguments.split_first()?;
    rest.iter().try_fold(first.clone(), |so_far, next| so_far.combined(next, act))
}
