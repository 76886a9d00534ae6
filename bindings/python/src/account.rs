//! What connections, races and plans say about themselves, as the JSON that `eyas --json` prints
//! (`docs/json.md`): the classes of Python are made from it.

use std::time::Duration;

use eyas::{
    ConnectionInfo, Timings,
    race::{
        dns::{RecordType, Records},
        plan::Plan,
        report::{AttemptReport, DnsReport, Report, Winner},
        trace::Trace,
    },
};
use pyo3::{PyResult, exceptions::PyRuntimeError};
use serde_json::{Value, json};

/// Milliseconds, with microseconds after the point.
fn millis(duration: Duration) -> f64 {
    (duration.as_secs_f64() * 1e6).round() / 1e3
}

/// A connection: what it is, when what was reached, and why it was chosen.
pub(crate) fn connection(info: &ConnectionInfo) -> Value {
    json!({
        "transport": info.transport.name(),
        "fell_back": info.fell_back,
        "security": info.security.name(),
        "protocol": info.protocol,
        "cipher_suite": info.cipher_suite,
        "local": info.local.map(|local| local.to_string()),
        "remote": info.remote.to_string(),
        "alpn": info.alpn,
        "rtt_ms": info.rtt.map(millis),
        "from_memory": info.from_memory,
        "reasons": info.reasons,
        "timings": timings(&info.timings),
    })
}

fn timings(timings: &Timings) -> Value {
    json!({
        "dns_ms": timings.dns.map(millis),
        "started_ms": millis(timings.started),
        "answered_ms": timings.answered.map(millis),
        "transport_ms": timings.transport.map(millis),
        "security_ms": timings.security.map(millis),
    })
}

/// A race, as far as it has run.
pub(crate) fn race(trace: &Trace) -> PyResult<Value> {
    // A race that this very code has run replays, or a rule of the core is broken.
    let report = Report::from_trace(trace)
        .map_err(|error| PyRuntimeError::new_err(format!("the race cannot be told: {error}")))?;
    Ok(json!({
        "winner": report.winner.as_ref().map(winner),
        "attempts": report.attempts.iter().map(attempt).collect::<Vec<_>>(),
        "from_memory": report.from_memory,
        "upgraded_to": report.upgraded_to.as_ref().map(|upgrade| upgrade.transport.name()),
        "dns": report.dns.iter().map(question).collect::<Vec<_>>(),
        "plan": plan(&report.plan),
    }))
}

fn winner(winner: &Winner) -> Value {
    json!({
        "transport": winner.transport.name(),
        "security": winner.security.name(),
        "address": winner.address,
        "ready_ms": winner.ready_ms,
    })
}

fn attempt(attempt: &AttemptReport) -> Value {
    json!({
        "transport": attempt.transport.name(),
        "security": attempt.security.name(),
        "address": attempt.address,
        "started_ms": attempt.started_ms,
        "ended_ms": attempt.ended_ms,
        "level": serde_json::to_value(attempt.level).unwrap_or_default(),
        "outcome": attempt.outcome.name(),
        "reason": Some(&attempt.reason).filter(|reason| !reason.is_empty()),
    })
}

fn question(question: &DnsReport) -> Value {
    let record_type = match question.record_type {
        RecordType::Https => "HTTPS",
        RecordType::Aaaa => "AAAA",
        RecordType::A => "A",
    };
    let (records, failure) = match question.answer.as_ref().map(|answer| &answer.records) {
        Some(Ok(Records::Https(records))) => (records.len(), None),
        Some(Ok(Records::Aaaa(records))) => (records.len(), None),
        Some(Ok(Records::A(records))) => (records.len(), None),
        Some(Err(failure)) => (0, serde_json::to_value(failure).ok()),
        None => (0, None),
    };
    json!({
        "name": question.name,
        "type": record_type,
        "asked_ms": question.asked_ms,
        "answered_ms": question.answered_ms,
        "records": records,
        "failure": failure,
    })
}

/// A plan: what would be tried, what would not, and why.
pub(crate) fn plan(plan: &Plan) -> Value {
    let mut starts = Duration::ZERO;
    let entries = plan.entries.iter().map(|entry| {
        starts += entry.delay;
        json!({
            "transport": entry.candidate.transport.name(),
            "security": entry.candidate.security.name(),
            "address": entry.candidate.address.to_string(),
            "alpn": entry.candidate.alpn,
            "starts_ms": millis(starts),
            "initial_rtt_ms": entry.initial_rtt.map(millis),
            "from_memory": entry.from_memory,
            "retest": entry.retest,
            "reasons": texts(&entry.reasons),
        })
    });
    let entries: Vec<_> = entries.collect();
    let dropped = plan.dropped.iter().map(|dropped| {
        json!({
            "transport": dropped.candidate.transport.name(),
            "security": dropped.candidate.security.name(),
            "address": dropped.candidate.address.to_string(),
            "reasons": texts(&dropped.reasons),
        })
    });
    json!({ "entries": entries, "dropped": dropped.collect::<Vec<_>>(), "notes": texts(&plan.notes) })
}

fn texts(reasons: &[impl ToString]) -> Vec<String> {
    reasons.iter().map(ToString::to_string).collect()
}
