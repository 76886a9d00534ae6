//! The measurements as tables.

use std::fmt::Write as _;

use super::programs::{Link, OURS};
use super::{Column, ON_ONE_SOCKET, Results, SIZES};
use crate::statistics::middle;
use crate::transfer::TransferReport;

/// Returns the median of one figure of a program in a column, if more than half of its runs succeeded.
pub(super) fn median(
    results: &Results,
    name: &'static str,
    column: Column,
    figure: fn(&TransferReport) -> f64,
) -> Option<f64> {
    let runs = results.get(&(name, column))?;
    let mut figures: Vec<f64> = runs.iter().flatten().map(figure).collect();
    if figures.len() * 2 <= runs.len() {
        return None;
    }
    middle(&mut figures)
}

/// Returns a table of CPU seconds per gigabyte, for both ends together.
pub(super) fn costs(names: &[&'static str], results: &Results) -> String {
    let cell = |name, column| {
        median(results, name, column, TransferReport::cost)
            .map_or("–".into(), |cost| format!("{cost:.2}"))
    };
    by_size("CPU-seconds per GB", names, cell)
}

/// Returns a table of Mbit/s of messages.
pub(super) fn speeds(names: &[&'static str], results: &Results) -> String {
    let cell = |name, column| {
        median(results, name, column, TransferReport::speed)
            .map_or("–".into(), |speed| format!("{speed:.0}"))
    };
    by_size("Mbit/s", names, cell)
}

fn by_size(
    head: &str,
    names: &[&'static str],
    cell: impl Fn(&'static str, Column) -> String,
) -> String {
    let mut text = format!("| {head} |");
    for carrier in ["memory", "UDP"] {
        for size in SIZES {
            let _ = write!(text, " {carrier} {size} B |");
        }
    }
    text.push_str("\n| --- |");
    text.push_str(&" ---: |".repeat(2 * SIZES.len()));
    text.push('\n');
    for name in names {
        let _ = write!(text, "| {name} |");
        for column in SIZES.map(Column::Memory).into_iter().chain(SIZES.map(Column::Udp)) {
            let _ = write!(text, " {} |", cell(name, column));
        }
        text.push('\n');
    }
    text
}

/// Returns a table of how fast associations are set up, and of the memory of idle ones.
pub(super) fn associations(names: &[&'static str], results: &Results) -> String {
    let mut text = String::from(
        "| associations | set up per CPU-second | bytes per idle endpoint |\n| --- | ---: | ---: |\n",
    );
    for name in names {
        let figure = |of| median(results, name, Column::Associations, of);
        let formatted =
            |figure: Option<f64>| figure.map_or("–".into(), |figure| format!("{figure:.0}"));
        let (rate, memory) = (figure(TransferReport::rate), figure(|answer| answer.memory / 2.0));
        let _ = writeln!(text, "| {name} | {} | {} |", formatted(rate), formatted(memory));
    }
    text
}

/// Returns the same over sockets, including everything besides the protocol.
pub(super) fn sockets(results: &Results) -> String {
    let figure = |of| {
        let figure: Option<f64> = median(results, OURS, Column::Sockets, of);
        figure.map_or("–".into(), |figure| format!("{figure:.0}"))
    };
    let speed = figure(|answer| answer.messages as f64 / answer.wall);
    let (rate, memory) = (figure(TransferReport::rate), figure(|answer| answer.memory / 2.0));
    format!(
        "| {ON_ONE_SOCKET} associations on one UDP socket | set up per second | per CPU-second | \
         bytes per idle endpoint |\n| --- | ---: | ---: | ---: |\n\
         | eyas, including drivers | {speed} | {rate} | {memory} |\n"
    )
}

/// Returns a table of the shares of each stack and controller on a long path with losses.
pub(super) fn links(links: &[Link]) -> String {
    let mut text = String::from(
        "| 100 Mbit/s, 100 ms round trip, 0.1 % loss | share of the link |\n| --- | ---: |\n",
    );
    for link in links {
        let _ = writeln!(text, "| {} | {:.1} % |", link.name, link.share * 100.0);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_median_needs_every_run() {
        let run = TransferReport { bytes: 1_000_000_000, cpu: 0.25, ..TransferReport::default() };
        let mut results = Results::new();
        results.insert(("eyas", Column::Memory(64)), vec![Some(run), None]);
        assert_eq!(median(&results, "eyas", Column::Memory(64), TransferReport::cost), None);
        results.insert(("eyas", Column::Memory(64)), vec![Some(run)]);
        assert_eq!(median(&results, "eyas", Column::Memory(64), TransferReport::cost), Some(0.25));
    }

    #[test]
    fn every_row_has_a_cell_for_every_column() {
        let text = costs(&["eyas", "pion"], &Results::new());
        assert!(text.lines().all(|line| line.matches('|').count() == 2 * SIZES.len() + 2));
        assert_eq!(text.lines().count(), 4);
    }
}
