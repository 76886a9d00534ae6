//! The output of the demo.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use eyas::race::memory::{MemoryConfig, MemoryEntry, MemoryRecord, MemorySubject, MemoryVerdict};

use super::SceneResult;
use super::scenes::{DemoScene, SCENES};
use crate::race_report::{ReplayedRace, explanation, paint};
use crate::terminal::{OutputStyle, Paint, PaintedLine, table, time, wrapped};
use crate::timeline::{draw_titled, legend};

/// How the demo is drawn.
pub(super) struct DemoPage {
    /// The colours and the width.
    pub(super) style: OutputStyle,
    /// Whether to show the reasons of every candidate.
    pub(super) explain: bool,
}

impl DemoPage {
    /// Returns the introduction, which explains the pictures.
    pub(super) fn introduction(&self) -> Vec<PaintedLine> {
        let count = SCENES.len();
        let text = format!(
            "eyas races the ways to reach a server, takes the first that works, and remembers. \
             Here are {count} small networks on this machine. Each is raced twice: without memory, \
             then with what was learnt. A bar is one attempt; time runs from left to right."
        );
        let mut lines =
            vec![PaintedLine::new().with_span(Paint::Head, "eyas demo"), PaintedLine::new()];
        lines.extend(wrapped(Paint::Plain, &text, 0, self.style));
        lines.extend([PaintedLine::new(), legend(self.style)]);
        lines
    }

    /// Returns a scene's heading and explanation.
    pub(super) fn heading(&self, number: usize, scene: &DemoScene) -> Vec<PaintedLine> {
        let mut lines = vec![
            PaintedLine::new(),
            PaintedLine::new()
                .with_span(Paint::Command, format!("{number}/{} ", SCENES.len()))
                .with_span(Paint::Head, scene.title),
        ];
        lines.extend(wrapped(Paint::Plain, scene.explanation, 2, self.style));
        lines
    }

    /// Returns both races of a scene, and what was learnt between them.
    pub(super) fn races(&self, result: &SceneResult) -> Vec<PaintedLine> {
        let mut lines = Vec::new();
        for (when, race_report) in
            [("without memory", &result.first), ("with memory", &result.second)]
        {
            lines.push(PaintedLine::new());
            lines.extend(draw_titled(when, &race_report.picture(), self.style));
            if self.explain {
                lines.extend(explanation(&race_report.report.plan, None, self.style));
                lines.push(PaintedLine::new());
            }
        }
        let text = format!("Learnt: {}.", learnt(&result.learnt).join("; "));
        lines.push(PaintedLine::new());
        lines.extend(wrapped(Paint::Warn, &text, 2, self.style));
        lines
    }

    /// Returns the summary, and suggestions for what to do next.
    pub(super) fn summary(&self, results: &[SceneResult]) -> Vec<PaintedLine> {
        let header = ["network", "without memory", "with memory", "learnt"];
        let rows = results.iter().map(|scene| {
            vec![
                (Paint::Plain, scene.scene.short.to_owned()),
                result(&scene.first),
                result(&scene.second),
                (Paint::Dim, learnt_summary(&scene.learnt)),
            ]
        });
        let mut lines =
            vec![PaintedLine::new(), PaintedLine::new().with_span(Paint::Head, "Summary")];
        lines.extend(table(&header, rows.collect(), self.style));
        lines.push(PaintedLine::new());
        let next = [
            ("eyas get -v https://example.org/", "fetch a page and see its race"),
            ("eyas race --all example.org", "what works, and why others fail"),
            ("eyas proxy run npm ci", "any program, past silent servers"),
            ("eyas memory", "what was learnt on each network"),
        ];
        for (number, (command, purpose)) in next.into_iter().enumerate() {
            let label = if number == 0 { "Next: try  " } else { "           " };
            let mut line = PaintedLine::new()
                .with_span(Paint::Plain, label)
                .with_span(Paint::Command, command);
            line.pad_to(47);
            line.push(Paint::Dim, purpose);
            lines.push(line);
        }
        lines
    }
}

fn result(race_report: &ReplayedRace) -> (Paint, String) {
    match &race_report.report.winner {
        None => (Paint::Bad, "nothing".to_owned()),
        Some(winner) => {
            let ready = Duration::from_secs_f64(winner.ready_ms.max(0.0) / 1e3);
            (paint(winner.transport), format!("{:<8}{:>7}", winner.transport.name(), time(ready)))
        }
    }
}

/// Returns the verdicts of the rows about each transport, most preferred first, and about each
/// address if there are two.
fn verdicts(rows: &[MemoryRecord]) -> Vec<(String, MemoryVerdict)> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let config = MemoryConfig::default();
    let mut verdicts: Vec<_> = rows
        .iter()
        .filter_map(|row| match (&row.key.subject, &row.entry) {
            (MemorySubject::Peer { transport, security, address, .. }, MemoryEntry::Peer(peer)) => {
                // Each race of a scene offers and trusts the same.
                let verdicts = peer.verdicts(*security, now, &config);
                verdicts.last().map(|(_, verdict)| (*transport, address.ip(), *verdict))
            }
            _ => None,
        })
        .collect();
    verdicts.sort_by_key(|(transport, address, _)| (!transport.has_http3(), address.is_ipv4()));
    let is_single_address = verdicts.iter().all(|verdict| verdict.1 == verdicts[0].1);
    let named = verdicts.into_iter().map(|(transport, address, verdict)| match is_single_address {
        true => (transport.to_string(), verdict),
        false => (format!("{transport} to {address}"), verdict),
    });
    named.collect()
}

fn learnt(rows: &[MemoryRecord]) -> Vec<String> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let sentence = |(what, verdict): (String, MemoryVerdict)| match verdict {
        MemoryVerdict::Good { rtt: Some(rtt) } => format!("{what} works, {} away", time(rtt)),
        MemoryVerdict::Good { rtt: None } => format!("{what} works"),
        MemoryVerdict::Bad { cause, until } => {
            let retest_delay = time(until.saturating_sub(now));
            format!("{what} does not work ({cause}), tested again in {retest_delay}")
        }
        _ => format!("{what} is unknown"),
    };
    let sentences: Vec<String> = verdicts(rows).into_iter().map(sentence).collect();
    if sentences.is_empty() { vec!["nothing".to_owned()] } else { sentences }
}

fn learnt_summary(rows: &[MemoryRecord]) -> String {
    let word = |(what, verdict): (String, MemoryVerdict)| match verdict {
        MemoryVerdict::Bad { cause, .. } => format!("{what} {cause}"),
        _ => format!("{what} works"),
    };
    verdicts(rows).into_iter().map(word).collect::<Vec<_>>().join(", ")
}
