//! Readable axes: their unit, which is that of the plan's expressions or a larger one, and their
//! ticks.

use std::borrow::Cow;

use crate::results::ResultsDocument;

/// Milliseconds per second.
const MILLISECONDS: f64 = 1e3;

/// Returns the same results with an axis in seconds, if it is an axis of times and all of them are
/// whole seconds.
pub(super) fn readable(document: &ResultsDocument) -> Cow<'_, ResultsDocument> {
    let mut places = document.points.iter().map(|point| point.x);
    let is_whole = places.all(|x| x >= MILLISECONDS && x % MILLISECONDS == 0.0);
    if document.axis.unit != "ms" || !is_whole || !document.tables.is_empty() {
        return Cow::Borrowed(document);
    }
    let mut document = document.clone();
    "s".clone_into(&mut document.axis.unit);
    for point in &mut document.points {
        point.x /= MILLISECONDS;
    }
    Cow::Owned(document)
}

/// Returns the ticks of a logarithmic axis between two powers of ten: the decades, and 2 and 5
/// times each of them if there are fewer than three.
pub(super) fn decades(lowest: f64, highest: f64) -> Vec<f64> {
    let (first, last) = (lowest.floor() as i32, highest.ceil() as i32);
    let inside = |value: &f64| (lowest - SLACK..=highest + SLACK).contains(&value.log10());
    let times = |factors: &[f64]| -> Vec<f64> {
        let all = (first..=last).flat_map(|power| {
            let decade = 10_f64.powi(power);
            factors.iter().map(move |factor| factor * decade)
        });
        all.filter(inside).collect()
    };
    let whole = times(&[1.0]);
    if whole.len() < 3 { times(&[1.0, 2.0, 5.0]) } else { whole }
}

/// Returns at most `most` ticks between two values, at multiples of 1, 2 or 5 times a power of ten.
pub(super) fn ticks(low: f64, high: f64, most: usize) -> Vec<f64> {
    let spacing = step((high - low) * 5.0 / most.max(1) as f64);
    let (first, last) = ((low / spacing).ceil() as i64, (high / spacing).floor() as i64);
    (first..=last).map(|number| number as f64 * spacing).collect()
}

/// Returns the distance between grid lines of an axis from 0 to `most`: 1, 2 or 5 times a power of
/// ten, for about five lines.
pub(super) fn step(most: f64) -> f64 {
    let power = 10_f64.powf((most / 5.0).log10().floor());
    let min_step = most / 5.0 / power;
    power * [1.0, 2.0, 5.0].into_iter().find(|step| min_step <= *step).unwrap_or(10.0)
}

/// Keeps a value at the end of an axis on it, however its logarithm is rounded.
const SLACK: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_have_round_numbers() {
        assert_eq!([step(100.0), step(96.0), step(7.0), step(34.0)], [20.0, 20.0, 2.0, 10.0]);
        assert_eq!(ticks(-3.0, 103.0, 6), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert_eq!(ticks(4.0, 6.0, 5), [4.0, 4.5, 5.0, 5.5, 6.0]);
    }

    #[test]
    fn logarithmic_axes_have_decades() {
        assert_eq!(decades(-1.0, 2.0), [0.1, 1.0, 10.0, 100.0]);
        assert_eq!(decades(0.0, 1.1), [1.0, 2.0, 5.0, 10.0]);
        assert_eq!(decades(1.6, 1.75), [50.0]);
    }
}
