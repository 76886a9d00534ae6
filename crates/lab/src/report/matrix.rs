//! The table of all curves, with a colour for each cell and a link to the packets behind it.

use super::markup::{escape, estimate, short};
use crate::plan::MatrixColumn;
use crate::results::{MatrixLine, MatrixNumber, NumberGrade, PointRow, ResultsDocument};
use crate::run::{PacketCourse, PacketLine};

/// Returns the table; empty if the plan has none.
pub(super) fn section(document: &ResultsDocument) -> String {
    let Some(matrix) = &document.matrix else { return String::new() };
    let has = |position: &usize| matrix.rows.iter().any(|row| row.cells[*position].run);
    let shown: Vec<usize> = (0..matrix.columns.len()).filter(has).collect();
    let head: String = shown.iter().map(|position| column(&matrix.columns[*position])).collect();
    let rows: String = matrix.rows.iter().map(|line| row(line, &matrix.columns, &shown)).collect();
    let legend: String = shown
        .iter()
        .map(|position| {
            let column = &matrix.columns[*position];
            format!("<dt>{}</dt><dd>{}</dd>", escape(&column.label), escape(&column.about))
        })
        .collect();
    if shown.is_empty() {
        return String::new();
    }
    format!(
        "<section id=\"matrix\">\n<h2>Overview</h2>\n<div class=\"scroll matrix\"><table>\n\
         <thead><tr><th></th>{head}</tr></thead>\n<tbody>\n{rows}</tbody>\n</table></div>\n\
         <p class=\"method\">Numbers are medians; each links to the packets that it was derived from. \
         A – means that nothing could be measured, for example because there was no response within \
         the time limit; an empty cell was not run. Published values are in small print.</p>\n\
         <details>\n<summary>Meaning of the columns</summary>\n<dl>{legend}</dl>\n</details>\n</section>\n"
    )
}

fn column(column: &MatrixColumn) -> String {
    let unit = match column.unit.as_str() {
        "" => String::new(),
        unit => format!(" [{}]", escape(unit)),
    };
    let (label, about) = (escape(&column.label), escape(&column.about));
    format!("<th scope=\"col\" title=\"{about}\">{label}{unit}</th>")
}

fn row(line: &MatrixLine, columns: &[MatrixColumn], shown: &[usize]) -> String {
    let cells: String =
        shown.iter().map(|position| cell(&line.cells[*position], &columns[*position])).collect();
    format!(
        "<tr><th scope=\"row\">{}<small>{}</small></th>{cells}</tr>\n",
        escape(&line.label),
        escape(&line.version),
    )
}

fn cell(cell: &MatrixNumber, column: &MatrixColumn) -> String {
    let published = match cell.published.as_str() {
        "" => String::new(),
        published => format!("<small>{}</small>", escape(published)),
    };
    if !cell.run {
        return format!("<td>{published}</td>");
    }
    let class = match cell.grade(column) {
        NumberGrade::Good => "good",
        NumberGrade::Slow => "slow",
        NumberGrade::Bad => "bad",
        NumberGrade::None => "",
    };
    let text = cell.value.map_or_else(|| "–".to_owned(), short);
    let exact = cell.value.map_or_else(
        || "nothing could be measured".to_owned(),
        |value| estimate(value, cell.interval, &column.unit),
    );
    format!(
        "<td class=\"{class}\" title=\"{}\"><a href=\"#{}\">{}</a>{published}</td>",
        escape(&exact),
        anchor(&cell.point),
        escape(&text),
    )
}

fn anchor(point: &str) -> String {
    format!("packets-{}", escape(point))
}

/// Returns the packets of every point that was run; each section is shown on request.
pub(super) fn packets(document: &ResultsDocument) -> String {
    document
        .points
        .iter()
        .filter(|point| !point.packets.is_empty())
        .map(|at| point_text(document, at))
        .collect()
}

fn point_text(document: &ResultsDocument, point: &PointRow) -> String {
    let label = |named: &[crate::situation::NamedLabel], id: &str| {
        let found = named.iter().find(|item| item.id == id);
        found.map_or_else(|| id.to_owned(), |item| item.label.clone())
    };
    let (client, scene) =
        (label(&document.curves, &point.curve), label(&document.scenes, &point.scene));
    let position = match point.x {
        0.0 => String::new(),
        x => format!(", {} {}", short(x), document.axis.unit),
    };
    let courses: String = point.packets.iter().map(course).collect();
    format!(
        "<section class=\"course\" id=\"{}\">\n<h2>{}: {}</h2>\n<p class=\"method\">The packets of the \
         first trial, at the client's end of the link; times in ms since the first query for the \
         name. Repetitions and queries for other names are omitted. <a href=\"#matrix\">Back to the table</a></p>\n{courses}</section>\n",
        anchor(&point.id),
        escape(&client),
        escape(&format!("{scene}{position}")),
    )
}

fn course(course: &PacketCourse) -> String {
    let lines: String = course.lines.iter().map(line).collect();
    let omission = match course.left_out {
        0 => String::new(),
        number => format!("<p class=\"method\">and {number} more</p>\n"),
    };
    format!(
        "<h3><code>{}</code></h3>\n<table>\n<tbody>\n{lines}</tbody>\n</table>\n{omission}",
        escape(&course.what),
    )
}

fn line(line: &PacketLine) -> String {
    let (class, arrow) = if line.sent { ("sent", "→") } else { ("got", "←") };
    format!(
        "<tr class=\"{class}\"><td>{:.1}</td><td>{arrow} {}</td></tr>\n",
        line.at,
        escape(&line.what),
    )
}
