//! The connection that won, as lines.

use eyas::race::evidence::FailureCause;
use eyas::{ConnectionInfo, EchOutcome};

use crate::terminal::{Paint, PaintedLine};

/// Returns a line with what it is, and one for each ClientHello that did not get through before.
pub(crate) fn connection_lines(info: &ConnectionInfo) -> Vec<PaintedLine> {
    let is_of_hello = |cause| cause == FailureCause::LongClientHello;
    let shortened = info.failed.iter().filter(|(_, failure)| is_of_hello(failure.cause));
    let mut lines = vec![connection_line(info)];
    lines.extend(shortened.map(|(candidate, failure)| {
        PaintedLine::new()
            .with_span(Paint::Dim, "* ")
            .with_span(Paint::Warn, format!("{candidate} went on after {failure}"))
    }));
    lines
}

fn connection_line(info: &ConnectionInfo) -> PaintedLine {
    let mut line = PaintedLine::new().with_span(Paint::Dim, "* ");
    line.push(Paint::Good, info.transport.to_string());
    line.push(Paint::Plain, format!(" {}", info.remote));
    let ech = match &info.ech {
        Some(EchOutcome::Accepted(_)) => Some("ECH"),
        Some(EchOutcome::TurnedOff) => Some("ECH turned off"),
        // It only looks like it.
        _ => None,
    };
    let suite = info.cipher_suite.as_deref();
    let parts = [info.protocol, info.alpn.as_deref(), suite, info.key_exchange, ech];
    for part in parts.into_iter().flatten() {
        line.push(Paint::Dim, format!("  {part}"));
    }
    line
}
