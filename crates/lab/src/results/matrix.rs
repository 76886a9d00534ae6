//! The matrix of a plan with its numbers: what is in `result.json` of it.

use serde::{Deserialize, Serialize};

use crate::claim;
use crate::plan::{MatrixColumn, Plan};
use crate::run::Results;
use crate::statistics::Interval;

/// One table with a row for each curve.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixTable {
    /// What is in the columns.
    pub columns: Vec<MatrixColumn>,
    /// Rows of curves of which something was measured.
    pub rows: Vec<MatrixLine>,
}

/// A row.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixLine {
    /// The curve's identifier.
    pub curve: String,
    /// The curve's label.
    pub label: String,
    /// What the program says of its version.
    pub version: String,
    /// In the order of the columns.
    pub cells: Vec<MatrixNumber>,
}

/// A cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixNumber {
    /// Whether its point was run. Then a missing number means that there was nothing to be measured,
    /// such as no response.
    pub run: bool,
    /// The number.
    pub value: Option<f64>,
    /// Where it lies with 95 % confidence.
    pub interval: Option<Interval>,
    /// What a publication says; empty if none does.
    pub published: String,
    /// The point whose packets tell how it came about; empty if there is none.
    pub point: String,
}

/// How good a number is, by its column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Grade {
    /// As it should be.
    Good,
    /// Slower than it should be.
    Slow,
    /// Much slower, or nothing at all.
    Bad,
    /// Neither: the column judges nothing, or nothing was run.
    None,
}

impl MatrixNumber {
    /// How good it is in this column.
    #[must_use]
    pub fn grade(&self, column: &MatrixColumn) -> Grade {
        match (self.run, column.at_most, self.value) {
            (false, ..) | (_, None, _) => Grade::None,
            (_, _, None) => Grade::Bad,
            (_, Some(most), Some(value)) if value <= most => Grade::Good,
            (_, _, Some(value)) => match column.slow {
                Some(slow) if value <= slow => Grade::Slow,
                _ => Grade::Bad,
            },
        }
    }
}

/// The matrix of a plan; none if it has none.
pub(super) fn of(plan: &Plan, results: &Results) -> Option<MatrixTable> {
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
