//! `runs.csv`: a tidy table, one row for each point, seed and measure.

use super::csv::field;
use super::document::measures_of;
use crate::plan::Plan;
use crate::run::RunResults;

/// All numbers of all runs, as columns of equal length.
///
/// A point without runs has no rows. Rows are in the order of the plan's points, the seeds, and the
/// names of measures.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ResultsTable {
    /// The identifiers of the points.
    pub point: Vec<String>,
    /// The scenes; empty if the plan has none.
    pub scene: Vec<String>,
    /// The curves.
    pub curve: Vec<String>,
    /// The places on the axis, in its unit.
    pub x: Vec<f64>,
    /// The seeds of the runs.
    pub seed: Vec<u64>,
    /// The measures, as named by claims and figures.
    pub measure: Vec<String>,
    /// The units; empty for plain numbers.
    pub unit: Vec<String>,
    /// The numbers; `None` if the run has no such value, such as the delay of a stream on which
    /// nothing arrived.
    pub value: Vec<Option<f64>>,
}

impl ResultsTable {
    /// The names of the columns, in order.
    pub const COLUMNS: [&'static str; 8] =
        ["point", "scene", "curve", "x", "seed", "measure", "unit", "value"];

    /// Creates the table of the measurements of a plan's runs.
    #[must_use]
    pub fn new(plan: &Plan, results: &RunResults, seeds: &[u64]) -> Self {
        let mut table = Self::default();
        for point in &plan.grid.points {
            let runs = results.points.get(&point.id).map_or(&[][..], Vec::as_slice);
            for (seed, run) in seeds.iter().zip(runs) {
                for measure in measures_of(&point.situation, run) {
                    let value = measure.value(&point.situation, run);
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

    /// Returns the number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.value.len()
    }

    /// Returns whether there are no rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.value.is_empty()
    }

    /// Returns it as text with a header (RFC 4180).
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
