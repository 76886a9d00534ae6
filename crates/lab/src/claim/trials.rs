//! Expressions over the trials of live runs.
//!
//! A mean, a percentile or a maximum is that of all trials of a point together. How sure it is
//! comes from the bootstrap (Efron 1979): trials are drawn again from those that were measured, as
//! many as there were, with putting back; what the expression comes to then has a spread of its own.

use std::collections::BTreeMap;

use eyas_netem::random::derive;

use super::Expression;
use crate::measure::Measure;
use crate::plan::{Plan, Situation};
use crate::results::{Results, RunResult};
use crate::statistics::Statistic;

/// How often the trials are drawn again.
const DRAWS: u64 = 200;
/// Deviations that the 95 % interval of a normal distribution is wide, each way.
const WIDTH: f64 = 1.96;

/// What it comes to, and half of the width of its 95 % confidence interval.
pub(super) fn measure(
    value: &Expression,
    plan: &Plan,
    results: &Results,
) -> (Option<f64>, Option<f64>) {
    let pools: BTreeMap<&str, Pool<'_>> = plan
        .points
        .iter()
        .map(|point| {
            let pool =
                Pool { situation: &point.situation, all: results.pooled(&point.id), id: &point.id };
            (point.id.as_str(), pool)
        })
        .collect();
    let with = |draw: Option<u64>| {
        let read = |id: &str, measure: &Measure| pools.get(id)?.read(measure, draw);
        value.evaluate(plan, &read)?.single().filter(|number| number.is_finite())
    };
    let measured = with(None);
    let replicates: Option<Vec<f64>> =
        measured.and_then(|_| (0..DRAWS).map(|draw| with(Some(draw))).collect());
    let ci95 = replicates.map(|replicates| WIDTH * Statistic::Deviation.of(&replicates));
    (measured, ci95)
}

/// The trials of a point.
struct Pool<'a> {
    id: &'a str,
    situation: &'a Situation,
    all: RunResult,
}

impl Pool<'_> {
    /// A measure of all trials, or of those that were drawn again.
    fn read(&self, measure: &Measure, draw: Option<u64>) -> Option<f64> {
        let number = match (measure, draw) {
            (Measure::Column(statistic, column), Some(draw)) => {
                statistic.of(&self.drawn_again(column, draw)?)
            }
            _ => measure.of(self.situation, &self.all),
        };
        number.is_finite().then_some(number)
    }

    /// The same trials for each measure of a column, for they are read together.
    fn drawn_again(&self, column: &str, draw: u64) -> Option<Vec<f64>> {
        let trials = self.all.columns.get(column)?;
        let name = self.id.bytes().chain(column.bytes());
        let seed = name.fold(draw, |seed, byte| derive(seed, 0, u64::from(byte)));
        let place = |trial: usize| {
            let drawn = u128::from(derive(seed, 1, trial as u64)) * trials.len() as u128;
            (drawn >> 64) as usize
        };
        Some((0..trials.len()).map(|trial| trials[place(trial)]).collect())
    }
}
