//! The matrix of a plan with its numbers, as in `result.json`.

use serde::{Deserialize, Serialize};

use crate::claim;
use crate::plan::{MatrixColumn, Plan};
use crate::run::RunResults;
use crate::statistics::ConfidenceInterval;

/// One table with a row for each curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixTable {
    /// The columns.
    pub columns: Vec<MatrixColumn>,
    /// The rows of curves with at least one measurement.
    pub rows: Vec<MatrixLine>,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixLine {
    /// The identifier of the curve.
    pub curve: String,
    /// The label of the curve.
    pub label: String,
    /// The version that the program reports.
    pub version: String,
    /// The cells, in the order of the columns.
    pub cells: Vec<MatrixNumber>,
}

/// A cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixNumber {
    /// Whether its point was run. If so, a missing number means that nothing could be measured, for
    /// example because there was no response.
    pub run: bool,
    /// The number.
    pub value: Option<f64>,
    /// The 95 % confidence interval.
    pub interval: Option<ConfidenceInterval>,
    /// The published value; empty if there is none.
    pub published: String,
    /// The point whose packets the number was derived from; empty if there is none.
    pub point: String,
}

/// The grade of a number, according to its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NumberGrade {
    /// As good as it should be.
    Good,
    /// Slower than it should be.
    Slow,
    /// Much slower, or missing.
    Bad,
    /// Not graded: the column has no limits, or nothing was run.
    None,
}

impl MatrixNumber {
    /// Returns the grade in this column.
    #[must_use]
    pub fn grade(&self, column: &MatrixColumn) -> NumberGrade {
        match (self.run, column.at_most, self.value) {
            (false, ..) | (_, None, _) => NumberGrade::None,
            (_, _, None) => NumberGrade::Bad,
            (_, Some(most), Some(value)) if value <= most => NumberGrade::Good,
            (_, _, Some(value)) => match column.slow {
                Some(slow) if value <= slow => NumberGrade::Slow,
                _ => NumberGrade::Bad,
            },
        }
    }
}

/// Returns the matrix of a plan; `None` if it has none.
pub(super) fn matrix_table(plan: &Plan, results: &RunResults) -> Option<MatrixTable> {
    if plan.matrix.columns.is_empty() {
        return None;
    }
    let has = |point: &str| results.points.get(point).is_some_and(|runs| !runs.is_empty());
    let rows = plan.matrix.rows.iter().filter_map(|row| {
        let points = plan.grid.points.iter().filter(|point| point.curve == row.curve);
        let observed = points
            .filter_map(|point| results.points.get(&point.id)?.first()?.observed.as_ref())
            .next()?;
        let cells = row.cells.iter().map(|cell| {
            let estimate = claim::estimate(&cell.value, plan.basis(), results);
            let point = cell.point.clone().filter(|point| has(point));
            MatrixNumber {
                run: point.is_some(),
                value: estimate.map(|(value, _)| value),
                interval: estimate.and_then(|(_, interval)| interval),
                published: cell.published.clone(),
                point: point.unwrap_or_default(),
            }
        });
        let label = plan.grid.curves.iter().find(|curve| curve.id == row.curve);
        Some(MatrixLine {
            curve: row.curve.clone(),
            label: label.map_or_else(String::new, |curve| curve.label.clone()),
            version: observed.version.clone(),
            cells: cells.collect(),
        })
    });
    Some(MatrixTable { columns: plan.matrix.columns.clone(), rows: rows.collect() })
}
