//! The points that claims are judged by: if the machine was too slow or busy, a point shows the
//! machine.

use serde::Deserialize;

use super::read::ReadMeasure;
use crate::measure::Measure;
use crate::run::RunResults;
use crate::situation::{GridPoint, NamedLabel, SituationGrid, live};

/// `[[judged]]` of a plan: points that do not satisfy this are left out of claims.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct JudgedPoints {
    /// The measure that shows whether a point is valid.
    measure: Measure,
    /// The maximum value of the measure.
    at_most: f64,
    /// What it means if the value is higher.
    otherwise: String,
    /// The columns that the rule is about; all if empty.
    #[serde(default)]
    columns: Vec<String>,
}

/// A rule about points that cannot be applied.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub(crate) enum JudgedError {
    #[error("judged.measure: {0} is not a column of live runs, such as mean.late")]
    Measure(Measure),
    #[error("judged.columns: {0} is not a column of live runs")]
    Column(String),
    #[error("judged.at_most must be a number")]
    AtMost,
    #[error("judged.otherwise is empty: explain what it means if the measure is higher")]
    Otherwise,
}

impl JudgedPoints {
    /// Returns what is invalid.
    pub(crate) fn check(&self) -> Result<(), JudgedError> {
        let is_known = match &self.measure {
            Measure::Column(_, column) => live::columns().any(|(name, _)| name == column),
            _ => false,
        };
        if !is_known {
            return Err(JudgedError::Measure(self.measure.clone()));
        }
        let is_unknown =
            |column: &&String| !live::columns().any(|(name, _)| name == column.as_str());
        if let Some(column) = self.columns.iter().find(is_unknown) {
            return Err(JudgedError::Column(column.clone()));
        }
        if !self.at_most.is_finite() {
            return Err(JudgedError::AtMost);
        }
        if self.otherwise.trim().is_empty() {
            return Err(JudgedError::Otherwise);
        }
        Ok(())
    }

    /// Returns whether the rule is about a measure.
    pub(super) fn is_about(&self, measure: &Measure) -> bool {
        let names = |column: &String| self.columns.contains(column);
        self.columns.is_empty() || matches!(measure, Measure::Column(_, column) if names(column))
    }

    /// Returns whether a point is judged; `None` if the measure was not taken.
    pub(super) fn counts(&self, point: &str, read: &ReadMeasure<'_>) -> Option<bool> {
        Some(read(point, &self.measure)? <= self.at_most)
    }

    /// Describes for readers what is left out; `None` if nothing is.
    pub(crate) fn excluded(&self, grid: &SituationGrid, results: &RunResults) -> Option<String> {
        let of_scene = |scene| {
            grid.curves
                .iter()
                .filter_map(move |curve| self.exclusion_note(grid, results, scene, curve))
        };
        let parts: Vec<String> = grid.scenes.iter().flat_map(of_scene).collect();
        let what = match self.columns.is_empty() {
            true => "Not judged".to_owned(),
            false => format!("Not judged by {}", self.columns.join(", ")),
        };
        (!parts.is_empty()).then(|| format!("{what}: {}: {}.", parts.join("; "), self.otherwise))
    }

    /// Describes what is left out of one curve.
    fn exclusion_note(
        &self,
        grid: &SituationGrid,
        results: &RunResults,
        scene: &NamedLabel,
        curve: &NamedLabel,
    ) -> Option<String> {
        let is_excluded = |point: &&GridPoint| {
            let read = |id: &str, measure: &Measure| {
                let number = measure.value(&point.situation, &results.pooled(id));
                (!number.is_nan()).then_some(number)
            };
            self.counts(&point.id, &read) == Some(false)
        };
        let points = grid.points_of_curve(&scene.id, &curve.id).filter(is_excluded);
        let places: Vec<String> = points.map(|point| point.x.to_string()).collect();
        let name = match scene.label.as_str() {
            "" => curve.label.clone(),
            label => format!("{label}, {}", curve.label),
        };
        let text = format!("{name} at {} {}", places.join(", "), grid.axis.unit);
        (!places.is_empty()).then(|| text.trim_end().to_owned())
    }
}
