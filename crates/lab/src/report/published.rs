//! The publication's tables, with the measurements next to their numbers.

use super::markup::{escape, estimate, number};
use super::picture::axis_label;
use crate::measure::Measure;
use crate::plan::{PublishedRow, PublishedTable};
use crate::results::{PointRow, ResultsDocument};

pub(super) fn section(document: &ResultsDocument) -> String {
    let tables: String = document.tables.iter().map(|shown| table(document, shown)).collect();
    match tables.is_empty() {
        true => tables,
        false => format!(
            "<section>\n<h2>The published tables</h2>\n<p>Each cell shows the published value \
             and, in bold, the value measured here.</p>\n{tables}</section>\n"
        ),
    }
}

fn table(document: &ResultsDocument, table: &PublishedTable) -> String {
    let measures = &table.measures;
    let label = |id: &str| {
        let curve = document.curves.iter().find(|curve| curve.id == id);
        escape(curve.map_or(id, |curve| &curve.label))
    };
    let unit = match document.axis.unit.as_str() {
        "" => String::new(),
        unit => format!(" {unit}"),
    };
    let columns: String = measures.iter().map(heading).collect();
    let curves = std::iter::once(&table.curve).chain(&table.beside);
    let mut rows = String::new();
    for row in &table.row {
        for (rank, curve) in curves.clone().enumerate() {
            let point =
                document.points_of_curve(&table.scene, curve).find(|point| same(point.x, row.x));
            let Some(point) = point else { continue };
            let published = (rank == 0).then_some(row);
            let cells: String = (0..measures.len())
                .map(|column| cell(published, point, column, &measures[column]))
                .collect();
            rows.push_str(&format!(
                "<tr><th scope=\"row\">{}{unit}, {}</th>{cells}</tr>\n",
                number(row.x),
                label(curve),
            ));
        }
    }
    format!(
        "<h3>{title}</h3>\n<div class=\"scroll\"><table class=\"numbers comparison cards\">\n<thead><tr><th>{axis}\
         </th>{columns}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n",
        title = escape(&table.title),
        axis = escape(&axis_label(&document.axis)),
    )
}

/// Returns a short column heading, so that all columns fit; the full label is its tooltip.
fn heading(measure: &Measure) -> String {
    let (label, short) = (escape(&measure.label()), escape(&short(measure)));
    format!("<th scope=\"col\" title=\"{label}\">{short}</th>")
}

fn short(measure: &Measure) -> String {
    match measure {
        Measure::Column(statistic, column) => format!("{column}, {statistic}"),
        other => other.to_string(),
    }
}

fn same(x: f64, wanted: f64) -> bool {
    (x - wanted).abs() <= wanted.abs() * 1e-9
}

fn cell(
    published: Option<&PublishedRow>,
    point: &PointRow,
    column: usize,
    measure: &Measure,
) -> String {
    let unit = measure.unit();
    let measured = point.measures.get(measure).map_or_else(
        || "–".to_owned(),
        |summary| escape(&estimate(summary.value, summary.interval, &unit)),
    );
    let label = format!(" data-label=\"{}\"", escape(&short(measure)));
    let value = published.and_then(|row| row.published.get(column));
    match value {
        Some(value) => {
            let value = format!("{} {unit}", number(*value));
            format!("<td{label}>{} <b>{measured}</b></td>", escape(value.trim_end()))
        }
        None => format!("<td{label}><b>{measured}</b></td>"),
    }
}
