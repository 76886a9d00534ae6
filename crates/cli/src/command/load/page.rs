//! The live line of a load, and its report.

use std::time::Duration;

use eyas_http::without_password;
use eyas_load::{LoadProgress, LoadSummary, TimePercentiles};

use super::requested::RequestedLoad;
use crate::terminal::{
    OutputStyle, Paint, PaintedLine, columns, count, counted, table, table_of_numbers, time,
    wrapped,
};

/// Columns before the live line.
const SPINNER: usize = 2;

/// The times of the report, in chronological order.
const TIMES: [(&str, &str); 6] = [
    ("late", "late start"),
    ("dns", "DNS"),
    ("connect", "connect"),
    ("security", "security"),
    ("first-byte", "first byte"),
    ("total", "whole response"),
];

/// Returns the current state in one line with this number of columns; the least important parts are
/// omitted first.
pub(super) fn progress_line(progress: &LoadProgress<'_>, width: usize) -> String {
    let (tally, total) = (progress.tally, progress.total);
    let elapsed = time(Duration::from_secs(progress.elapsed.as_secs()));
    if progress.is_warming_up {
        return format!("{elapsed}  warming up, in flight {}", progress.in_flight);
    }
    let rate = tally.answered as f64 / progress.interval.as_secs_f64().max(f64::MIN_POSITIVE);
    let mut parts = vec![(0, elapsed), (1, format!("{rate:.0}/s"))];
    if let Some(times) = TimePercentiles::from_histogram(&tally.times.total) {
        let [p50, p90, p99] = [times.p50, times.p90, times.p99].map(format_millis);
        parts.extend([(4, format!("median {p50}")), (7, format!("90 % {p90}"))]);
        parts.push((5, format!("99 % {p99}")));
    }
    parts.push((6, format!("in flight {}", progress.in_flight)));
    for (rank, what, number) in [
        (2, "failed", total.failed()),
        (3, "status 400 and above", total.refused()),
        (3, "dropped", total.dropped),
    ] {
        if number > 0 {
            parts.push((rank, format!("{what} {}", count(number))));
        }
    }
    fit(parts, width.saturating_sub(SPINNER))
}

/// Joins the parts, omitting those with the highest numbers if there is not enough room.
fn fit(mut parts: Vec<(u8, String)>, width: usize) -> String {
    loop {
        let texts: Vec<&str> = parts.iter().map(|(_, text)| text.as_str()).collect();
        let line = texts.join("  ");
        let least = parts.iter().enumerate().max_by_key(|(_, (rank, _))| *rank);
        match least.map(|(at, _)| at) {
            Some(at) if columns(&line) > width && parts.len() > 1 => parts.remove(at),
            _ => return line,
        };
    }
}

/// Returns the report of the load.
pub(super) fn report(
    requested: &RequestedLoad,
    summary: &LoadSummary,
    style: OutputStyle,
) -> Vec<PaintedLine> {
    let mut lines = vec![
        PaintedLine::new().with_span(Paint::Head, without_password(&requested.load.url)),
        PaintedLine::new().with_span(Paint::Dim, format!("  {}", requested.description())),
        PaintedLine::new(),
    ];
    lines.extend(counts(summary));
    lines.push(PaintedLine::new());
    if summary.fell_behind {
        let text = "This machine cannot generate that rate: requests were started later than they \
                    arrived. Ask for a lower --rate, or give it more --threads.";
        lines.extend(wrapped(Paint::Bad, text, 2, style));
        lines.push(PaintedLine::new());
    }
    lines.extend(times(summary, style));
    lines.extend(winners(summary, style));
    lines.extend(attempts(summary, style));
    lines.extend(errors(summary, style));
    lines
}

fn counts(summary: &LoadSummary) -> Vec<PaintedLine> {
    let row = |what: &str, number: u64, more: String, paint: Paint| {
        PaintedLine::new()
            .with_span(Paint::Dim, format!("  {what:<12}"))
            .with_span(paint, format!("{:>12}", count(number)))
            .with_span(Paint::Plain, format!("   {more}"))
    };
    let bad = |number: u64| if number > 0 { Paint::Bad } else { Paint::Plain };
    let offered = format!(
        "{:.1}/s for {:.1} s{}",
        summary.offered_per_second,
        summary.arriving_s,
        if summary.interrupted { ", then interrupted" } else { "" },
    );
    let answered = format!(
        "{:.1}/s, {} of bodies",
        summary.answered_per_second,
        indicatif::HumanBytes(summary.body_bytes)
    );
    let mut lines = vec![
        row("intended", summary.intended, offered, Paint::Plain),
        row("answered", summary.answered, answered, Paint::Good),
    ];
    if summary.refused > 0 {
        let more = "of those, with a status of 400 or above".to_owned();
        lines.push(row("refused", summary.refused, more, Paint::Bad));
    }
    lines.push(row("failed", summary.failed, String::new(), bad(summary.failed)));
    let max_in_flight = format!("at most {} in flight", summary.most_in_flight);
    lines.push(row("dropped", summary.dropped, max_in_flight, bad(summary.dropped)));
    if summary.unfinished > 0 {
        let more = if summary.interrupted {
            "in flight at the interruption"
        } else {
            "in flight at the end"
        }
        .to_owned();
        lines.push(row("unfinished", summary.unfinished, more, Paint::Plain));
    }
    lines
}

fn times(summary: &LoadSummary, style: OutputStyle) -> Vec<PaintedLine> {
    let mut rows = Vec::new();
    for (name, label) in TIMES {
        let Some(times) = summary.times_ms.get(name) else { continue };
        let mut row = vec![(Paint::Plain, label.to_owned())];
        let values = [times.p50, times.p90, times.p99, times.p999, times.max, times.mean];
        row.extend(values.map(|value| (Paint::Plain, format_millis(value))));
        rows.push(row);
    }
    table_of_numbers(&["", "median", "90 %", "99 %", "99.9 %", "longest", "mean"], rows, style)
}

fn winners(summary: &LoadSummary, style: OutputStyle) -> Vec<PaintedLine> {
    if summary.winners.is_empty() {
        return Vec::new();
    }
    let share = |answered: u64| 100.0 * answered as f64 / summary.answered.max(1) as f64;
    let rows = summary.winners.iter().map(|winner| {
        let texts = [
            winner.transport.clone(),
            if winner.family == "v6" { "IPv6" } else { "IPv4" }.to_owned(),
            if winner.security == "none" { "-".to_owned() } else { winner.security.to_uppercase() },
            winner.version.clone(),
            count(winner.answered),
            format!("{:.1} %", share(winner.answered)),
        ];
        texts.map(|text| (Paint::Plain, text)).to_vec()
    });
    let header = ["carried by", "", "security", "version", "responses", "share"];
    [vec![PaintedLine::new()], table(&header, rows.collect(), style)].concat()
}

fn attempts(summary: &LoadSummary, style: OutputStyle) -> Vec<PaintedLine> {
    let Some(each) = summary.attempts_per_connection else { return Vec::new() };
    let rows = summary.attempts.iter().map(|(transport, attempts)| {
        let numbers = [attempts.started, attempts.completed, attempts.used, attempts.failed];
        let mut row = vec![(Paint::Plain, transport.clone())];
        row.extend(numbers.map(|number| (Paint::Plain, count(number))));
        row
    });
    let header = ["attempts", "started", "completed", "used", "failed"];
    let mut lines = vec![PaintedLine::new()];
    lines.extend(table_of_numbers(&header, rows.collect(), style));
    let mut text = format!("{each:.2} attempts for each connection");
    if summary.wasted_handshakes > 0 {
        let wasted = counted(summary.wasted_handshakes, "handshake");
        text += &format!(", {wasted} completed for nothing");
    }
    if summary.hits > 0 {
        text += &format!(", {} known in advance", counted(summary.hits, "outcome"));
    }
    lines.push(PaintedLine::new());
    lines.extend(wrapped(Paint::Plain, &text, 2, style));
    lines
}

fn errors(summary: &LoadSummary, style: OutputStyle) -> Vec<PaintedLine> {
    let statuses = summary.statuses.iter().filter(|(status, _)| status.as_str() >= "400");
    let mut rows: Vec<_> = statuses
        .map(|(status, number)| {
            vec![
                (Paint::Bad, format!("status {status}")),
                (Paint::Plain, count(*number)),
                (Paint::Plain, String::new()),
            ]
        })
        .collect();
    rows.extend(summary.errors.iter().map(|error| {
        vec![
            (Paint::Bad, error.kind.clone()),
            (Paint::Plain, count(error.count)),
            (Paint::Plain, error.first.clone()),
        ]
    }));
    if rows.is_empty() {
        return Vec::new();
    }
    [vec![PaintedLine::new()], table(&["failed", "", "the first of them"], rows, style)].concat()
}

fn format_millis(millis: f64) -> String {
    time(Duration::from_secs_f64((millis / 1_000.0).max(0.0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_important_parts_are_omitted_first() {
        let parts = || {
            [(0, "59 s"), (1, "1000/s"), (4, "median 4.2 ms"), (7, "90 % 5.1 ms"), (2, "failed 3")]
                .map(|(rank, text)| (rank, text.to_owned()))
                .to_vec()
        };
        assert_eq!(fit(parts(), 80), "59 s  1000/s  median 4.2 ms  90 % 5.1 ms  failed 3");
        assert_eq!(fit(parts(), 40), "59 s  1000/s  median 4.2 ms  failed 3");
        assert_eq!(fit(parts(), 30), "59 s  1000/s  failed 3");
        assert_eq!(fit(parts(), 0), "59 s");
    }
}
