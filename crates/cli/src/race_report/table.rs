//! The outcome of each candidate as a table: what works, how long it took, and why the others
//! failed.

use std::collections::HashSet;
use std::time::Duration;

use eyas::CertificateFault;
use eyas::race::candidate::Transport;
use eyas::race::evidence::{AttemptFailure, EvidenceLevel};
use eyas::race::report::{AttemptOutcome, AttemptReport};

use super::ReplayedRace;
use crate::terminal::{OutputStyle, Paint, PaintedLine, table, time, wrapped};

impl ReplayedRace {
    /// Returns one row for each attempt, except those that were repeated in a later turn, then each problem with a certificate once, then the
    /// candidates that were not tried.
    pub(crate) fn table(&self, style: OutputStyle) -> Vec<PaintedLine> {
        let rows: Vec<_> = self.last_turns().map(|attempt| self.row(attempt)).collect();
        let mut lines = match rows.is_empty() {
            true => Vec::new(),
            false => table(&["transport", "address", "works", "took", "why not"], rows, style),
        };
        for sentence in self.certificates() {
            lines.extend(wrapped(Paint::Plain, &sentence, 2, style));
        }
        for dropped in &self.report.plan.dropped {
            let reasons: Vec<String> = dropped.reasons.iter().map(ToString::to_string).collect();
            let text = format!("not tried: {}: {}", dropped.candidate, reasons.join(" "));
            lines.extend(wrapped(Paint::Dim, &text, 2, style));
        }
        lines
    }

    /// Returns the attempts, except those that were repeated in a later turn.
    pub(crate) fn last_turns(&self) -> impl Iterator<Item = &AttemptReport> {
        let attempts = self.report.attempts.iter().enumerate().filter(|(index, attempt)| {
            let later = &self.report.attempts[index + 1..];
            attempt.outcome != AttemptOutcome::Closed
                || !later.iter().any(|other| repeats(other, attempt))
        });
        attempts.map(|(_, attempt)| attempt)
    }

    /// Returns what became of each candidate that was tried: its attempt, and why there is no
    /// connection if there is none, without the time that it took.
    pub(crate) fn outcomes(&self) -> impl Iterator<Item = (&AttemptReport, String)> {
        self.last_turns().map(|attempt| {
            let why = match (self.failed(attempt), attempt.outcome) {
                (Some(failure), _) => match failure.peer_certificate() {
                    Some(fault) => short_description(fault).to_owned(),
                    None => failure.cause.to_string(),
                },
                (None, AttemptOutcome::Closed) if attempt.level == EvidenceLevel::Started => {
                    "no answer".to_owned()
                }
                (None, _) => attempt.reason.clone(),
            };
            (attempt, why)
        })
    }

    /// Returns the problems with the presented certificates, except those that the failure of the
    /// race reports.
    fn certificates(&self) -> Vec<String> {
        let failures = self.race.attempts().iter().filter_map(|attempt| attempt.failure());
        let sentences = failures
            .filter(|failure| failure.peer_certificate().is_some())
            .map(|failure| failure.detail.clone());
        let reported = self.reported_certificate().map(|failure| failure.detail.clone());
        let mut known: HashSet<String> = reported.into_iter().collect();
        sentences.filter(|sentence| known.insert(sentence.clone())).collect()
    }

    fn row(&self, attempt: &AttemptReport) -> Vec<(Paint, String)> {
        let works = matches!(
            attempt.outcome,
            AttemptOutcome::Won | AttemptOutcome::Upgraded | AttemptOutcome::Lost
        );
        let span = |ms: f64| time(Duration::from_secs_f64(ms.max(0.0) / 1e3));
        let took = attempt.ended_ms.map(|ended| span(ended - attempt.started_ms));
        // A fallback is a connection, but none over the transport that the row is about.
        let transport = if attempt.fell_back { Transport::Mptcp } else { attempt.transport };
        let name = format!("{transport} {}", attempt.security);
        vec![
            (Paint::Plain, name.trim_end_matches(" none").to_owned()),
            (Paint::Plain, attempt.address.clone()),
            match (works, attempt.fell_back) {
                (true, true) => (Paint::Warn, format!("as {}", attempt.transport)),
                (true, false) => (Paint::Good, "yes".to_owned()),
                (false, _) => (Paint::Bad, "no".to_owned()),
            },
            (Paint::Plain, took.filter(|_| works).unwrap_or_default()),
            (
                Paint::Plain,
                match works {
                    true if attempt.fell_back => FELL_BACK.to_owned(),
                    true => String::new(),
                    false => self.why_not(attempt),
                },
            ),
        ]
    }

    fn why_not(&self, attempt: &AttemptReport) -> String {
        if let Some(fault) = self.failed(attempt).and_then(AttemptFailure::peer_certificate) {
            return short_description(fault).to_owned();
        }
        match (attempt.outcome, attempt.level, attempt.ended_ms) {
            (AttemptOutcome::Closed, EvidenceLevel::Started, Some(ended)) => {
                let waited = Duration::from_secs_f64((ended - attempt.started_ms).max(0.0) / 1e3);
                format!("no answer in {}", time(waited))
            }
            _ => attempt.reason.clone(),
        }
    }

    /// Returns how an attempt failed, if it did.
    pub(crate) fn failed(&self, attempt: &AttemptReport) -> Option<&AttemptFailure> {
        self.race.attempts().iter().find(|candidate| candidate.id.0 == attempt.id)?.failure()
    }
}

/// Returns whether an attempt has the same candidate as an earlier one.
fn repeats(attempt: &AttemptReport, earlier: &AttemptReport) -> bool {
    // MPTCP that fell back is reported as TCP, but it is another candidate.
    (attempt.transport, attempt.fell_back, attempt.security, &attempt.address)
        == (earlier.transport, earlier.fell_back, earlier.security, &earlier.address)
}

/// Why MPTCP does not work although there is a connection.
const FELL_BACK: &str = "no MPTCP at the peer or on the path";

/// Returns a short description of the problem, for use where the full sentence is elsewhere.
const fn short_description(fault: CertificateFault) -> &'static str {
    match fault {
        CertificateFault::Expired => "certificate expired",
        CertificateFault::NotYetValid => "certificate not valid yet",
        CertificateFault::WrongName => "certificate for another name",
        CertificateFault::UnknownIssuer => "certificate not trusted here",
        _ => "certificate not accepted",
    }
}
