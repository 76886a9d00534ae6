//! Text as a terminal shows it: coloured spans, durations for people.

mod amount;
mod letters;
mod paint;
mod table;

#[cfg(test)]
mod tests;

pub(crate) use amount::{count, counted, time};
pub(crate) use letters::{shown, shown_json};
pub(crate) use paint::{OutputStyle, Paint, PaintedLine, columns, current_width, wrapped};
pub(crate) use table::{table, table_of_numbers};
