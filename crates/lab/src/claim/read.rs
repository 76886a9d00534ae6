//! How expressions access measurements.

use crate::measure::Measure;

/// Returns a measure of one run of the point with this identifier, if there is one.
pub(crate) type ReadMeasure<'a> = dyn Fn(&str, &Measure) -> Option<f64> + 'a;
