//! `runs.csv`: a tidy table, one row for each point, seed and measure.

use super::csv::field;
use super::document::measures_of;
use crate::plan::Plan;
use crate::run::Results;

/// All numbers of all runs, as columns of the same length.
///
/// A point of which nothing was run has no rows. The rows stand in the order of the plan's points, the
/// seeds, and the names of measures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Table {
    /// The point's identifier.
    pub point: Vec<String>,
    /// Its scene; empty if the plan has none.
    pub scene: Vec<String>,
    /// Its curve.
    pub curve: Vec<String>,
    /// Where it is on the axis, in the axis' unit.
    pub x: Vec<f64>,
    /// Of the run.
    pub seed: Vec<u64>,
    /// The measure, as claims and figures name it.
    pub measure: Vec<String>,
    /// What it is measured in; empty if it is a plain number.
    pub unit: Vec<String>,
    /// The number; none if the run has no such thing, such as the delay of a stream on which nothing
    /// arrived.
    pub value: Vec<Option<f64>>,
}

impl Table {
    /// The names of the columns, in their order.
    pub const COLUMNS: [&'static str; 8] =
        ["point", "scene", "curve", "x", "seed", "measure", "unit", "value"];

    /// What the runs of a plan measured.
    #[must_use]
    pub fn new(plan: &Plan, results: &Results, seeds: &[u64]) -> Self {
        let mut table = Self::default();
        for point in &plan.grid.points {
            let runs = results.points.get(&point.id).map_or(&[][..], Vec::as_slice);
            for (seed, run) in seeds.iter().zip(runs) {
                for measure in measures_of(&point.situation, run) {
                    let value = measure.of(&point.situation, run);
                    table.point.push(point.id.clone());
                    table.scene.push(point.scene.clone());
                    table.curve.push(point.curve.clone());
                    table.x.push(point.x);
                    table.seed.push(*seed);
                    table.measure.push(measure.to_string());
                    table.unit.push(measure.unit());
                    table.value.push(value.is_finite().then_some(value));
                }
            }
        }
        table
    }

    /// How many rows it has.
    #[must_use]
    pub fn len(&self) -> usize {
        self.value.len()
    }

    /// Whether it has none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }

    /// As text with a header (RFC 4180).
    #[must_use]
    pub fn to_csv(&self) -> String {
        let mut text = Self::COLUMNS.join(",") + "\n";
        for row in 0..self.len() {
            text.push_str(&format!(
                "{},{},{},{},{},{},{},{}\n",
                field(&self.point[row]),
                field(&self.scene[row]),
                field(&self.curve[row]),
                self.x[row],
                self.seed[row],
                field(&self.measure[row]),
                field(&self.unit[row]),
                self.value[row].map_or_else(String::new, |value| value.to_string()),
            ));
        }
        text
    }
}
