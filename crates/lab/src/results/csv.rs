//! `result.csv`: one line for each point and measure.

use super::ResultsDocument;
use crate::statistics::ConfidenceInterval;

/// Returns the table, with a header.
#[must_use]
pub fn to_csv(document: &ResultsDocument) -> String {
    let axis = match document.axis.unit.is_empty() {
        true => document.axis.parameter.clone(),
        false => format!("{} [{}]", document.axis.parameter, document.axis.unit),
    };
    let mut text = format!("scene,curve,{},measure,value,low,high,method,samples\n", field(&axis));
    for point in &document.points {
        for (measure, summary) in &point.measures {
            let [low, high, method] = match summary.interval {
                Some(ConfidenceInterval { low, high, method }) => {
                    [low.to_string(), high.to_string(), method.to_string()]
                }
                None => Default::default(),
            };
            text.push_str(&format!(
                "{},{},{},{},{},{low},{high},{method},{}\n",
                field(&point.scene),
                field(&point.curve),
                point.x,
                field(&measure.to_string()),
                summary.value,
                summary.samples,
            ));
        }
    }
    text
}

/// Formats a field according to RFC 4180 §2.
pub(crate) fn field(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
