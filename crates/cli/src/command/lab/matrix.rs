//! The table of all curves on a terminal.

use eyas_lab::plan::MatrixColumn;
use eyas_lab::report::short;
use eyas_lab::results::{MatrixNumber, NumberGrade, ResultsDocument};

use crate::terminal::{OutputStyle, Paint, PaintedLine, table_of_numbers};

/// The characters around each column.
const COLUMN_PADDING: usize = 4;

/// Returns the table of all curves, in as many parts below one another as necessary; empty if there
/// is none.
pub(super) fn lines(document: &ResultsDocument, style: OutputStyle) -> Vec<PaintedLine> {
    let Some(matrix) = &document.matrix else { return Vec::new() };
    let has = |index: &usize| matrix.rows.iter().any(|row| row.cells[*index].run);
    let shown: Vec<usize> = (0..matrix.columns.len()).filter(has).collect();
    let headers: Vec<String> =
        shown.iter().map(|index| header_text(&matrix.columns[*index])).collect();
    let first = matrix.rows.iter().map(|row| row.label.chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> =
        headers.iter().map(|header_text| header_text.chars().count() + COLUMN_PADDING).collect();
    let available = style.width.saturating_sub(first + COLUMN_PADDING);
    let mut lines = Vec::new();
    for part in parts(&widths, available) {
        let mut header = vec![""];
        header.extend(headers[part.clone()].iter().map(String::as_str));
        let rows = matrix.rows.iter().map(|row| {
            let of = |index: &usize| cell(&row.cells[*index], &matrix.columns[*index]);
            let cells = shown[part.clone()].iter().map(of);
            [(Paint::Plain, row.label.clone())].into_iter().chain(cells).collect()
        });
        lines.push(PaintedLine::new());
        lines.extend(table_of_numbers(&header, rows.collect(), style));
    }
    lines
}

fn header_text(column: &MatrixColumn) -> String {
    let unit = if column.unit.is_empty() { "" } else { ", " };
    format!("{}{unit}{}", column.label, column.unit)
}

/// Divides the columns into parts with as many as fit, and at least one.
fn parts(widths: &[usize], available: usize) -> Vec<std::ops::Range<usize>> {
    let mut parts = Vec::new();
    let (mut begin, mut used) = (0, 0);
    for (index, width) in widths.iter().enumerate() {
        if index > begin && used + width > available {
            parts.push(begin..index);
            (begin, used) = (index, 0);
        }
        used += width;
    }
    if begin < widths.len() {
        parts.push(begin..widths.len());
    }
    parts
}

fn cell(cell: &MatrixNumber, column: &MatrixColumn) -> (Paint, String) {
    let paint = match cell.grade(column) {
        NumberGrade::Good => Paint::Good,
        NumberGrade::Slow => Paint::Warn,
        NumberGrade::Bad => Paint::Bad,
        NumberGrade::None => Paint::Plain,
    };
    let text = match cell.value {
        _ if !cell.run => String::new(),
        Some(value) => short(value),
        None => "–".to_owned(),
    };
    (paint, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_is_in_one_part_that_has_room_for_it() {
        assert_eq!(parts(&[10, 20, 30, 10], 40), [0..2, 2..4]);
        assert_eq!(parts(&[50, 50], 40), [0..1, 1..2]);
        assert_eq!(parts(&[], 40), []);
    }
}
