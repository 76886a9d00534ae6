//! The race and the plan as `--json` prints them.

use eyas::race::dns::{DnsFailure, RecordType, Records};
use eyas::race::plan::Plan;
use eyas::race::report::{DnsReport, Report, Winner};

use super::RaceReport;
use crate::shape::{
    AttemptShape, DnsShape, DroppedShape, EntryShape, PlanShape, RaceShape, WinnerShape, millis,
    value,
};

impl RaceReport {
    /// The race as an object.
    pub(crate) fn shape(&self) -> RaceShape {
        let report = &self.report;
        RaceShape {
            winner: report.winner.as_ref().map(winner),
            attempts: attempts(report),
            from_memory: report.from_memory,
            upgraded_to: transport_of_upgrade(report),
            dns: report.dns.iter().map(question).collect(),
        }
    }
}

/// The transport that took over, if one did.
pub(crate) fn transport_of_upgrade(report: &Report) -> Option<&'static str> {
    report.upgraded_to.as_ref().map(|upgrade| upgrade.transport.name())
}

fn winner(winner: &Winner) -> WinnerShape {
    WinnerShape {
        transport: winner.transport.name(),
        security: winner.security.name(),
        address: winner.address.clone(),
        ready_ms: winner.ready_ms,
    }
}

fn attempts(report: &Report) -> Vec<AttemptShape> {
    let shape = |attempt: &eyas::race::report::AttemptReport| AttemptShape {
        transport: attempt.transport.name(),
        security: attempt.security.name(),
        address: attempt.address.clone(),
        started_ms: attempt.started_ms,
        ended_ms: attempt.ended_ms,
        level: value(&attempt.level),
        outcome: attempt.outcome.name(),
        reason: Some(attempt.reason.clone()).filter(|reason| !reason.is_empty()),
    };
    report.attempts.iter().map(shape).collect()
}

fn question(question: &DnsReport) -> DnsShape {
    DnsShape {
        name: question.name.clone(),
        record_type: record_type(question).to_owned(),
        asked_ms: question.asked_ms,
        answered_ms: question.answered_ms,
        records: records(question),
        failure: dns_failure(question),
    }
}

pub(super) const fn record_type(question: &DnsReport) -> &'static str {
    match question.record_type {
        RecordType::Https => "HTTPS",
        RecordType::Aaaa => "AAAA",
        RecordType::A => "A",
    }
}

/// How many records answered a question.
pub(super) fn records(question: &DnsReport) -> usize {
    match question.answer.as_ref().map(|answer| &answer.records) {
        Some(Ok(Records::Https(records))) => records.len(),
        Some(Ok(Records::Aaaa(records))) => records.len(),
        Some(Ok(Records::A(records))) => records.len(),
        Some(Err(_)) | None => 0,
    }
}

/// Why a question has no records, by the name that [`DnsFailure`] has when written.
pub(super) fn dns_failure(question: &DnsReport) -> Option<String> {
    match question.answer.as_ref().map(|answer| &answer.records) {
        Some(Err(failure)) => Some(dns_failure_name(failure)),
        Some(Ok(_)) | None => None,
    }
}

/// The name of a failure of DNS.
pub(crate) fn dns_failure_name(failure: &DnsFailure) -> String {
    value(failure).as_str().unwrap_or("failed").to_owned()
}

/// A plan as an object.
pub(crate) fn plan_shape(plan: &Plan) -> PlanShape {
    let mut starts = std::time::Duration::ZERO;
    let entries = plan.entries.iter().map(|entry| {
        starts += entry.delay;
        EntryShape {
            transport: entry.candidate.transport.name(),
            security: entry.candidate.security.name(),
            address: entry.candidate.address.to_string(),
            alpn: entry.candidate.alpn.clone(),
            starts_ms: millis(starts),
            initial_rtt_ms: entry.initial_rtt.map(millis),
            from_memory: entry.from_memory,
            retest: entry.retest,
            reasons: entry.reasons.iter().map(ToString::to_string).collect(),
        }
    });
    let entries = entries.collect();
    let dropped = plan.dropped.iter().map(|dropped| DroppedShape {
        transport: dropped.candidate.transport.name(),
        security: dropped.candidate.security.name(),
        address: dropped.candidate.address.to_string(),
        reasons: dropped.reasons.iter().map(ToString::to_string).collect(),
    });
    PlanShape {
        entries,
        dropped: dropped.collect(),
        notes: plan.notes.iter().map(ToString::to_string).collect(),
    }
}
