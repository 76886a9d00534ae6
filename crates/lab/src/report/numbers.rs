//! The figures as tables: for exact numbers, and for readers who cannot see the pictures.

use super::markup::{escape, estimate, number};
use super::picture::axis_label;
use crate::measure::Measure;
use crate::plan::PlanFigure;
use crate::results::ResultsDocument;

pub(super) fn section(document: &ResultsDocument) -> String {
    let mut measures: Vec<&Measure> = Vec::new();
    for measure in document.figures.iter().flat_map(PlanFigure::measures) {
        if !measures.contains(&measure) {
            measures.push(measure);
        }
    }
    let tables: String = measures.iter().map(|measure| table(document, measure)).collect();
    if tables.is_empty() {
        return tables;
    }
    format!(
        "<section>\n<h2>Numbers</h2>\n{tables}<p class=\"method\">With 95 % confidence intervals ({}); \
         there is none for a single run or trial.</p>\n</section>\n",
        escape(&document.methods().join("; ")),
    )
}

fn table(document: &ResultsDocument, measure: &Measure) -> String {
    let mut xs: Vec<f64> = document.points.iter().map(|point| point.x).collect();
    xs.sort_by(f64::total_cmp);
    xs.dedup();
    let with_unit = |x: f64| format!("{} {}", number(x), document.axis.unit).trim_end().to_owned();
    let head: String =
        xs.iter().map(|x| format!("<th scope=\"col\">{}</th>", escape(&with_unit(*x)))).collect();
    let mut rows = String::new();
    let measured = document.points.iter().any(|point| point.measures.contains_key(measure));
    if !measured {
        return rows;
    }
    for scene in &document.scenes {
        for curve in &document.curves {
            if document.points_of_curve(&scene.id, &curve.id).next().is_none() {
                continue;
            }
            let cell = |x: &f64| {
                let point =
                    document.points_of_curve(&scene.id, &curve.id).find(|point| point.x == *x);
                let summary = point.and_then(|point| point.measures.get(measure));
                summary.map_or_else(
                    || "<td></td>".to_owned(),
                    |summary| {
                        let cell = estimate(summary.value, summary.interval, &measure.unit());
                        let (label, cell) = (escape(&with_unit(*x)), escape(&cell));
                        format!("<td data-label=\"{label}\">{cell}</td>")
                    },
                )
            };
            let cells: String = xs.iter().map(cell).collect();
            let name = match scene.label.is_empty() {
                true => curve.label.clone(),
                false => format!("{}, {}", curve.label, scene.label),
            };
            rows.push_str(&format!("<tr><th scope=\"row\">{}</th>{cells}</tr>\n", escape(&name)));
        }
    }
    format!(
        "<details>\n<summary>{label}</summary>\n<div class=\"scroll\"><table class=\"numbers cards\">\n\
         <thead><tr><th>{axis}</th>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n\
         </details>\n",
        label = escape(&measure.label()),
        axis = escape(&axis_label(&document.axis)),
    )
}
