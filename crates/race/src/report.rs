//! How a race went, for people and for `--json`.
//!
//! Times are milliseconds since the start of the race, with microseconds as decimals.

use alloc::{string::String, string::ToString, vec::Vec};
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::candidate::{AlpnName, Security, Transport};
use crate::dns::{DnsAnswer, DnsFailure, DnsQuery, DnsRecords, RecordType};
use crate::evidence::EvidenceLevel;
use crate::io::{CloseReason, RaceFailure, RaceInput, RaceOutput};
use crate::plan::{Plan, PlanReason};
use crate::race::{AttemptState, Race, RaceAttempt};
use crate::reason::ReasonKind;
use crate::trace::{ReplayDivergence, Trace, TraceEvent, replay};

mod json;
mod memory_json;
#[cfg(test)]
mod tests;

pub use json::{AttemptJson, DnsJson, DroppedJson, EntryJson, PlanJson, RaceJson, WinnerJson};
pub use memory_json::MemoryRowJson;

/// How a race went.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RaceReport {
    /// The connection that the caller got first; `None` if the race found none or is still running.
    pub winner: Option<RaceWinner>,
    /// Every attempt, in the order of starting.
    pub attempts: Vec<AttemptReport>,
    /// Whether the memory determined the winner's rank.
    pub from_memory: bool,
    /// The connection that replaced the winner in a late switch.
    pub upgraded_to: Option<RaceWinner>,
    /// Why there is no winner.
    pub failure: Option<RaceFailure>,
    /// The DNS queries and their answers.
    pub dns: Vec<DnsReport>,
    /// The final plan: every entry and every dropped candidate, with reasons; once the race is
    /// decided, these include that an entry was not started, started early, or went on with a shorter ClientHello.
    pub plan: Plan,
}

/// A connection that was passed to the caller.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RaceWinner {
    /// The transport in use: plain TCP if MPTCP fell back.
    pub transport: Transport,
    /// The security layer.
    pub security: Security,
    /// Address and port.
    pub address: String,
    /// The negotiated application protocol.
    pub alpn: Option<AlpnName>,
    /// When it was complete.
    pub ready_ms: f64,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptReport {
    /// Its number, in the order of starting.
    pub id: u32,
    /// The transport in use: plain TCP if MPTCP fell back.
    pub transport: Transport,
    /// Whether MPTCP was requested, but the peer or the path supports only TCP.
    pub fell_back: bool,
    /// Whether its ClientHello took one packet, because one of two does not get through.
    pub short_hello: bool,
    /// The security layer.
    pub security: Security,
    /// Address and port.
    pub address: String,
    /// When it was started.
    pub started_ms: f64,
    /// When it ended or completed; `None` while it is in progress.
    pub ended_ms: Option<f64>,
    /// How far it got.
    pub level: EvidenceLevel,
    /// The round-trip time of the handshake, if it was measured.
    pub rtt_ms: Option<f64>,
    /// Whether it ran beside a connection that already worked.
    pub background: bool,
    /// The outcome.
    pub outcome: AttemptOutcome,
    /// Why it failed or was closed; otherwise why it was ranked where it was.
    pub reason: String,
}

/// The outcome of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum AttemptOutcome {
    /// Its connection was passed to the caller first.
    Won,
    /// Its connection was passed to the caller later, as the preferred one.
    Upgraded,
    /// It completed after another one had won.
    Lost,
    /// It failed.
    Failed,
    /// It was closed before it completed or failed.
    Closed,
    /// It is still in progress.
    UnderWay,
}

impl AttemptOutcome {
    /// Returns the name used in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Won => "won",
            Self::Upgraded => "upgraded",
            Self::Lost => "lost",
            Self::Failed => "failed",
            Self::Closed => "closed",
            Self::UnderWay => "under-way",
        }
    }
}

/// A DNS query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DnsReport {
    /// The name.
    pub name: String,
    /// The record type.
    pub record_type: RecordType,
    /// When it was sent.
    pub asked_ms: f64,
    /// When it was answered, if it was.
    pub answered_ms: Option<f64>,
    /// The answer.
    pub answer: Option<DnsAnswer>,
    /// Whether an expired answer came first, or is the only one.
    #[serde(default)]
    pub expired: bool,
}

impl DnsReport {
    /// Returns the number of records received.
    #[must_use]
    pub fn records(&self) -> usize {
        match self.answer.as_ref().map(|answer| &answer.records) {
            Some(Ok(DnsRecords::Https(records))) => records.len(),
            Some(Ok(DnsRecords::Aaaa(records))) => records.len(),
            Some(Ok(DnsRecords::A(records))) => records.len(),
            Some(Err(_)) | None => 0,
        }
    }

    /// Returns why there are no records, if the query failed.
    #[must_use]
    pub fn failure(&self) -> Option<&DnsFailure> {
        self.answer.as_ref().and_then(|answer| answer.records.as_ref().err())
    }
}

impl RaceReport {
    /// Creates the report of a recorded race.
    ///
    /// # Errors
    /// The first step at which a replay of the trace diverges.
    pub fn from_trace(trace: &Trace) -> Result<Self, ReplayDivergence> {
        Ok(Self::new(&replay(trace)?, trace))
    }

    /// Creates the report of a race and its trace.
    pub fn new(race: &Race, trace: &Trace) -> Self {
        let clock = MillisecondClock(race.started_at());
        let last_in_state = |is_in: fn(&AttemptState) -> bool| {
            race.attempts().iter().rfind(|attempt| is_in(&attempt.state))
        };
        let winner = last_in_state(|state| matches!(state, AttemptState::Usable(_)));
        let upgrade = race
            .attempts()
            .iter()
            .filter(|attempt| matches!(attempt.state, AttemptState::Better(_)))
            .max_by_key(|attempt| attempt.ended());
        Self {
            winner: winner.and_then(|attempt| clock.winner(attempt)),
            attempts: race.attempts().iter().map(|attempt| clock.attempt(attempt)).collect(),
            from_memory: winner.is_some_and(|attempt| attempt.from_memory),
            upgraded_to: upgrade.and_then(|attempt| clock.winner(attempt)),
            failure: failure(trace),
            dns: clock.dns(trace),
            plan: plan_with_outcomes(race),
        }
    }
}

/// Returns the plan, with a reason added to every entry that was never started, that started early, or that went on with
/// a shorter ClientHello.
fn plan_with_outcomes(race: &Race) -> Plan {
    let mut plan = race.plan().clone();
    for entry in &mut plan.entries {
        let tries = race.attempts().iter();
        let tries = tries.filter(|attempt| attempt.candidate.is_same_attempt(&entry.candidate));
        let mut reasons = tries.clone().flat_map(|attempt| &attempt.reasons);
        entry.reasons.extend(reasons.find(|reason| reason.is_early_start()).cloned());
        let failure = tries.clone().find_map(|attempt| attempt.long_hello_failure.as_ref());
        entry.reasons.extend(failure.map(|failure| {
            PlanReason(ReasonKind::LongHelloFailed { failure: failure.to_string() })
        }));
    }
    let has_winner =
        race.attempts().iter().any(|attempt| matches!(attempt.state, AttemptState::Usable(_)));
    if !has_winner && !race.is_over() {
        return plan;
    }
    for entry in &mut plan.entries {
        let tried = |attempt: &RaceAttempt| attempt.candidate.is_same_attempt(&entry.candidate);
        if !race.attempts().iter().any(tried) {
            entry.reasons.push(PlanReason(ReasonKind::NotStarted));
        }
    }
    plan
}

fn failure(trace: &Trace) -> Option<RaceFailure> {
    trace.steps.iter().rev().find_map(|step| match &step.event {
        TraceEvent::Output(output) => match &**output {
            RaceOutput::Failed(failure) => Some(failure.clone()),
            _ => None,
        },
        TraceEvent::Input(_) => None,
    })
}

/// Converts times to milliseconds since this start of the race.
#[derive(Clone, Copy)]
struct MillisecondClock(Duration);

impl MillisecondClock {
    fn ms(self, at: Duration) -> f64 {
        milliseconds(at.saturating_sub(self.0))
    }

    fn winner(self, attempt: &RaceAttempt) -> Option<RaceWinner> {
        let completion = attempt.completion()?;
        Some(RaceWinner {
            transport: attempt.transport(),
            security: attempt.candidate.security,
            address: attempt.candidate.address.to_string(),
            alpn: completion.alpn.clone(),
            ready_ms: self.ms(completion.at),
        })
    }

    fn attempt(self, attempt: &RaceAttempt) -> AttemptReport {
        let (outcome, reason) = outcome(attempt);
        AttemptReport {
            id: attempt.id.0,
            transport: attempt.transport(),
            fell_back: attempt.fell_back,
            short_hello: attempt.short_hello,
            security: attempt.candidate.security,
            address: attempt.candidate.address.to_string(),
            started_ms: self.ms(attempt.started),
            ended_ms: attempt.ended().map(|at| self.ms(at)),
            level: attempt.level,
            rtt_ms: attempt.rtt.map(milliseconds),
            background: attempt.background,
            outcome,
            reason,
        }
    }

    fn dns(self, trace: &Trace) -> Vec<DnsReport> {
        let mut queries: Vec<(DnsQuery, DnsReport)> = Vec::new();
        for step in &trace.steps {
            match &step.event {
                TraceEvent::Output(output) => {
                    let RaceOutput::Query(query) = &**output else { continue };
                    let report = DnsReport {
                        name: query.name.clone(),
                        record_type: query.record_type,
                        asked_ms: self.ms(step.at),
                        answered_ms: None,
                        answer: None,
                        expired: false,
                    };
                    queries.push((query.clone(), report));
                }
                TraceEvent::Input(RaceInput::Answer(answer)) => {
                    let is_open = |report: &DnsReport| {
                        report.answer.as_ref().is_none_or(|answer| answer.expired)
                    };
                    let open = queries
                        .iter_mut()
                        .find(|(query, report)| query.id == answer.id && is_open(report));
                    if let Some((_, report)) = open {
                        report.expired |= answer.expired;
                        report.answered_ms = Some(self.ms(step.at));
                        report.answer = Some(answer.clone());
                    }
                }
                TraceEvent::Input(_) => {}
            }
        }
        queries.into_iter().map(|(_, report)| report).collect()
    }
}

/// Converts a duration to milliseconds, with whole microseconds as decimals. More digits are noise,
/// and fewer hide a handshake over loopback.
pub fn milliseconds(span: Duration) -> f64 {
    // Memory rows can be old: their age in microseconds exceeds 32 bits.
    let seconds = u32::try_from(span.as_secs()).unwrap_or(u32::MAX);
    f64::from(seconds) * 1e3 + f64::from(span.subsec_micros()) / 1e3
}

fn outcome(attempt: &RaceAttempt) -> (AttemptOutcome, String) {
    let (outcome, reason) = outcome_in_state(attempt);
    let long_hello = attempt.long_hello_failure.as_ref().map(ToString::to_string);
    let mut parts: Vec<String> = attempt.fell_back.then(|| FALLBACK.into()).into_iter().collect();
    parts.extend(long_hello);
    parts.extend(Some(reason).filter(|reason| !reason.is_empty()));
    (outcome, parts.join("; "))
}

/// Why an attempt over MPTCP became one over TCP.
const FALLBACK: &str =
    "MPTCP fell back to TCP: the peer or a device on the path does not support it";

fn outcome_in_state(attempt: &RaceAttempt) -> (AttemptOutcome, String) {
    let rank_reasons = || {
        let reasons: Vec<String> = attempt.reasons.iter().map(ToString::to_string).collect();
        reasons.join("; ")
    };
    match &attempt.state {
        AttemptState::UnderWay(_) | AttemptState::Complete(_) => {
            (AttemptOutcome::UnderWay, rank_reasons())
        }
        AttemptState::Usable(_) => (AttemptOutcome::Won, rank_reasons()),
        AttemptState::Better(_) => (AttemptOutcome::Upgraded, rank_reasons()),
        AttemptState::Failed { failure, .. } => (AttemptOutcome::Failed, failure.to_string()),
        AttemptState::Closed { why, completed, .. } => {
            let outcome =
                if completed.is_some() { AttemptOutcome::Lost } else { AttemptOutcome::Closed };
            let reason = match why {
                CloseReason::MadeRoom if attempt.level >= EvidenceLevel::Answered => {
                    "it was not complete yet, and another candidate took its place"
                }
                why => why.description(),
            };
            (outcome, reason.into())
        }
    }
}
