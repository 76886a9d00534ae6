//! The report for people: a line for each topic, then what to do.

use super::findings::DoctorFindings;
use super::mask::ReportMask;
use super::topic::{Topic, TopicVerdict, VerdictKind};
use crate::terminal::{OutputStyle, Paint, PaintedLine, table, wrapped};

/// The indentation of an advice.
const ADVICE_INDENT: usize = 4;

/// Returns the lines of the report.
pub(super) fn lines(
    findings: &DoctorFindings,
    verdicts: &[(Topic, TopicVerdict)],
    mask: Option<&mut ReportMask>,
    style: OutputStyle,
) -> Vec<PaintedLine> {
    let mut shown: Box<dyn FnMut(&str) -> String + '_> = match mask {
        Some(mask) => Box::new(|text| mask.text(text)),
        None => Box::new(str::to_owned),
    };
    let subject = match &findings.host {
        Some(host) => format!("The way to {}", shown(&host.authority())),
        None => "This machine and its name servers".to_owned(),
    };
    let network = format!("  on {}", shown(&findings.machine.network));
    let heading = PaintedLine::new().with_span(Paint::Head, subject).with_span(Paint::Dim, network);
    let mut lines = vec![heading, PaintedLine::new()];
    let rows = verdicts.iter().map(|(topic, verdict)| {
        let paint = match verdict.kind {
            VerdictKind::Good => Paint::Good,
            VerdictKind::Broken => Paint::Bad,
            VerdictKind::Absent | VerdictKind::Unknown => Paint::Dim,
        };
        vec![
            (Paint::Plain, topic.label().to_owned()),
            (paint, verdict.kind.name().to_owned()),
            (Paint::Plain, shown(&verdict.finding)),
        ]
    });
    lines.extend(table(&["topic", "verdict", "what was found"], rows.collect(), style));
    let advised: Vec<(Topic, String)> = verdicts
        .iter()
        .filter_map(|(topic, verdict)| Some((*topic, shown(verdict.advice.as_deref()?))))
        .collect();
    if !advised.is_empty() {
        lines.push(PaintedLine::new());
        lines.push(PaintedLine::new().with_span(Paint::Head, "What to do"));
    }
    for (topic, advice) in advised {
        lines.push(PaintedLine::new().with_span(Paint::Warn, format!("  {}", topic.label())));
        lines.extend(wrapped(Paint::Plain, &advice, ADVICE_INDENT, style));
    }
    if findings.host.is_none() {
        lines.push(PaintedLine::new());
        let text = "Nothing was sent but questions to the name servers. With a HOST, as in 'eyas \
                    doctor example.org', every transport to it is tried as well.";
        lines.extend(wrapped(Paint::Dim, text, 0, style));
    }
    lines
}
