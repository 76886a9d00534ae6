//! Plans, with their reasons, as lines.

use eyas::race::candidate::Candidate;
use eyas::race::plan::{Plan, PlanReason};
use eyas::race::target::Target;
use eyas::{NameSource, Resolver};

use super::picture::paint;
use crate::terminal::{OutputStyle, Paint, PaintedLine, time, wrapped};

/// The indentation of a reason.
const REASON_INDENT: usize = 12;

/// Returns what is tried, when and why, and what is not.
pub(crate) fn plan_lines(plan: &Plan, style: OutputStyle) -> Vec<PaintedLine> {
    let mut lines = Vec::new();
    let mut starts = std::time::Duration::ZERO;
    for entry in &plan.entries {
        starts += entry.delay;
        let mut when = if entry.retest { "beside".to_owned() } else { time(starts) };
        if starts.is_zero() && !entry.retest {
            when = "at once".to_owned();
        }
        let mut line = PaintedLine::new().with_span(Paint::Head, format!("  {when:>8}  "));
        candidate(&mut line, &entry.candidate);
        if let Some(rtt) = entry.initial_rtt {
            line.push(Paint::Dim, format!("  {} away", time(rtt)));
        }
        lines.push(line);
        reasons(&mut lines, &entry.reasons, style);
    }
    for dropped in &plan.dropped {
        let mut line = PaintedLine::new().with_span(Paint::Warn, format!("  {:>8}  ", "not"));
        candidate(&mut line, &dropped.candidate);
        lines.push(line);
        reasons(&mut lines, &dropped.reasons, style);
    }
    if !plan.notes.is_empty() {
        lines.push(PaintedLine::new().with_span(Paint::Warn, format!("  {:>8}  ", "ignored")));
        reasons(&mut lines, &plan.notes, style);
    }
    lines
}

fn candidate(line: &mut PaintedLine, candidate: &Candidate) {
    line.push(paint(candidate.transport), candidate.to_string());
    if !candidate.alpn.is_empty() {
        line.push(Paint::Dim, format!("  {}", candidate.alpn.join(", ")));
    }
}

fn reasons(lines: &mut Vec<PaintedLine>, reasons: &[PlanReason], style: OutputStyle) {
    for reason in reasons {
        lines.extend(wrapped(Paint::Dim, &reason.to_string(), REASON_INDENT, style));
    }
}

/// Returns who answers for the name of a target, and why, if it has one.
pub(crate) fn name_source(resolver: &Resolver, target: &Target) -> Option<NameSource> {
    let dot = if target.absolute { "." } else { "" };
    target.host.name().map(|host| resolver.source_of(&format!("{host}{dot}")))
}

/// Returns a line that says so.
pub(crate) fn source_line(source: &NameSource) -> PaintedLine {
    PaintedLine::new().with_span(Paint::Dim, format!("  addresses from {source}"))
}

/// Returns the heading and the lines of `--explain`.
pub(crate) fn explanation(
    plan: &Plan,
    source: Option<&NameSource>,
    style: OutputStyle,
) -> Vec<PaintedLine> {
    let heading =
        PaintedLine::new().with_span(Paint::Head, "Why each candidate is ranked where it is");
    let mut lines = vec![PaintedLine::new(), heading];
    lines.extend(source.map(source_line));
    lines.extend(plan_lines(plan, style));
    lines
}
