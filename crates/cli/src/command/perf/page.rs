//! The live line and the tables of `eyas perf`.

use std::time::Duration;

use eyas::race::candidate::{Security, Transport};
use eyas_perf::client::TestProgress;
use eyas_perf::protocol::EndReport;
use eyas_perf::protocol::statistics::FlowReport;

use super::setup::PerfSetup;
use super::{MeasuredTest, PerfRow, early_end};
use crate::terminal::{
    OutputStyle, Paint, PaintedLine, columns, counted, table_of_numbers, time, wrapped,
};

/// Stands for what is not known.
const UNKNOWN: &str = "-";

/// A row of a table: its cells.
type TableCells = Vec<(Paint, String)>;

/// Returns the current state in one line, without what has no room.
pub(super) fn progress_line(transport: Transport, progress: &TestProgress, width: usize) -> String {
    let elapsed = progress.interval.start + progress.interval.length;
    let way = if progress.up { "up" } else { "down" };
    let rate = progress.interval.rate().unwrap_or_default();
    let mut text = format!("{transport} {way}  {}  {} Mbit/s", time(elapsed), megabits(rate));
    if let Some(round_trip) = progress.round_trip {
        let more = format!("  round trip {}", time(round_trip));
        // Beside the spinner.
        if columns(&text) + columns(&more) + 2 <= width {
            text += &more;
        }
    }
    text
}

/// Returns the report of all tests.
pub(super) fn report(setup: &PerfSetup, rows: &[PerfRow], style: OutputStyle) -> Vec<PaintedLine> {
    let mut lines = vec![
        PaintedLine::new().with_span(Paint::Head, format!("Throughput to {}", setup.name)),
        PaintedLine::new().with_span(Paint::Dim, format!("  {}", description(setup))),
        PaintedLine::new(),
    ];
    let tests: Vec<&MeasuredTest> =
        rows.iter().filter_map(|row| row.result.as_ref().ok()).collect();
    if !tests.is_empty() {
        let header = ["", "set up", "first byte", "Mbit/s", "again", "CPU s/GB"];
        let rates = tests.iter().flat_map(|test| rate_rows(test)).collect();
        lines.extend(table_of_numbers(&header, rates, style));
        let round_trips: Vec<TableCells> =
            tests.iter().filter_map(|test| latency_row(test)).collect();
        if !round_trips.is_empty() {
            lines.push(PaintedLine::new());
            let header = ["round trips", "idle", "loaded", "90 %", "99 %", "longest", "RPM"];
            lines.extend(table_of_numbers(&header, round_trips, style));
        }
    }
    let notes: Vec<PaintedLine> = tests.iter().flat_map(|test| notes(test, style)).collect();
    let failed = rows.iter().filter_map(|row| Some((row.transport, row.result.as_ref().err()?)));
    let failed = failed.flat_map(|(transport, failure)| {
        wrapped(Paint::Bad, &format!("{transport}: {failure}"), 2, style)
    });
    let below: Vec<PaintedLine> = notes.into_iter().chain(failed).collect();
    if !below.is_empty() {
        lines.extend((!tests.is_empty()).then(PaintedLine::new));
        lines.extend(below);
    }
    lines
}

/// Describes what was asked for.
fn description(setup: &PerfSetup) -> String {
    let request = &setup.request;
    let mut parts = vec![match request.count {
        0 => format!("{} each", time(request.time)),
        count => format!("{} each", counted(count, "message")),
    }];
    if !request.omit.is_zero() {
        parts.push(format!("{} before that omitted", time(request.omit)));
    }
    parts.push(counted(request.streams.into(), "stream"));
    parts.push(format!("messages of {}", bytes_text(request.size.into())));
    if request.rate > 0 {
        parts.push(format!("at {} Mbit/s", megabits(request.rate as f64)));
    }
    parts.join(", ")
}

fn name(test: &MeasuredTest, way: &str) -> String {
    let (transport, security) = (test.info.transport, test.info.security);
    match security {
        Security::None => format!("{transport} {way}"),
        security => format!("{transport} {} {way}", security.name()),
    }
}

/// Returns a row for each direction of a test.
fn rate_rows(test: &MeasuredTest) -> Vec<TableCells> {
    let outcome = &test.report.outcome;
    let ends = [Some(&outcome.client), outcome.server.as_ref()];
    let flows = [("up", &outcome.up, ends[0]), ("down", &outcome.down, ends[1])];
    let mut rows = Vec::new();
    for (way, flow, sender) in flows {
        let Some(flow) = flow else { continue };
        let again = sender.and_then(|sender| sender.retransmitted);
        let mut cells = vec![name(test, way)];
        cells.extend(match rows.is_empty() {
            true => [time(test.connect), time(test.first_byte)],
            // Both directions have the same connection.
            false => [String::new(), String::new()],
        });
        cells.push(goodput(flow));
        cells.push(again.map_or_else(|| UNKNOWN.to_owned(), |packets| packets.to_string()));
        cells.push(match rows.is_empty() {
            true => ends.map(|end| cpu_text(end, outcome_bytes(test))).join(" / "),
            false => String::new(),
        });
        rows.push(cells.into_iter().map(|text| (Paint::Plain, text)).collect::<TableCells>());
        if let Some((paint, _)) = rows.last_mut().and_then(|row| row.get_mut(3)) {
            *paint = if flow.bytes() > 0 { Paint::Good } else { Paint::Bad };
        }
    }
    rows
}

/// Returns the bytes that were received in both directions.
pub(super) fn outcome_bytes(test: &MeasuredTest) -> u64 {
    let outcome = &test.report.outcome;
    outcome.up.iter().chain(&outcome.down).map(FlowReport::bytes).fold(0, u64::saturating_add)
}

/// Returns the CPU time of an end for each gigabyte that was received, in seconds.
pub(super) fn cpu_per_gigabyte(end: Option<&EndReport>, bytes: u64) -> Option<f64> {
    let cpu = end?.cpu?;
    (bytes > 0).then(|| cpu.as_secs_f64() / (bytes as f64 / 1e9))
}

fn cpu_text(end: Option<&EndReport>, bytes: u64) -> String {
    match cpu_per_gigabyte(end, bytes) {
        Some(seconds) if seconds < 9.995 => format!("{seconds:.2}"),
        Some(seconds) => format!("{seconds:.0}"),
        None => UNKNOWN.to_owned(),
    }
}

/// Formats the goodput with its confidence interval.
fn goodput(flow: &FlowReport) -> String {
    let Some(rate) = flow.goodput() else { return UNKNOWN.to_owned() };
    match flow.confidence() {
        Some(confidence) => {
            let half = confidence.half_width / 1e6;
            format!("{} ± {half:.*}", megabits(rate), decimals(rate))
        }
        None => megabits(rate),
    }
}

/// Formats a number of bytes that was given as a round one.
pub(super) fn bytes_text(bytes: u64) -> String {
    indicatif::BinaryBytes(bytes).to_string().replace(".00 ", " ")
}

/// Formats a rate in Mbit/s with about three digits.
fn megabits(rate: f64) -> String {
    format!("{:.*}", decimals(rate), rate / 1e6)
}

fn decimals(rate: f64) -> usize {
    match rate / 1e6 {
        megabits if megabits >= 99.95 => 0,
        megabits if megabits >= 9.995 => 1,
        megabits if megabits >= 0.0995 => 2,
        _ => 4,
    }
}

fn latency_row(test: &MeasuredTest) -> Option<TableCells> {
    let outcome = &test.report.outcome;
    let way = match (outcome.up.is_some(), outcome.down.is_some()) {
        (true, true) => "up, down",
        (true, false) => "up",
        _ => "down",
    };
    let (idle, loaded) = (&test.report.idle, &test.report.loaded);
    if idle.is_none() && loaded.is_none() {
        return None;
    }
    let shown = |value: Option<Duration>| value.map_or_else(|| UNKNOWN.to_owned(), time);
    let of_loaded = |get: fn(&eyas_perf::protocol::round_trips::RoundTripSummary) -> Duration| {
        shown(loaded.as_ref().map(get))
    };
    let rpm = loaded.as_ref().and_then(|loaded| loaded.per_minute());
    let cells = [
        name(test, way),
        shown(idle.as_ref().map(|idle| idle.median)),
        of_loaded(|loaded| loaded.median),
        of_loaded(|loaded| loaded.p90),
        of_loaded(|loaded| loaded.p99),
        of_loaded(|loaded| loaded.max),
        rpm.map_or_else(|| UNKNOWN.to_owned(), |rpm| format!("{rpm:.0}")),
    ];
    Some(cells.into_iter().map(|text| (Paint::Plain, text)).collect())
}

/// Returns what a reader of the numbers must know.
fn notes(test: &MeasuredTest, style: OutputStyle) -> Vec<PaintedLine> {
    let outcome = &test.report.outcome;
    let mut texts = Vec::new();
    if let Some(text) = early_end(outcome.ended) {
        texts.push(text.to_owned());
    }
    if test.is_capped() {
        let granted = &outcome.grant.request;
        let of = |count: u64, time_: Duration| match count {
            0 => time(time_),
            count => format!("{}, {}", counted(count, "message"), time(time_)),
        };
        let (granted, asked) =
            (of(granted.count, granted.duration()), of(test.asked.count, test.asked.duration()));
        texts.push(format!("the server allows {granted} instead of {asked}"));
    }
    for flow in outcome.up.iter().chain(&outcome.down) {
        let confidence = flow.confidence().filter(|confidence| confidence.is_too_narrow());
        if let Some(r) = confidence.and_then(|confidence| confidence.autocorrelation) {
            texts.push(format!(
                "neighboring intervals are alike (r = {r:.2}), so the goodput is less certain than ± says; \
                 a longer --interval and --time help"
            ));
        }
    }
    let way = if outcome.up.is_some() { "up" } else { "down" };
    let lines =
        |text: String| wrapped(Paint::Warn, &format!("{}: {text}", name(test, way)), 2, style);
    texts.into_iter().flat_map(lines).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_three_digits() {
        for (rate, text) in [
            (12_345e6, "12345"),
            (941.4e6, "941"),
            (99.96e6, "100"),
            (18.94e6, "18.9"),
            (1.234e6, "1.23"),
            (0.0123e6, "0.0123"),
        ] {
            assert_eq!(megabits(rate), text);
        }
    }
}
