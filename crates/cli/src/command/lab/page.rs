//! Claims and figures on a terminal.

use std::path::Path;
use std::time::Duration;

use eyas_lab::claim::{CheckVerdict, ClaimOutcome, ClaimVerdict};
use eyas_lab::measure::Measure;
use eyas_lab::plan::{Plan, PlanExtent, PlanFigure};
use eyas_lab::report::{estimate, number};
use eyas_lab::results::ResultsDocument;

use super::matrix;
use crate::terminal::{OutputStyle, Paint, PaintedLine, table, table_of_numbers, time, wrapped};

/// The number of axis positions that fit on a line.
const COLUMNS: usize = 6;

/// Returns the list of built-in plans.
pub(super) fn plans(plans: &[Plan], style: OutputStyle) -> Vec<PaintedLine> {
    let row = |plan: &Plan| {
        let amount = format!("{} × {}", plan.grid.points.len(), plan.grid.runs);
        vec![
            (Paint::Command, plan.name.clone()),
            (Paint::Plain, amount),
            (Paint::Plain, plan.claims.len().to_string()),
            (Paint::Plain, plan.title.clone()),
        ]
    };
    let header = ["plan", "runs", "claims", "what it shows"];
    table(&header, plans.iter().map(row).collect(), style)
}

/// Returns figures as tables, then the claims.
pub(super) fn document(document: &ResultsDocument, style: OutputStyle) -> Vec<PaintedLine> {
    let mut lines = wrapped(Paint::Head, &document.title, 0, style);
    if document.run.extent == PlanExtent::Quick
        && let Some(open) = document.claims_without_verdict()
    {
        let warning = format!("A quick run shows only the shape. {open}");
        lines.extend(wrapped(Paint::Bad, &warning, 0, style));
    }
    lines.extend(matrix::lines(document, style));
    for figure in &document.figures {
        lines.push(PaintedLine::new());
        let unit = format!("  {}", figure.measure.label());
        let mut title = wrapped(Paint::Plain, &figure.title, 0, style);
        let last = title.pop().unwrap_or_default();
        lines.extend(title);
        lines.extend(with_suffix(last, &unit, 2, style));
        lines.extend(numbers(document, figure, style));
    }
    if !document.claims.is_empty() {
        lines.extend([PaintedLine::new(), PaintedLine::new().with_span(Paint::Head, "Claims")]);
        lines.extend(claims(&document.claims, style));
    }
    lines
}

fn numbers(
    document: &ResultsDocument,
    figure: &PlanFigure,
    style: OutputStyle,
) -> Vec<PaintedLine> {
    let is_wanted = |names: &[String], id: &String| names.is_empty() || names.contains(id);
    let mut lines = Vec::new();
    for scene in document.scenes.iter().filter(|scene| is_wanted(&figure.scenes, &scene.id)) {
        let curves = document.curves.iter().filter(|curve| is_wanted(&figure.curves, &curve.id));
        let curves: Vec<_> = curves
            .filter(|curve| document.points_of_curve(&scene.id, &curve.id).next().is_some())
            .collect();
        let mut positions: Vec<f64> = curves
            .iter()
            .flat_map(|curve| document.points_of_curve(&scene.id, &curve.id).map(|point| point.x))
            .collect();
        positions.sort_by(f64::total_cmp);
        positions.dedup();
        let positions = evenly_spaced(&positions);
        if positions.is_empty() {
            continue;
        }
        let unit = &document.axis.unit;
        let name = if scene.label.is_empty() { &document.axis.label } else { &scene.label };
        let mut header = vec![name.clone()];
        header.extend(positions.iter().map(|x| format!("{} {unit}", number(*x))));
        let rows = curves.iter().map(|curve| {
            let mut row = vec![(Paint::Plain, curve.label.clone())];
            row.extend(positions.iter().map(|x| {
                let value = value(document, (&scene.id, &curve.id), *x, &figure.measure);
                (Paint::Plain, value.map(number).unwrap_or_default())
            }));
            row
        });
        let header: Vec<&str> = header.iter().map(String::as_str).collect();
        lines.extend(table_of_numbers(&header, rows.collect(), style));
    }
    lines
}

fn value(
    document: &ResultsDocument,
    (scene, curve): (&str, &str),
    x: f64,
    of: &Measure,
) -> Option<f64> {
    let point = document.points_of_curve(scene, curve).find(|point| point.x == x)?;
    point.measures.get(of).map(|summary| summary.value)
}

/// Returns as many positions on the axis as fit on a line, including the first and the last.
fn evenly_spaced(positions: &[f64]) -> Vec<f64> {
    if positions.len() <= COLUMNS {
        return positions.to_vec();
    }
    let last = positions.len() - 1;
    (0..COLUMNS).map(|column| positions[column * last / (COLUMNS - 1)]).collect()
}

fn claims(claims: &[ClaimVerdict], style: OutputStyle) -> Vec<PaintedLine> {
    let mut lines = Vec::new();
    for claim in claims {
        let paint = match claim.outcome {
            ClaimOutcome::Accepted => Paint::Good,
            ClaimOutcome::Refused => Paint::Bad,
            ClaimOutcome::Undecided
            | ClaimOutcome::NotMeasured
            | ClaimOutcome::NotJudged
            | ClaimOutcome::ShownOnly => Paint::Dim,
        };
        let mut heading = PaintedLine::new().with_span(Paint::Head, format!("  {:>2}  ", claim.id));
        heading.push(paint, claim.outcome.describe());
        lines.extend(with_suffix(heading, &format!("  published: {}", claim.published), 6, style));
        lines.extend(wrapped(Paint::Plain, &claim.text, 6, style));
        lines.extend(claim.checks.iter().flat_map(|verdict| check(verdict, style)));
        if !claim.note.is_empty() {
            lines.extend(wrapped(Paint::Dim, &claim.note, 6, style));
        }
    }
    lines
}

/// Returns a line with more text at its end, or below it if there is no room.
fn with_suffix(
    line: PaintedLine,
    more: &str,
    column: usize,
    style: OutputStyle,
) -> Vec<PaintedLine> {
    let whole = line.clone().with_span(Paint::Dim, style.transliterate(more));
    match whole.width() <= style.width {
        true => vec![whole],
        false => {
            let below = wrapped(Paint::Dim, more, column, style);
            std::iter::once(line).chain(below).collect()
        }
    }
}

fn check(check: &CheckVerdict, style: OutputStyle) -> Vec<PaintedLine> {
    let measured = check
        .measured
        .map_or_else(|| "–".to_owned(), |value| estimate(value, check.interval, &check.unit));
    let bounds = if check.accept.is_empty() {
        String::new()
    } else {
        let accepted = format!("{} {}", check.accept.describe(), check.unit);
        let spans =
            if check.outcome == ClaimOutcome::Undecided { ", the interval spans it" } else { "" };
        format!("  (wanted {}{spans})", accepted.trim_end())
    };
    let about = if check.about.is_empty() { &check.value } else { &check.about };
    let paint = if check.outcome == ClaimOutcome::Refused { Paint::Bad } else { Paint::Dim };
    wrapped(paint, &format!("{about}: {measured}{bounds}"), 8, style)
}

/// Returns the locations of the results.
pub(super) fn locations(out: &Path, elapsed: Duration) -> Vec<PaintedLine> {
    let elapsed =
        format!("took {}; result.json and result.csv are in {}", time(elapsed), out.display());
    let mut lines = vec![PaintedLine::new(), PaintedLine::new().with_span(Paint::Dim, elapsed)];
    lines.extend(report_location(out));
    lines
}

/// Returns the location of the report.
pub(super) fn report_location(out: &Path) -> Vec<PaintedLine> {
    let path = out.join("report.html").display().to_string();
    vec![PaintedLine::new().with_span(Paint::Dim, "report  ").with_span(Paint::Command, path)]
}
