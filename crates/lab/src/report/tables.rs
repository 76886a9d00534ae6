//! The tables beside a page of results: every check of every claim, and the published points beside ours.

use super::markup::{estimate, number};
use super::picture::axis_label;
use crate::plan::PublishedTable;
use crate::results::{ResultsDocument, field};

/// Returns the tables of a document as CSV: their titles, the names of their files, and the contents.
pub(super) fn files(document: &ResultsDocument) -> Vec<(String, String, String)> {
    let plan = &document.plan;
    let mut files = vec![("claims".to_owned(), format!("{plan}-claims.csv"), claims(document))];
    if !document.tables.is_empty() {
        let title = "published and measured".to_owned();
        files.push((title, format!("{plan}-published.csv"), published(document)));
    }
    files
}

/// Returns a line for each check of each claim.
fn claims(document: &ResultsDocument) -> String {
    let mut text = line(&[
        "claim",
        "text",
        "note",
        "published",
        "check",
        "measured",
        "accepted if",
        "outcome",
    ]);
    for claim in &document.claims {
        for check in &claim.checks {
            let about = if check.about.is_empty() { &check.value } else { &check.about };
            let measured = check
                .measured
                .map_or_else(String::new, |value| estimate(value, check.interval, &check.unit));
            text.push_str(&line(&[
                &claim.id,
                &claim.text,
                &claim.note,
                &claim.published,
                about,
                &measured,
                &check.accept.describe(),
                check.outcome.describe(),
            ]));
        }
    }
    text
}

/// Returns a line for each number of the publication that has a measured one beside it.
fn published(document: &ResultsDocument) -> String {
    let mut text =
        line(&["table", &axis_label(&document.axis), "measure", "published", "measured"]);
    for table in &document.tables {
        for (x, cells) in rows(document, table) {
            for (measure, (theirs, ours)) in table.measures.iter().zip(&cells) {
                text.push_str(&line(&[&table.title, &x, &measure.label(), theirs, ours]));
            }
        }
    }
    text
}

/// Returns the places of a publication's table at which there are measurements, with the published and the
/// measured number of each measure.
pub(super) fn rows(
    document: &ResultsDocument,
    table: &PublishedTable,
) -> Vec<(String, Vec<(String, String)>)> {
    let mut rows = Vec::new();
    for row in &table.row {
        let is_there = |x: f64| (x - row.x).abs() <= row.x.abs() * 1e-9;
        let point =
            document.points_of_curve(&table.scene, &table.curve).find(|point| is_there(point.x));
        let Some(point) = point else { continue };
        let cells = table.measures.iter().enumerate().map(|(column, measure)| {
            let ours = point.measures.get(measure).map_or_else(
                || "–".to_owned(),
                |summary| estimate(summary.value, summary.interval, &measure.unit()),
            );
            (row.published.get(column).map_or("–".to_owned(), |value| number(*value)), ours)
        });
        rows.push((number(row.x), cells.collect()));
    }
    rows
}

/// Returns a line of fields.
fn line(fields: &[&str]) -> String {
    let one_line = |text: &&str| field(&text.split_whitespace().collect::<Vec<_>>().join(" "));
    fields.iter().map(one_line).collect::<Vec<_>>().join(",") + "\n"
}
