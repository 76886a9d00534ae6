//! The points that claims are judged by: if the machine was too slow, a point shows the machine.

use serde::Deserialize;

use super::read::Read;
use crate::measure::Measure;
use crate::run::Results;
use crate::situation::{Grid, Named, Point, live};

/// `[judged]` of a plan: points that do not satisfy this are left out of claims.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Judged {
    /// What says whether a point is what it should be.
    measure: Measure,
    /// The most that it may be.
    at_most: f64,
    /// What it means if it is more.
    otherwise: String,
}

impl Judged {
    /// # Errors
    /// If there is no such measure, or nobody is told what it means: in words.
    pub(crate) fn check(&self) -> Result<(), String> {
        let is_known = match &self.measure {
            Measure::Column(_, column) => live::columns().any(|(name, _)| name == column),
            _ => false,
        };
        if !is_known {
            return Err(format!(
                "judged.measure: {} is not a column of live runs, such as mean.late",
                self.measure
            ));
        }
        if !self.at_most.is_finite() {
            return Err("judged.at_most must be a number".to_owned());
        }
        if self.otherwise.trim().is_empty() {
            return Err(
                "judged.otherwise is empty: say what it means if the measure is more".to_owned()
            );
        }
        Ok(())
    }

    /// Whether a point is judged; none if what says so was not measured.
    pub(super) fn counts(&self, point: &str, read: &Read<'_>) -> Option<bool> {
        Some(read(point, &self.measure)? <= self.at_most)
    }

    /// What is left out, for readers; none if nothing is.
    pub(crate) fn left_out(&self, grid: &Grid, results: &Results) -> Option<String> {
        let of_scene = |scene| {
            grid.curves.iter().filter_map(move |curve| self.of(grid, results, scene, curve))
        };
        let parts: Vec<String> = grid.scenes.iter().flat_map(of_scene).collect();
        (!parts.is_empty())
            .then(|| format!("No claim is judged by {}: {}.", parts.join("; "), self.otherwise))
    }

    /// What is left out of one curve.
    fn of(&self, grid: &Grid, results: &Results, scene: &Named, curve: &Named) -> Option<String> {
        let is_left_out = |point: &&Point| {
            let read = |id: &str, measure: &Measure| {
                let number = measure.of(&point.situation, &results.pooled(id));
                (!number.is_nan()).then_some(number)
            };
            self.counts(&point.id, &read) == Some(false)
        };
        let points = grid.along(&scene.id, &curve.id).filter(is_left_out);
        let places: Vec<String> = points.map(|point| point.x.to_string()).collect();
        let name = match scene.label.as_str() {
            "" => curve.label.clone(),
            label => format!("{label}, {}", curve.label),
        };
        let text = format!("{name} at {} {}", places.join(", "), grid.axis.unit);
        (!places.is_empty()).then(|| text.trim_end().to_owned())
    }
}
