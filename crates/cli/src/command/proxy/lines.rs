//! A line for each connection, written by a separate thread, so that no connection waits for a
//! terminal, a disk or the reader of a pipe.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, channel, sync_channel};
use std::thread;
use std::time::Duration;

use eyas::race::evidence::EvidenceLevel;
use eyas::race::report::{AttemptOutcome, AttemptReport, RaceReport};
use eyas_proxy::{ClientEnding, DropReason, ProxyBuilder, ProxyClientReport, WonBy};
use serde_json::{Value, json};

use crate::failure::{Failure, FailureKind};
use crate::flags::{CommonFlags, ProxyDestinationFlags};
use crate::terminal::{OutputStyle, Paint, PaintedLine, count, counted, shown_json, time};

/// The number of lines that can be queued.
const QUEUE_LENGTH: usize = 1024;
/// How long writing the last lines may take.
const FINISH_TIMEOUT: Duration = Duration::from_secs(2);

/// The destination of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OutputStream {
    Stdout,
    Stderr,
}

/// The format of a line.
#[derive(Clone, Copy)]
enum LineFormat {
    Text(OutputStyle),
    Json,
}

enum LinesMessage {
    Report(Box<ProxyClientReport>),
    End,
}

/// The lines being written, if requested.
pub(super) struct ReportLines {
    messages: Option<SyncSender<LinesMessage>>,
    ended: Receiver<()>,
    /// The number of lines dropped because the queue was full.
    dropped: Arc<AtomicU64>,
}

impl ReportLines {
    pub(super) fn start(
        destinations: &ProxyDestinationFlags,
        common: &CommonFlags,
        stream: OutputStream,
    ) -> Result<Self, Failure> {
        let (end, ended) = channel();
        let dropped = Arc::default();
        if !destinations.explain && !common.json {
            return Ok(Self { messages: None, ended, dropped });
        }
        let format = match (common.json, stream) {
            (true, _) => LineFormat::Json,
            (false, OutputStream::Stdout) => LineFormat::Text(OutputStyle::of_stdout(common.color)),
            (false, OutputStream::Stderr) => LineFormat::Text(OutputStyle::of_stderr(common.color)),
        };
        let (messages, queue) = sync_channel(QUEUE_LENGTH);
        thread::Builder::new()
            .name("eyas-proxy-lines".to_owned())
            .spawn(move || {
                let written = match stream {
                    OutputStream::Stdout => write(io::stdout(), &queue, format),
                    OutputStream::Stderr => write(io::stderr(), &queue, format),
                };
                // The proxy continues without lines if they are not read.
                drop(written);
                let _ = end.send(());
            })
            .map_err(|cause| {
                Failure::new(FailureKind::Write, format!("cannot write lines: {cause}"))
            })?;
        Ok(Self { messages: Some(messages), ended, dropped })
    }

    /// Returns a proxy that reports each connection here.
    pub(super) fn attach_to(&self, proxy: ProxyBuilder) -> ProxyBuilder {
        let Some(messages) = self.messages.clone() else { return proxy };
        let dropped = Arc::clone(&self.dropped);
        proxy.reports(move |report| {
            if messages.try_send(LinesMessage::Report(Box::new(report))).is_err() {
                dropped.fetch_add(1, Relaxed);
            }
        })
    }

    /// Writes the queued lines, and reports how many are missing.
    pub(super) fn finish(self) {
        let Some(messages) = self.messages else { return };
        // In a separate thread, because a full queue that is not emptied accepts no message.
        thread::spawn(move || messages.send(LinesMessage::End));
        if self.ended.recv_timeout(FINISH_TIMEOUT) == Err(RecvTimeoutError::Timeout) {
            report("the last lines are missing: nothing reads them");
        }
        let missing = self.dropped.load(Relaxed);
        if missing > 0 {
            let missing = counted(missing, "connection");
            report(&format!("without a line: {missing}, as lines were not read fast enough"));
        }
    }
}

/// Writes to standard error, if somebody reads that.
fn report(text: &str) {
    let _ = writeln!(io::stderr(), "eyas: {text}");
}

/// Writes until the end, flushing what is available, so that a reader who follows the lines sees
/// them.
fn write(
    mut out: impl Write,
    messages: &Receiver<LinesMessage>,
    format: LineFormat,
) -> io::Result<()> {
    loop {
        let mut text = String::new();
        let mut next = messages.recv().ok();
        let mut is_over = next.is_none();
        while let Some(message) = next {
            match message {
                LinesMessage::Report(report) => {
                    text.push_str(&match format {
                        LineFormat::Text(style) => text_line(&report).to_text(style.colour),
                        LineFormat::Json => shown_json(&shape(&report), false),
                    });
                    text.push('\n');
                }
                LinesMessage::End => {
                    is_over = true;
                    break;
                }
            }
            next = messages.try_recv().ok();
        }
        out.write_all(text.as_bytes())?;
        out.flush()?;
        if is_over {
            return Ok(());
        }
    }
}

/// Writes an object on one line of standard output.
pub(super) fn object(value: &Value) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    writeln!(out, "{}", shown_json(value, false))
        .and_then(|()| out.flush())
        .map_err(|cause| Failure::write("standard output", &cause))
}

fn text_line(report: &ProxyClientReport) -> PaintedLine {
    let mut line = PaintedLine::new().with_span(Paint::Dim, report.client.to_string());
    let protocol = report.protocol.map_or("?", |protocol| protocol.name());
    line.push(Paint::Dim, format!(" {protocol:<7} "));
    match (&report.destination, &report.datagrams) {
        (Some(destination), _) => line.push(Paint::Head, destination.to_string()),
        (None, Some(_)) => line.push(Paint::Head, "UDP"),
        (None, None) => line.push(Paint::Dim, "nowhere"),
    }
    if let Some(datagrams) = &report.datagrams {
        let (sent, received) = (counted(datagrams.sent, "datagram"), count(datagrams.received));
        let dropped = count(datagrams.dropped.iter().sum());
        let text = format!("  {sent} sent, {received} received, {dropped} dropped");
        line.push(Paint::Dim, text);
        if let Some(refusal) = &datagrams.refusal {
            line.push(Paint::Bad, format!("  {refusal}"));
        }
    }
    if let Some(info) = &report.connection {
        let timings = &info.timings;
        let (reached, how) = match report.won_by {
            Some(WonBy::FirstByte) => (timings.spoke, "the server spoke"),
            Some(WonBy::Transport) | None => (timings.transport, "connected"),
        };
        line.push(Paint::Plain, format!("  {} {}", info.transport, info.remote));
        let after = time(reached.unwrap_or_default());
        line.push(Paint::Good, format!("  {how} after {after}"));
        let (sent, received) = (counted(report.sent, "byte"), count(report.received));
        let took = time(report.took);
        line.push(Paint::Dim, format!("  {sent} sent, {received} received in {took}"));
    }
    match (&report.end, report.end.detail()) {
        (ClientEnding::Done, _) => {}
        (end, None) => line.push(Paint::Warn, format!("  {}", end.name())),
        (end, Some(why)) => line.push(Paint::Bad, format!("  {}: {why}", end.name())),
    }
    let others: Vec<String> = attempts(report).iter().filter_map(outcome_text).collect();
    if !others.is_empty() {
        line.push(Paint::Dim, format!("  (also tried {})", others.join(", ")));
    }
    line
}

fn attempts(report: &ProxyClientReport) -> Vec<AttemptReport> {
    let trace = report.race.as_ref().map(|race| race.trace());
    let race = trace.and_then(|trace| RaceReport::from_trace(&trace).ok());
    race.map(|race| race.attempts).unwrap_or_default()
}

/// Describes the outcome of an attempt that did not win.
fn outcome_text(attempt: &AttemptReport) -> Option<String> {
    let what = match (attempt.outcome, attempt.level) {
        (AttemptOutcome::Won | AttemptOutcome::Upgraded, _) => return None,
        (AttemptOutcome::Failed, _) => attempt.reason.as_str(),
        (_, EvidenceLevel::Started) => "not answered",
        (_, EvidenceLevel::FirstByte | EvidenceLevel::FullPacket) => "slower",
        _ => "connected without sending anything",
    };
    Some(format!("{} {}: {what}", attempt.transport, attempt.address))
}

fn shape(report: &ProxyClientReport) -> Value {
    let millis = |time: Duration| time.as_micros() as f64 / 1_000.0;
    let info = report.connection.as_deref();
    let timings = info.map(|info| &info.timings);
    let connection = info.map(|info| {
        json!({
            "transport": info.transport.name(),
            "address": info.remote.to_string(),
            "from_memory": info.from_memory,
            "connected_ms": timings.and_then(|timings| timings.transport).map(millis),
            "spoke_ms": timings.and_then(|timings| timings.spoke).map(millis),
        })
    });
    let attempts = attempts(report);
    let attempts: Vec<Value> = attempts
        .iter()
        .map(|attempt| {
            json!({
                "transport": attempt.transport.name(),
                "address": attempt.address,
                "started_ms": attempt.started_ms,
                "ended_ms": attempt.ended_ms,
                "level": attempt.level,
                "outcome": attempt.outcome.name(),
                "reason": attempt.reason,
            })
        })
        .collect();
    json!({
        "time": humantime::format_rfc3339_millis(report.at).to_string(),
        "client": report.client.to_string(),
        "user": report.user,
        "protocol": report.protocol.map(|protocol| protocol.name()),
        "destination": report.destination.as_ref().map(ToString::to_string),
        "connection": connection,
        "won_by": report.won_by.map(|won_by| won_by.name()),
        "attempts": attempts,
        "datagrams": report.datagrams.as_ref().map(|datagrams| json!({
            "sent": datagrams.sent,
            "received": datagrams.received,
            "dropped": DropReason::NAMES
                .into_iter()
                .zip(datagrams.dropped)
                .filter(|(_, count)| *count > 0)
                .collect::<BTreeMap<_, _>>(),
            "refusal": datagrams.refusal.as_ref().map(ToString::to_string),
        })),
        "sent": report.sent,
        "received": report.received,
        "took_ms": millis(report.took),
        "end": report.end.name(),
        "refusal": match &report.end {
            ClientEnding::Refused(why) | ClientEnding::Unanswered(why) => Some(why.name()),
            _ => None,
        },
        "detail": report.end.detail(),
    })
}
