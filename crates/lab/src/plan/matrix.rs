//! `[[matrix]]`: one table with a row for each curve, and what is in its columns.

use serde::{Deserialize, Serialize};

use super::PlanError;
use super::clients::Published;
use crate::claim::Expression;
use crate::situation::Grid;

/// What stands for the curve of a row.
const PLACEHOLDER: &str = "{client}";

/// A column as a plan writes it.
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
    /// Where on the axis the packets are from, as in expressions; the first place if nothing is said.
    #[serde(default)]
    at: String,
}

/// What is in a column of the matrix.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct MatrixColumn {
    /// At its head.
    pub label: String,
    /// What it is, in a sentence.
    pub about: String,
    /// What it is measured in.
    pub unit: String,
    /// Up to this it is good; without it nothing is good or bad.
    pub at_most: Option<f64>,
    /// Up to this it is slow, and above it is bad.
    pub slow: Option<f64>,
}

/// One table with a row for each curve.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Matrix {
    /// What is in the columns.
    pub columns: Vec<MatrixColumn>,
    /// The rows, in the order of the curves.
    pub rows: Vec<MatrixRow>,
}

/// A row: one curve.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixRow {
    /// The curve's identifier.
    pub curve: String,
    /// In the order of the columns.
    pub cells: Vec<MatrixCell>,
}

/// Where a number of the matrix comes from.
#[derive(Clone, Debug, PartialEq)]
pub struct MatrixCell {
    /// What is computed.
    pub value: Expression,
    /// The point whose packets are shown; none if it is not run.
    pub point: Option<String>,
    /// What a publication says; empty if none does.
    pub published: String,
}

impl Matrix {
    pub(super) fn of(
        texts: &[ColumnText],
        published: &Published,
        grid: &Grid,
    ) -> Result<Self, PlanError> {
        let cell = |column: &ColumnText, curve: &str| {
            let value = column.value.replace(PLACEHOLDER, curve);
            let value = Expression::parse(&value, grid)
                .map_err(|cause| PlanError(format!("matrix, {:?}: {cause}", column.label)))?;
            let at = column.at.replace(' ', "");
            let mut points = grid.along(&column.scene, curve);
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
        let runs = |curve: &&crate::situation::Named| {
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
