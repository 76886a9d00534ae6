//! Races and plans as the JSON objects printed by `eyas --json` and read by the Python package
//! (`docs/reference/json.md`).
//!
//! A [`RaceReport`] can be serialised and deserialised in full; these objects are the stable form for
//! other programs. Fields may be added, but are never renamed. Times are milliseconds since the
//! start of the race, with at most three decimals.

use alloc::{
    string::{String, ToString},
    vec::Vec,
};
use core::time::Duration;

use serde::Serialize;

use super::{AttemptReport, DnsReport, RaceReport, RaceWinner, milliseconds};
use crate::candidate::Candidate;
use crate::evidence::EvidenceLevel;
use crate::plan::{DroppedCandidate, Plan, PlanEntry, PlanReason};

/// A race.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct RaceJson {
    /// The winning connection, if any.
    pub winner: Option<WinnerJson>,
    /// Every attempt, in the order of starting.
    pub attempts: Vec<AttemptJson>,
    /// Whether the memory determined the winner.
    pub from_memory: bool,
    /// The transport that was ready later and took over.
    pub upgraded_to: Option<&'static str>,
    /// The DNS queries.
    pub dns: Vec<DnsJson>,
}

/// The attempt that won.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct WinnerJson {
    /// `tcp`, `mptcp`, `quic`, `sctp` or `sctp-udp`.
    pub transport: &'static str,
    /// `none`, `tls` or `dtls`.
    pub security: &'static str,
    /// Address and port.
    pub address: String,
    /// When it was ready for the application.
    pub ready_ms: f64,
}

/// One attempt.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AttemptJson {
    /// As in [`WinnerJson`]; the transport in use.
    pub transport: &'static str,
    /// Whether MPTCP was requested, but the peer or the path supports only TCP.
    pub fell_back: bool,
    /// Whether its ClientHello took one packet, because one of two does not get through.
    pub short_hello: bool,
    /// As in [`WinnerJson`].
    pub security: &'static str,
    /// Address and port.
    pub address: String,
    /// When it was started.
    pub started_ms: f64,
    /// When it was ready, failed or was closed; `null` while it is in progress.
    pub ended_ms: Option<f64>,
    /// How far it got.
    pub level: EvidenceLevel,
    /// `won`, `upgraded`, `lost`, `failed`, `closed` or `under-way`.
    pub outcome: &'static str,
    /// Why it failed or was closed; otherwise why it was ranked where it was.
    pub reason: Option<String>,
}

/// A DNS query.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DnsJson {
    /// The name.
    pub name: String,
    /// `HTTPS`, `AAAA` or `A`.
    #[serde(rename = "type")]
    pub record_type: &'static str,
    /// When it was sent.
    pub asked_ms: f64,
    /// When it was answered.
    pub answered_ms: Option<f64>,
    /// The number of records received.
    pub records: usize,
    /// Why there are no records.
    pub failure: Option<&'static str>,
    /// Whether an expired answer came first, or is the only one.
    pub expired: bool,
}

/// A plan.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct PlanJson {
    /// The candidates to be tried, in order.
    pub entries: Vec<EntryJson>,
    /// The candidates that would not be tried.
    pub dropped: Vec<DroppedJson>,
    /// What did not become a candidate at all, and why.
    pub notes: Vec<String>,
}

/// A candidate that would be tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct EntryJson {
    /// As in [`WinnerJson`].
    pub transport: &'static str,
    /// As in [`WinnerJson`].
    pub security: &'static str,
    /// Address and port.
    pub address: String,
    /// The application protocols offered, most preferred first.
    pub alpn: Vec<String>,
    /// Its start relative to the first attempt, if no earlier one completes or fails.
    pub starts_ms: f64,
    /// The round-trip time that the memory expects.
    pub initial_rtt_ms: Option<f64>,
    /// Whether the memory determined its rank.
    pub from_memory: bool,
    /// Whether it is only tried beside a working connection, to find out whether it works again.
    pub retest: bool,
    /// Why it is ranked where it is.
    pub reasons: Vec<String>,
}

/// A candidate that would not be tried.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DroppedJson {
    /// As in [`WinnerJson`].
    pub transport: &'static str,
    /// As in [`WinnerJson`].
    pub security: &'static str,
    /// Address and port.
    pub address: String,
    /// The reasons.
    pub reasons: Vec<String>,
}

impl From<&RaceReport> for RaceJson {
    fn from(report: &RaceReport) -> Self {
        Self {
            winner: report.winner.as_ref().map(winner),
            attempts: report.attempts.iter().map(attempt).collect(),
            from_memory: report.from_memory,
            upgraded_to: report.upgraded_to.as_ref().map(|upgrade| upgrade.transport.name()),
            dns: report.dns.iter().map(query).collect(),
        }
    }
}

impl From<&Plan> for PlanJson {
    fn from(plan: &Plan) -> Self {
        let mut starts = Duration::ZERO;
        let entries = plan.entries.iter().map(|planned| {
            starts += planned.delay;
            entry(planned, starts)
        });
        Self {
            entries: entries.collect(),
            dropped: plan.dropped.iter().map(dropped).collect(),
            notes: plan.notes.iter().map(ToString::to_string).collect(),
        }
    }
}

fn winner(winner: &RaceWinner) -> WinnerJson {
    WinnerJson {
        transport: winner.transport.name(),
        security: winner.security.name(),
        address: winner.address.clone(),
        ready_ms: winner.ready_ms,
    }
}

fn attempt(attempt: &AttemptReport) -> AttemptJson {
    AttemptJson {
        transport: attempt.transport.name(),
        fell_back: attempt.fell_back,
        short_hello: attempt.short_hello,
        security: attempt.security.name(),
        address: attempt.address.clone(),
        started_ms: attempt.started_ms,
        ended_ms: attempt.ended_ms,
        level: attempt.level,
        outcome: attempt.outcome.name(),
        reason: Some(attempt.reason.clone()).filter(|reason| !reason.is_empty()),
    }
}

fn query(query: &DnsReport) -> DnsJson {
    DnsJson {
        name: query.name.clone(),
        record_type: query.record_type.name(),
        asked_ms: query.asked_ms,
        answered_ms: query.answered_ms,
        records: query.records(),
        failure: query.failure().map(|failure| failure.name()),
        expired: query.expired,
    }
}

fn entry(entry: &PlanEntry, starts: Duration) -> EntryJson {
    EntryJson {
        transport: entry.candidate.transport.name(),
        security: entry.candidate.security.name(),
        address: address(&entry.candidate),
        alpn: entry.candidate.alpn.iter().map(ToString::to_string).collect(),
        starts_ms: milliseconds(starts),
        initial_rtt_ms: entry.initial_rtt.map(milliseconds),
        from_memory: entry.from_memory,
        retest: entry.retest,
        reasons: texts(&entry.reasons),
    }
}

fn dropped(dropped: &DroppedCandidate) -> DroppedJson {
    DroppedJson {
        transport: dropped.candidate.transport.name(),
        security: dropped.candidate.security.name(),
        address: address(&dropped.candidate),
        reasons: texts(&dropped.reasons),
    }
}

fn address(candidate: &Candidate) -> String {
    candidate.address.to_string()
}

fn texts(reasons: &[PlanReason]) -> Vec<String> {
    reasons.iter().map(ToString::to_string).collect()
}
