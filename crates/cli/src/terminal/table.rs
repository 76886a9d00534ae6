//! Tables that fit the screen.

use comfy_table::{Attribute, Cell, Color, ColumnConstraint, ContentArrangement, Table};

use super::{Line, Look, Paint};

/// Columns before a table.
const INDENT: usize = 2;

/// A rule below the header and no other line, in the order that comfy-table reads its presets.
const UNICODE: &str = "     ──            ";
const ASCII: &str = "     --            ";

/// Lays out a table; what is too wide in the last column is broken into lines.
pub(crate) fn table(header: &[&str], rows: Vec<Vec<(Paint, String)>>, look: Look) -> Vec<Line> {
    lay_out(header, rows, header.len().saturating_sub(1), look)
}

/// The same for numbers after names: it is the names that are broken.
pub(crate) fn table_of_numbers(
    header: &[&str],
    rows: Vec<Vec<(Paint, String)>>,
    look: Look,
) -> Vec<Line> {
    lay_out(header, rows, 0, look)
}

fn lay_out(
    header: &[&str],
    rows: Vec<Vec<(Paint, String)>>,
    breaks: usize,
    look: Look,
) -> Vec<Line> {
    let mut table = Table::new();
    table.load_preset(if look.unicode { UNICODE } else { ASCII });
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(look.width - INDENT).unwrap_or(u16::MAX));
    table.set_header(header.iter().map(|text| cell(Paint::Dim, text)).collect::<Vec<_>>());
    for row in rows {
        table.add_row(row.iter().map(|(paint, text)| cell(*paint, text)).collect::<Vec<_>>());
    }
    for (number, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if number != breaks {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    match look.colour {
        true => table.enforce_styling(),
        false => table.force_no_tty(),
    };
    let indent = " ".repeat(INDENT);
    table.lines().map(|line| Line::new().with(Paint::Plain, format!("{indent}{line}"))).collect()
}

fn cell(paint: Paint, text: &str) -> Cell {
    let cell = Cell::new(text);
    match paint {
        Paint::Plain => cell,
        Paint::Dim => cell.add_attribute(Attribute::Dim),
        Paint::Head => cell.add_attribute(Attribute::Bold),
        Paint::Good => cell.add_attribute(Attribute::Bold).fg(Color::DarkGreen),
        Paint::Bad => cell.fg(Color::DarkRed),
        Paint::Warn => cell.fg(Color::DarkYellow),
        Paint::Quic | Paint::Command => cell.fg(Color::DarkCyan),
        Paint::Stream => cell.fg(Color::DarkBlue),
    }
}
