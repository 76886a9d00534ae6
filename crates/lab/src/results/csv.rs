//! `result.csv`: one line for each point and measure.

use super::Document;

/// The table, with a header.
#[must_use]
pub fn to_csv(document: &Document) -> String {
    let axis = match document.axis.unit.is_empty() {
        true => document.axis.parameter.clone(),
        false => format!("{} [{}]", document.axis.parameter, document.axis.unit),
    };
    let mut text = format!("scene,curve,{},measure,mean,ci95,runs\n", field(&axis));
    for point in &document.points {
        for (measure, summary) in &point.measures {
            let ci95 = summary.ci95.map(|ci95| ci95.to_string()).unwrap_or_default();
            text.push_str(&format!(
                "{},{},{},{},{},{ci95},{}\n",
                field(&point.scene),
                field(&point.curve),
                point.x,
                field(&measure.to_string()),
                summary.mean,
                summary.runs,
            ));
        }
    }
    text
}

/// A field as RFC 4180 §2 has it.
fn field(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_owned(),
    }
}
