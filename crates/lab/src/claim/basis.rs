//! The points that claims are judged by, and which of them count.

use super::judged::Judged;
use crate::measure::Measure;
use crate::run::Results;
use crate::situation::Grid;

/// The basis on which claims are judged.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Basis<'a> {
    /// The points.
    pub(crate) grid: &'a Grid,
    /// The conditions under which they count.
    pub(crate) judged: &'a [Judged],
    /// Whether their runs are shorter than the claims require, as with `--quick`.
    pub(crate) shortened: bool,
}

impl Basis<'_> {
    /// Returns a measure of one run of one point.
    pub(super) fn value(
        self,
        results: &Results,
        point: &str,
        measure: &Measure,
        run: usize,
    ) -> Option<f64> {
        let result = results.points.get(point)?.get(run)?;
        Some(measure.of(&self.grid.point(point)?.situation, result))
    }
}
