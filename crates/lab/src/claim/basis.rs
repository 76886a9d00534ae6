//! The points that claims are judged by, and which of them count.

use super::judged::JudgedPoints;
use crate::measure::Measure;
use crate::run::RunResults;
use crate::situation::SituationGrid;

/// The basis on which claims are judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct JudgingBasis<'a> {
    /// The points.
    pub(crate) grid: &'a SituationGrid,
    /// The conditions under which they count.
    pub(crate) judged: &'a [JudgedPoints],
    /// Whether their runs are shorter than the claims require, as with `--quick`.
    pub(crate) shortened: bool,
}

impl JudgingBasis<'_> {
    /// Returns a measure of one run of one point.
    pub(super) fn value(
        self,
        results: &RunResults,
        point: &str,
        measure: &Measure,
        run: usize,
    ) -> Option<f64> {
        let result = results.points.get(point)?.get(run)?;
        Some(measure.value(&self.grid.point(point)?.situation, result))
    }
}
