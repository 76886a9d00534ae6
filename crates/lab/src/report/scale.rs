//! The unit of the axis: that of the plan's expressions, or a larger one where that reads better.

use std::borrow::Cow;

use crate::results::Document;

/// How many of the unit of times make the larger one.
const MILLISECONDS: f64 = 1e3;

/// The same results with seconds along the axis, if that has times, all of them whole seconds.
pub(super) fn readable(document: &Document) -> Cow<'_, Document> {
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
