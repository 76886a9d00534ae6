//! Tables that fit the width of the terminal.

use comfy_table::{
    Attribute, Cell, Color, ColumnConstraint, ContentArrangement, LineStyle, Table, TableStyle,
};

use super::{OutputStyle, Paint, PaintedLine, columns, wrapped};

/// The indentation of a table, and of text below one of its rows.
const INDENT: usize = 2;
const BELOW: usize = 6;
/// Spaces after each column, in addition to the one that the library puts between two columns.
const GAP: u16 = 2;
/// Stands for no column: none is wrapped.
const NONE: usize = usize::MAX;

const UNICODE: TableStyle = ruled('─');
const ASCII: TableStyle = ruled('-');

/// The minimum width of a wrapped last column: text with one word per line is hard to read.
const READABLE: usize = 24;

/// A row: its cells.
type TableRow = Vec<(Paint, String)>;

/// Lays out a table. The last column is wrapped if it is too wide, and printed below the others if
/// they leave no room for it.
pub(crate) fn table(header: &[&str], rows: Vec<TableRow>, style: OutputStyle) -> Vec<PaintedLine> {
    let rows = transliterate(rows, style);
    let (last, gap) = (header.len().saturating_sub(1), usize::from(GAP));
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|(_, text)| columns(text));
        cells.chain([columns(header[column])]).max().unwrap_or_default()
    };
    let others: usize = (0..last).map(|column| width(column) + gap + 1).sum();
    if INDENT + others > style.width
        && let Some(widest) = (0..last).max_by_key(|column| width(*column)).filter(|_| last > 1)
    {
        return table_without(widest, header, rows, style);
    }
    let room = style.width.saturating_sub(INDENT + others + gap);
    let texts = rows.iter().filter_map(|row| row.get(last)).map(|(_, text)| text);
    let words = texts.flat_map(|text| text.split_whitespace());
    let longest = words.map(columns).max().unwrap_or_default();
    // Words are not broken, either.
    match last > 0 && room < width(last).min(READABLE.max(longest)) {
        true => last_below(header, rows, style),
        false => lay_out(header, rows, last, style),
    }
}

/// Returns a table in which the cells of this column are prepended to those of the last one.
fn table_without(
    column: usize,
    header: &[&str],
    mut rows: Vec<TableRow>,
    style: OutputStyle,
) -> Vec<PaintedLine> {
    for row in rows.iter_mut().filter(|row| row.len() > column + 1) {
        let (_, moved) = row.remove(column);
        if let Some((_, last)) = row.last_mut() {
            *last = format!("{moved}  {last}");
        }
    }
    let mut header: Vec<String> = header.iter().map(ToString::to_string).collect();
    let moved = header.remove(column);
    if let Some(last) = header.last_mut() {
        *last = format!("{moved}  {last}");
    }
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    table(&header, rows, style)
}

/// Returns a table whose last column is printed below the others, as text.
fn last_below(header: &[&str], mut rows: Vec<TableRow>, style: OutputStyle) -> Vec<PaintedLine> {
    let last_cells: Vec<(Paint, String)> = rows.iter_mut().filter_map(Vec::pop).collect();
    let (last, header) = header.split_last().unwrap_or((&"", header));
    let mut above = lay_out(header, rows, NONE, style).into_iter();
    let mut lines: Vec<PaintedLine> = above.next().into_iter().collect();
    lines.extend(wrapped(Paint::Dim, last, BELOW, style));
    lines.extend(above.next());
    for (line, (paint, text)) in above.zip(last_cells) {
        lines.push(line);
        if !text.is_empty() {
            lines.extend(wrapped(paint, &text, BELOW, style));
        }
    }
    lines
}

fn transliterate(rows: Vec<TableRow>, style: OutputStyle) -> Vec<TableRow> {
    let cell = |(paint, text): (Paint, String)| (paint, style.transliterate(&text).into_owned());
    rows.into_iter().map(|row| row.into_iter().map(cell).collect()).collect()
}

/// Lays out a table of numbers after names; the names are wrapped, or printed above their numbers if
/// a word of one would be broken.
pub(crate) fn table_of_numbers(
    header: &[&str],
    rows: Vec<TableRow>,
    style: OutputStyle,
) -> Vec<PaintedLine> {
    let header: Vec<_> = header.iter().map(|text| style.transliterate(text)).collect();
    let header: Vec<&str> = header.iter().map(AsRef::as_ref).collect();
    let rows = transliterate(rows, style);
    let gap = usize::from(GAP);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column)).map(|(_, text)| columns(text));
        cells.chain([columns(header[column])]).max().unwrap_or_default()
    };
    let numbers: usize = (1..header.len()).map(|column| width(column) + gap + 1).sum();
    let names = rows.iter().filter_map(|row| row.first()).map(|(_, text)| text.as_str());
    let words = names.chain(header.first().copied()).flat_map(str::split_whitespace);
    let longest = words.map(columns).max().unwrap_or_default();
    match INDENT + longest + gap + numbers > style.width {
        true => names_above(&header, rows, style),
        false => lay_out(&header, rows, 0, style),
    }
}

/// Returns a table whose first column is printed above the rows, once for equal names.
fn names_above(header: &[&str], mut rows: Vec<TableRow>, style: OutputStyle) -> Vec<PaintedLine> {
    let Some((first, header)) = header.split_first() else { return Vec::new() };
    let names: Vec<(Paint, String)> =
        rows.iter_mut().filter(|row| !row.is_empty()).map(|row| row.remove(0)).collect();
    let mut below = lay_out(header, rows, NONE, style).into_iter();
    let mut lines = wrapped(Paint::Dim, first, INDENT, style);
    lines.extend(below.by_ref().take(2));
    let mut last = None;
    for (name, line) in names.into_iter().zip(below) {
        if last.as_ref() != Some(&name) {
            lines.extend(wrapped(name.0, &name.1, INDENT, style));
        }
        lines.push(line);
        last = Some(name);
    }
    lines
}

fn lay_out(
    header: &[&str],
    rows: Vec<TableRow>,
    wrapped_column: usize,
    style: OutputStyle,
) -> Vec<PaintedLine> {
    let mut table = Table::new();
    table.load_style(if style.unicode { UNICODE } else { ASCII });
    table.set_content_arrangement(ContentArrangement::Dynamic);
    table.set_width(u16::try_from(style.width - INDENT).unwrap_or(u16::MAX));
    table.set_header(header.iter().map(|text| cell(Paint::Dim, text)).collect::<Vec<_>>());
    for row in rows {
        table.add_row(row.iter().map(|(paint, text)| cell(*paint, text)).collect::<Vec<_>>());
    }
    for (number, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, GAP));
        if number != wrapped_column {
            column.set_constraint(ColumnConstraint::ContentWidth);
        }
    }
    match style.colour {
        true => table.enforce_styling(),
        false => table.force_no_tty(),
    };
    let indent = " ".repeat(INDENT);
    table.lines().map(|line| PaintedLine::coloured(format!("{indent}{line}"))).collect()
}

/// Returns a style with a rule below the header and no other line.
const fn ruled(rule: char) -> TableStyle {
    TableStyle::new().header_separator(LineStyle::none().fill(rule).junction(rule))
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
