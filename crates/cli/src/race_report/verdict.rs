//! The result of a race in one sentence: what is used, and why not HTTP/3.

use std::collections::BTreeSet;

use eyas::race::evidence::{EvidenceLevel, FailureCause};
use eyas::race::io::CloseReason;
use eyas::race::race::{AttemptState, RaceAttempt};

use super::ReplayedRace;
use crate::terminal::{Paint, time};

impl ReplayedRace {
    /// Returns the sentence, with a colour for good or bad news.
    pub(crate) fn verdict(&self) -> (Paint, String) {
        let Some(winner) = &self.report.winner else {
            return (Paint::Bad, self.nothing_works());
        };
        let ready = time(std::time::Duration::from_secs_f64(winner.ready_ms / 1e3));
        let alpn = winner.alpn.as_deref().map(|alpn| format!(" ({alpn})")).unwrap_or_default();
        let used =
            format!("{}{alpn} to {} is ready after {ready}", winner.transport, winner.address);
        match (winner.transport, &self.report.upgraded_to) {
            (transport, _) if transport.has_http3() => {
                (Paint::Good, format!("HTTP/3 works: {used}."))
            }
            (_, Some(better)) => {
                let at = time(std::time::Duration::from_secs_f64(better.ready_ms / 1e3));
                let text = format!("{used}, and {} took over after {at}.", better.transport);
                (Paint::Good, text)
            }
            _ => match self.why_not_quic() {
                Some(why) => (Paint::Warn, format!("{used}. HTTP/3 is not used: {why}.")),
                None => (Paint::Good, format!("{used}.")),
            },
        }
    }

    fn nothing_works(&self) -> String {
        match self.race.attempts().len() {
            0 => "Nothing could be tried.".to_owned(),
            1 => "The only candidate does not work.".to_owned(),
            count => format!("None of {count} candidates works."),
        }
    }

    /// Returns why QUIC is not used; `None` if it was not wanted.
    fn why_not_quic(&self) -> Option<String> {
        let quic = |attempt: &&RaceAttempt| attempt.candidate.transport.has_http3();
        let attempts: Vec<&RaceAttempt> = self.race.attempts().iter().filter(quic).collect();
        if let Some(works) = attempts.iter().find(|attempt| attempt.completion().is_some()) {
            return Some(format!("it works, but {} was ready first", other_than(works)));
        }
        let causes: BTreeSet<&str> = attempts.iter().map(|attempt| failure_text(attempt)).collect();
        if !causes.is_empty() {
            return Some(causes.into_iter().collect::<Vec<_>>().join(", or "));
        }
        let plan = &self.report.plan;
        let dropped = plan.dropped.iter().find(|drop| drop.candidate.transport.has_http3());
        let reason = dropped.and_then(|dropped| dropped.reasons.last());
        let planned = plan.entries.iter().any(|entry| entry.candidate.transport.has_http3());
        match (reason, planned) {
            (Some(reason), _) => Some(lowered(&reason.to_string())),
            (None, true) => Some("the memory says that it does not work here".to_owned()),
            (None, false) => None,
        }
    }
}

fn other_than(attempt: &RaceAttempt) -> &'static str {
    if attempt.candidate.transport.has_http3() { "TCP" } else { "QUIC" }
}

/// Returns why a QUIC attempt is not connected, in words that suggest a remedy.
fn failure_text(attempt: &RaceAttempt) -> &'static str {
    let is_answered = attempt.level >= EvidenceLevel::Answered;
    match &attempt.state {
        AttemptState::Failed { failure, .. } => match failure.cause {
            FailureCause::Refused => "nothing listens on UDP at that port",
            FailureCause::Unreachable => "there is no route for UDP to it",
            FailureCause::Silent | FailureCause::Deadline if is_answered => ANSWERED,
            FailureCause::Silent | FailureCause::Deadline => SILENT,
            FailureCause::Reset => "the server closed the QUIC connection in its handshake",
            FailureCause::Tls => "the TLS handshake over QUIC failed",
            FailureCause::Ech => "the server did not accept the encrypted ClientHello over QUIC",
            FailureCause::EchBroken => "something broke the encrypted ClientHello over QUIC",
            FailureCause::Certificate => "the certificate shown over QUIC is not accepted",
            FailureCause::Protocol => "what answers on UDP does not follow the QUIC protocol",
            _ => "this host cannot send UDP there; --all shows why",
        },
        AttemptState::Closed { why: CloseReason::BudgetSpent | CloseReason::Deadline, .. } => {
            if is_answered {
                ANSWERED
            } else {
                SILENT
            }
        }
        _ => "it was not ready when TCP was; --all waits for it",
    }
}

const SILENT: &str = "nothing comes back over UDP, so the network drops it or the server \
                      does not support HTTP/3";

const ANSWERED: &str = "QUIC was answered, but its handshake did not complete";

/// Converts a sentence to a clause: without its capital letter and its full stop.
fn lowered(sentence: &str) -> String {
    let mut letters = sentence.trim_end_matches('.').chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => String::new(),
    }
}
