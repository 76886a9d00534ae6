//! Expressions over the trials of live runs.
//!
//! A mean, a percentile or a maximum is that of all trials of a point together. The confidence
//! interval of a single share is Wilson's score interval, and that of the maximum of a series comes
//! from order statistics. That of anything else comes from the bootstrap (Efron 1979): the trials
//! are resampled with replacement, and the spread of the expression over the samples is its
//! interval. An extreme of all trials has none, because no sample exceeds it.

use std::collections::BTreeMap;

use super::basis::JudgingBasis;
use super::expression::{ClaimExpression, SeriesFunction};
use super::verdict::IntervalEstimate;
use crate::measure::Measure;
use crate::run::{RunResult, RunResults};
use crate::situation::{self, Situation, SituationGrid};
use crate::statistics::{
    ConfidenceInterval, DRAWS, IntervalMethod, SampleSummary, TrialStatistic, plausible_share,
    resample, seed_of,
};

/// Evaluates an expression, with its uncertainty; `None` if something was not measured.
pub(super) fn measure(
    value: &ClaimExpression,
    basis: JudgingBasis<'_>,
    results: &RunResults,
) -> Option<IntervalEstimate> {
    let pools = TrialPools::new(value, basis.grid, results);
    let measured = pools.evaluate(value, basis, TrialDraw::AsMeasured)?;
    let interval = pools.interval(value, measured, basis);
    Some(IntervalEstimate { value: measured, interval })
}

/// Computes every statistic of a column of trials that a report shows, with its interval, which is
/// the same as that of a claim that reads nothing else.
pub(crate) fn summaries(
    point: &str,
    column: &str,
    trials: &[f64],
    statistics: &[TrialStatistic],
) -> Vec<(TrialStatistic, SampleSummary)> {
    // Sorted once, because every percentile needs it.
    let redraw = |draw| {
        let mut trials = resample(trials, seed_of([point, column], draw));
        trials.sort_unstable_by(f64::total_cmp);
        trials
    };
    let redrawn: Vec<Vec<f64>> = match trials.len() {
        0 | 1 => Vec::new(),
        _ => (0..DRAWS).map(redraw).collect(),
    };
    let summary = |statistic: TrialStatistic| {
        let value = statistic.compute(trials);
        let interval = if statistic == TrialStatistic::Mean && situation::is_share(column) {
            ConfidenceInterval::wilson(trials)
        } else if statistic.is_extreme() {
            None
        } else {
            ConfidenceInterval::bootstrap(
                value,
                redrawn.iter().map(|trials| statistic.compute(trials)).collect(),
            )
        };
        let summary = SampleSummary { value, interval, samples: trials.len() };
        value.is_finite().then_some((statistic, summary))
    };
    statistics.iter().filter_map(|statistic| summary(*statistic)).collect()
}

fn is_share(measure: &Measure) -> bool {
    matches!(measure, Measure::Column(TrialStatistic::Mean, column) if situation::is_share(column))
}

/// Returns whether the bootstrap says nothing about a measure.
fn is_extreme(measure: &Measure) -> bool {
    matches!(measure, Measure::Column(statistic, _) if statistic.is_extreme())
}

/// Which trials are used.
#[derive(Clone, Copy)]
enum TrialDraw {
    AsMeasured,
    Resampled(u64),
    /// The only measure that is read, at the lower or upper end of its interval.
    End(fn(ConfidenceInterval) -> f64),
}

/// The trials of the points that an expression reads.
struct TrialPools<'a>(BTreeMap<&'a str, TrialPool<'a>>);

impl<'a> TrialPools<'a> {
    fn new(value: &'a ClaimExpression, grid: &'a SituationGrid, results: &RunResults) -> Self {
        let mut pools = BTreeMap::new();
        value.for_each_read(grid, &mut |point, _| {
            let pool = || TrialPool {
                id: &point.id,
                situation: &point.situation,
                all: results.pooled(&point.id),
            };
            pools.entry(point.id.as_str()).or_insert_with(pool);
        });
        Self(pools)
    }

    fn evaluate(
        &self,
        value: &ClaimExpression,
        basis: JudgingBasis<'_>,
        draw: TrialDraw,
    ) -> Option<f64> {
        self.number(value, basis, draw).filter(|number| number.is_finite())
    }

    fn number(
        &self,
        value: &ClaimExpression,
        basis: JudgingBasis<'_>,
        draw: TrialDraw,
    ) -> Option<f64> {
        let read = |id: &str, measure: &Measure| self.0.get(id)?.read(measure, draw);
        value.evaluate(basis, &read)?.single().filter(|number| !number.is_nan())
    }

    /// Returns the interval of an expression with this value.
    fn interval(
        &self,
        value: &ClaimExpression,
        measured: f64,
        basis: JudgingBasis<'_>,
    ) -> Option<ConfidenceInterval> {
        if let ClaimExpression::Call(SeriesFunction::Abs, arguments) = value {
            // The interval of |x| is that of x without its sign: |x| of resampled trials is biased.
            let inside = arguments.first()?;
            let interval =
                self.interval(inside, self.number(inside, basis, TrialDraw::AsMeasured)?, basis);
            return interval.map(ConfidenceInterval::absolute);
        }
        if value.reads(is_extreme) {
            return None;
        }
        match value.only_read() {
            Some(measure) if is_share(measure) => {
                self.between_ends(value, measured, IntervalMethod::Wilson, basis)
            }
            Some(Measure::Column(TrialStatistic::MostOf(_), _)) => {
                self.between_ends(value, measured, IntervalMethod::OrderStatistics, basis)
            }
            _ => self.bootstrap(value, measured, basis),
        }
    }

    /// Returns the interval of an expression that reads a single measure: its ends are those of the
    /// expression at the ends of the measure's interval.
    fn between_ends(
        &self,
        value: &ClaimExpression,
        measured: f64,
        method: IntervalMethod,
        basis: JudgingBasis<'_>,
    ) -> Option<ConfidenceInterval> {
        let ends: [fn(ConfidenceInterval) -> f64; 2] = [|read| read.low, |read| read.high];
        let [first, second] = ends.map(|end| self.number(value, basis, TrialDraw::End(end)));
        let (first, second) = (first?, second?);
        let interval =
            ConfidenceInterval { low: first.min(second), high: first.max(second), method };
        Some(interval.containing(measured))
    }

    /// Returns the bootstrap interval; `None` if no column has two trials, because their variation
    /// is then unknown.
    fn bootstrap(
        &self,
        value: &ClaimExpression,
        measured: f64,
        basis: JudgingBasis<'_>,
    ) -> Option<ConfidenceInterval> {
        let mut max_trials = 0;
        value.for_each_read(basis.grid, &mut |point, measure| {
            let pool = self.0.get(point.id.as_str());
            if let (Some(pool), Measure::Column(_, column)) = (pool, measure) {
                max_trials = pool.all.columns.get(column).map_or(0, Vec::len).max(max_trials);
            }
        });
        if max_trials < 2 {
            return None;
        }
        let replicate = |draw| self.evaluate(value, basis, TrialDraw::Resampled(draw));
        ConfidenceInterval::bootstrap(measured, (0..DRAWS).map(replicate).collect::<Option<_>>()?)
    }
}

/// The trials of a point.
struct TrialPool<'a> {
    id: &'a str,
    situation: &'a Situation,
    all: RunResult,
}

impl TrialPool<'_> {
    fn read(&self, measure: &Measure, draw: TrialDraw) -> Option<f64> {
        let number = match (measure, draw) {
            (Measure::Column(statistic, column), TrialDraw::Resampled(draw)) => {
                let trials = self.all.columns.get(column)?;
                // The same trials for every measure of a column, because they belong together.
                let seed = seed_of([self.id, column], draw);
                if is_share(measure) {
                    plausible_share(trials, seed)
                } else {
                    statistic.compute(&resample(trials, seed))
                }
            }
            (Measure::Column(statistic, column), TrialDraw::End(end)) => {
                let trials = self.all.columns.get(column)?;
                let interval = match statistic {
                    TrialStatistic::MostOf(series) => {
                        ConfidenceInterval::median_maximum(trials, *series)
                    }
                    _ => ConfidenceInterval::wilson(trials),
                };
                return Some(end(interval?));
            }
            _ => measure.value(self.situation, &self.all),
        };
        number.is_finite().then_some(number)
    }
}
