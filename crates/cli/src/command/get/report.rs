//! The reports of `eyas get`: on standard error with `-v`, as an object with `--json`.

use eyas::race::report::{PlanJson, RaceJson};
use eyas::race::trace::Trace;
use eyas::{NameSource, Resolver};
use eyas_http::{Redirect, Response, Reuse, version_name};
use http::{HeaderMap, StatusCode, Version};
use serde_json::Value;

use super::request::PreparedRequest;
use crate::failure::Failure;
use crate::flags::{CommonFlags, GetFlags};
use crate::output;
use crate::race_report::{self, ReplayedRace, connection_lines, explanation, name_source};
use crate::shape::{ConnectionShape, GetShape, NamesShape, ReuseShape, millis, value};
use crate::terminal::{OutputStyle, Paint, PaintedLine, shown};
use crate::timeline;

/// Describes the connection that carried the request.
pub(super) fn connection(response: &Response) -> ConnectionShape {
    let reuse = response.reuse().map(reuse);
    ConnectionShape { reuse, ..ConnectionShape::from(response.connection()) }
}

fn reuse(reuse: &Reuse) -> ReuseShape {
    ReuseShape {
        transport: reuse.transport.name(),
        address: reuse.remote.to_string(),
        age_ms: millis(reuse.age),
        idle_ms: millis(reuse.idle),
        rtt_ms: reuse.rtt.map(millis),
        verdict: reuse.verdict.name(),
    }
}

/// Returns the status line and headers, as written by HTTP/1.1.
fn head(response: &Response) -> String {
    let (status, reason) = (response.status(), response.reason_phrase());
    format_head(status, reason, response.version(), response.received_headers())
}

/// Returns the heads of the redirects that led to a response, and its own.
pub(super) fn heads(response: &Response) -> String {
    let previous = response.redirected().iter();
    let previous = previous
        .map(|hop| format_head(hop.status, hop.reason.as_deref(), hop.version, &hop.headers));
    previous.chain([head(response)]).collect()
}

fn format_head(
    status: StatusCode,
    reason: Option<&[u8]>,
    version: Version,
    headers: &HeaderMap,
) -> String {
    let usual = status.canonical_reason().unwrap_or_default();
    let reason = reason.map_or_else(|| usual.into(), String::from_utf8_lossy);
    let first = format!("{} {} {reason}", version_name(version), status.as_u16());
    let mut text = format!("{}\r\n", first.trim_end());
    for (name, value) in headers {
        text.push_str(&format!("{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes())));
    }
    text.push_str("\r\n");
    text
}

/// Returns heads as a terminal may show them.
pub(super) fn shown_head(heads: &str) -> String {
    heads.split_inclusive("\r\n").map(|line| shown(line.trim_end()).into_owned() + "\r\n").collect()
}

/// Returns a line for each redirect that was followed: its status, its source and its target.
pub(super) fn hops(redirected: &[Redirect]) -> Vec<PaintedLine> {
    let line = |hop: &Redirect| {
        PaintedLine::new()
            .with_span(Paint::Dim, "* ")
            .with_span(Paint::Warn, hop.status.as_u16().to_string())
            .with_span(Paint::Plain, format!(" {} -> {}", hop.from, hop.to))
    };
    redirected.iter().map(line).collect()
}

/// Prints the race, the request and the response headers on standard error.
pub(super) fn verbose(
    (race_report, source): (&ReplayedRace, Option<&NameSource>),
    request: &PreparedRequest,
    response: &Response,
    flags: &GetFlags,
    common: &CommonFlags,
) {
    let style = OutputStyle::of_stderr(common.color);
    let mut lines = super::super::race::heading(race_report);
    lines.extend(timeline::draw(&race_report.picture_with_dns(), style));
    if flags.output.explain {
        lines.extend(explanation(&race_report.report.plan, source, style));
    }
    if let Some(reuse) = response.reuse() {
        lines.push(
            PaintedLine::new()
                .with_span(Paint::Dim, "* reused ")
                .with_span(Paint::Plain, reuse.to_string()),
        );
    }
    lines.push(PaintedLine::new());
    lines.extend(connection_lines(response.connection()));
    if flags.output.verbose {
        lines.extend(exchange(request, response));
    }
    output::print_to_stderr(&lines, style);
}

fn exchange(request: &PreparedRequest, response: &Response) -> Vec<PaintedLine> {
    let sent = |text: String| {
        PaintedLine::new().with_span(Paint::Quic, "> ").with_span(Paint::Plain, text)
    };
    let received = |text: String| {
        PaintedLine::new().with_span(Paint::Good, "< ").with_span(Paint::Plain, text)
    };
    let mut lines = vec![sent(format!("{} {}", request.method, request.url))];
    for (name, value) in &request.headers {
        let shown = match value.is_sensitive() {
            true => "(not shown)".into(),
            false => String::from_utf8_lossy(value.as_bytes()),
        };
        lines.push(sent(format!("{name}: {shown}")));
    }
    lines.push(sent(String::new()));
    lines.extend(hops(response.redirected()));
    lines.extend(head(response).trim_end().lines().map(|line| received(line.to_owned())));
    lines.push(received(String::new()));
    lines
}

/// Reports that a better connection became ready while the body was read.
fn late_switch(race_report: &ReplayedRace, common: &CommonFlags) {
    if let Some(upgrade) = &race_report.report.upgraded_to {
        let transport = upgrade.transport.name();
        let text = format!("{transport} was ready a moment later: the next request starts with it");
        let line = PaintedLine::new().with_span(Paint::Dim, "* ").with_span(Paint::Good, text);
        output::print_to_stderr(&[line], OutputStyle::of_stderr(common.color));
    }
}

/// Returns the members of an object that describe the race.
pub(super) fn race_members(race_report: Option<&ReplayedRace>) -> Value {
    race_report.map(|race_report| value(&RaceJson::from(&race_report.report))).unwrap_or_default()
}

/// Writes the trace of a transfer, and prints its object or what is left to say.
pub(super) fn finish(
    shape: &GetShape,
    trace: Trace,
    resolver: &Resolver,
    flags: &GetFlags,
    common: &CommonFlags,
) -> Result<(), Failure> {
    if let Some(path) = &flags.output.trace {
        race_report::write(path, &trace)?;
    }
    if !(common.json || flags.output.verbose) {
        return Ok(());
    }
    let race_report = ReplayedRace::from_trace(trace).ok();
    if common.json {
        let target = race_report.as_ref().map(|race| &race.trace.header.setup.target);
        let source = target.and_then(|target| name_source(resolver, target));
        return object(shape, race_report.as_ref(), source.as_ref(), flags.output.explain);
    }
    if let Some(race_report) = &race_report {
        late_switch(race_report, common);
    }
    Ok(())
}

/// Prints the object of a transfer.
fn object(
    shape: &GetShape,
    race_report: Option<&ReplayedRace>,
    source: Option<&NameSource>,
    explain: bool,
) -> Result<(), Failure> {
    let race =
        race_report.map(|race_report| RaceJson::from(&race_report.report)).unwrap_or_default();
    let mut object = value(&GetShape { race, ..shape.clone() });
    if let (Some(object), Some(race_report), true) = (object.as_object_mut(), race_report, explain)
    {
        object.insert("plan".to_owned(), value(&PlanJson::from(&race_report.report.plan)));
        if let Some(source) = source {
            object.insert("names".to_owned(), value(&NamesShape::from(source)));
        }
    }
    output::object(&object)
}
