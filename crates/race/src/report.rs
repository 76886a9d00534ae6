//! How a race ran, for people and for `--json`.
//!
//! Times are milliseconds since the race started, with microseconds after the point.

use alloc::{string::String, string::ToString, vec::Vec};
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::candidate::{Alpn, Security, Transport};
use crate::dns::{Answer, DnsFailure, Query, RecordType, Records};
use crate::evidence::Level;
use crate::io::{CloseReason, Input, Output, RaceFailure};
use crate::plan::{Plan, Reason};
use crate::race::{Attempt, AttemptState, Race};
use crate::trace::{Divergence, Event, Trace, replay};

mod json;
mod memory_json;
#[cfg(test)]
mod tests;

pub use json::{AttemptJson, DnsJson, DroppedJson, EntryJson, PlanJson, RaceJson, WinnerJson};
pub use memory_json::MemoryRowJson;

/// How a race ran.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Report {
    /// What the caller got first; `None` if the race found no connection or still runs.
    pub winner: Option<Winner>,
    /// Every attempt, in the order of starting.
    pub attempts: Vec<AttemptReport>,
    /// Whether the memory gave the winner its place.
    pub from_memory: bool,
    /// What replaced the winner later, if the late switch came.
    pub upgraded_to: Option<Winner>,
    /// Why there is no winner.
    pub failure: Option<RaceFailure>,
    /// What was asked of DNS, and what it said.
    pub dns: Vec<DnsReport>,
    /// The last plan: every entry and every candidate left out, with reasons; among them, once the
    /// race is decided, that an entry was not started.
    pub plan: Plan,
}

/// A connection that was handed over.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Winner {
    /// The transport spoken: plain TCP where MPTCP fell back.
    pub transport: Transport,
    /// The security layer.
    pub security: Security,
    /// Address and port.
    pub address: String,
    /// The application protocol agreed on.
    pub alpn: Option<Alpn>,
    /// When it was complete.
    pub ready_ms: f64,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AttemptReport {
    /// Its number, in the order of starting.
    pub id: u32,
    /// The transport tried.
    pub transport: Transport,
    /// The security layer.
    pub security: Security,
    /// Address and port.
    pub address: String,
    /// When it started.
    pub started_ms: f64,
    /// When it ended or was complete; `None` while it is under way.
    pub ended_ms: Option<f64>,
    /// How far it came.
    pub level: Level,
    /// The handshake's round trip, if one was measured.
    pub rtt_ms: Option<f64>,
    /// Whether it ran beside a connection that already worked.
    pub background: bool,
    /// What became of it.
    pub outcome: Outcome,
    /// Why it failed or was closed; for the others, why it had its place.
    pub reason: String,
}

/// What became of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Outcome {
    /// Its connection was handed over first.
    Won,
    /// Its connection was handed over later, as the more wanted one.
    Upgraded,
    /// It completed, and another one had won.
    Lost,
    /// It failed.
    Failed,
    /// It was closed before it came to an end.
    Closed,
    /// It is still under way.
    UnderWay,
}

impl Outcome {
    /// The name used in JSON.
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

/// One question to DNS.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DnsReport {
    /// The name asked.
    pub name: String,
    /// The type asked.
    pub record_type: RecordType,
    /// When it was asked.
    pub asked_ms: f64,
    /// When it was answered, if it was.
    pub answered_ms: Option<f64>,
    /// The answer.
    pub answer: Option<Answer>,
}

impl DnsReport {
    /// How many records came.
    #[must_use]
    pub fn records(&self) -> usize {
        match self.answer.as_ref().map(|answer| &answer.records) {
            Some(Ok(Records::Https(records))) => records.len(),
            Some(Ok(Records::Aaaa(records))) => records.len(),
            Some(Ok(Records::A(records))) => records.len(),
            Some(Err(_)) | None => 0,
        }
    }

    /// Why none came, if that is how the question was answered.
    #[must_use]
    pub fn failure(&self) -> Option<&DnsFailure> {
        self.answer.as_ref().and_then(|answer| answer.records.as_ref().err())
    }
}

impl Report {
    /// What a recorded race came to.
    ///
    /// # Errors
    /// The first step at which a replay of the trace goes another way.
    pub fn from_trace(trace: &Trace) -> Result<Self, Divergence> {
        Ok(Self::of(&replay(trace)?, trace))
    }

    /// What a race came to whose recording this is.
    pub fn of(race: &Race, trace: &Trace) -> Self {
        let clock = Clock(race.started_at());
        let found = |wanted: fn(&AttemptState) -> bool| {
            race.attempts().iter().rfind(|attempt| wanted(&attempt.state))
        };
        let winner = found(|state| matches!(state, AttemptState::Usable(_)));
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
            plan: explained(race),
        }
    }
}

/// The plan, where every entry that never had its turn says so.
fn explained(race: &Race) -> Plan {
    let mut plan = race.plan().clone();
    let has_winner =
        race.attempts().iter().any(|attempt| matches!(attempt.state, AttemptState::Usable(_)));
    if !has_winner && !race.is_over() {
        return plan;
    }
    for entry in &mut plan.entries {
        let tried = |attempt: &Attempt| attempt.candidate.is_same_attempt(&entry.candidate);
        if !race.attempts().iter().any(tried) {
            entry.reasons.push(Reason::NotStarted);
        }
    }
    plan
}

fn failure(trace: &Trace) -> Option<RaceFailure> {
    trace.steps.iter().rev().find_map(|step| match &step.event {
        Event::Output(output) => match &**output {
            Output::Failed(failure) => Some(failure.clone()),
            _ => None,
        },
        Event::Input(_) => None,
    })
}

/// When the race started.
#[derive(Clone, Copy)]
struct Clock(Duration);

impl Clock {
    fn ms(self, at: Duration) -> f64 {
        milliseconds(at.saturating_sub(self.0))
    }

    fn winner(self, attempt: &Attempt) -> Option<Winner> {
        let completion = attempt.completion()?;
        Some(Winner {
            transport: attempt.transport(),
            security: attempt.candidate.security,
            address: attempt.candidate.address.to_string(),
            alpn: completion.alpn.clone(),
            ready_ms: self.ms(completion.at),
        })
    }

    fn attempt(self, attempt: &Attempt) -> AttemptReport {
        let (outcome, reason) = outcome(attempt);
        AttemptReport {
            id: attempt.id.0,
            transport: attempt.transport(),
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
        let mut asked: Vec<(Query, DnsReport)> = Vec::new();
        for step in &trace.steps {
            match &step.event {
                Event::Output(output) => {
                    let Output::Query(query) = &**output else { continue };
                    let report = DnsReport {
                        name: query.name.clone(),
                        record_type: query.record_type,
                        asked_ms: self.ms(step.at),
                        answered_ms: None,
                        answer: None,
                    };
                    asked.push((query.clone(), report));
                }
                Event::Input(Input::Answer(answer)) => {
                    let open = asked
                        .iter_mut()
                        .find(|(query, report)| query.id == answer.id && report.answer.is_none());
                    if let Some((_, report)) = open {
                        report.answered_ms = Some(self.ms(step.at));
                        report.answer = Some(answer.clone());
                    }
                }
                Event::Input(_) => {}
            }
        }
        asked.into_iter().map(|(_, report)| report).collect()
    }
}

/// A span as reports have it: milliseconds, with whole microseconds after the point. More is noise, and
/// less hides a handshake on loopback.
pub fn milliseconds(span: Duration) -> f64 {
    // Memories are older than races are long: more than a number of 32 bits has of microseconds.
    let seconds = u32::try_from(span.as_secs()).unwrap_or(u32::MAX);
    f64::from(seconds) * 1e3 + f64::from(span.subsec_micros()) / 1e3
}

fn outcome(attempt: &Attempt) -> (Outcome, String) {
    let place = || {
        let reasons: Vec<String> = attempt.reasons.iter().map(ToString::to_string).collect();
        reasons.join("; ")
    };
    match &attempt.state {
        AttemptState::UnderWay(_) | AttemptState::Complete(_) => (Outcome::UnderWay, place()),
        AttemptState::Usable(_) => (Outcome::Won, place()),
        AttemptState::Better(_) => (Outcome::Upgraded, place()),
        AttemptState::Failed { failure, .. } => (Outcome::Failed, failure.to_string()),
        AttemptState::Closed { why, completed, .. } => {
            let outcome = if completed.is_some() { Outcome::Lost } else { Outcome::Closed };
            (outcome, closed(*why).into())
        }
    }
}

const fn closed(why: CloseReason) -> &'static str {
    match why {
        CloseReason::Lost => "another attempt won",
        CloseReason::BudgetSpent => "no answer in the time it had after the win",
        CloseReason::Deadline => "the deadline of the race came",
        CloseReason::Cancelled => "the caller was done",
        CloseReason::NetworkChanged => "the network changed",
        CloseReason::Withdrawn => "DNS took its address back",
        CloseReason::Silent => "no answer, and its host refused what else there was",
        CloseReason::MadeRoom => "no answer yet, and another candidate had its turn",
    }
}
