//! `[[matrix]]`: one table with a row for each curve, and its columns.

use serde::{Deserialize, Serialize};

use super::PlanError;
use super::clients::PublishedValues;
use crate::claim::ClaimExpression;
use crate::situation::SituationGrid;

/// The placeholder for the curve of a row.
const PLACEHOLDER: &str = "{client}";

/// A column as written in a plan.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ColumnText {
    label: String,
    about: String,
    /// An expression, in which `{client}` is the curve of the row.
    value: String,
    #[serde(default)]
    unit: String,
    /// The scene whose packets are shown for a cell.
    scene: String,
    at_most: Option<f64>,
    slow: Option<f64>,
    /// The place on the axis from which the packets are taken, as in expressions; the first one if
    /// not given.
    #[serde(default)]
    at: String,
}

/// A column of the matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixColumn {
    /// The heading.
    pub label: String,
    /// A description, in one sentence.
    pub about: String,
    /// The unit.
    pub unit: String,
    /// Values up to this are good; without it values are not graded.
    pub at_most: Option<f64>,
    /// Values up to this are slow, higher ones bad.
    pub slow: Option<f64>,
}

/// One table with a row for each curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct PlanMatrix {
    /// The columns.
    pub columns: Vec<MatrixColumn>,
    /// The rows, in the order of the curves.
    pub rows: Vec<MatrixRow>,
}

/// A row: one curve.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixRow {
    /// The identifier of the curve.
    pub curve: String,
    /// The cells, in the order of the columns.
    pub cells: Vec<MatrixCell>,
}

/// The source of a number of the matrix.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixCell {
    /// The expression.
    pub(crate) value: ClaimExpression,
    /// The point whose packets are shown; `None` if it is not run.
    pub point: Option<String>,
    /// The published value; empty if there is none.
    pub published: String,
}

impl PlanMatrix {
    pub(super) fn from_file(
        texts: &[ColumnText],
        published: &PublishedValues,
        grid: &SituationGrid,
    ) -> Result<Self, PlanError> {
        let cell = |column: &ColumnText, curve: &str| {
            let value = column.value.replace(PLACEHOLDER, curve);
            let value = ClaimExpression::parse(&value, grid)
                .map_err(|cause| PlanError(format!("matrix, {:?}: {cause}", column.label)))?;
            let at = column.at.replace(' ', "");
            let mut points = grid.points_of_curve(&column.scene, curve);
            let point = points.find(|point| at.is_empty() || point.id.ends_with(&format!("_{at}")));
            let published = published.get(curve).and_then(|of| of.get(&column.label));
            Ok(MatrixCell {
                value,
                point: point.map(|point| point.id.clone()),
                published: published.cloned().unwrap_or_default(),
            })
        };
        let row = |curve: &str| {
            let cells = texts.iter().map(|column| cell(column, curve)).collect::<Result<_, _>>()?;
            Ok(MatrixRow { curve: curve.to_owned(), cells })
        };
        let runs = |curve: &&crate::situation::NamedLabel| {
            grid.points.iter().any(|point| point.curve == curve.id)
        };
        let rows = match texts {
            [] => Vec::new(),
            _ => grid
                .curves
                .iter()
                .filter(runs)
                .map(|curve| row(&curve.id))
                .collect::<Result<_, _>>()?,
        };
        Ok(Self { columns: texts.iter().map(ColumnText::to_column).collect(), rows })
    }
}

impl ColumnText {
    fn to_column(&self) -> MatrixColumn {
        let Self { label, about, unit, .. } = self.clone();
        MatrixColumn { label, about, unit, at_most: self.at_most, slow: self.slow }
    }
}
