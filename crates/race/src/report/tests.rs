//! Tests of the contents of a report.

use core::time::Duration;

use super::*;
use crate::dns::{DnsFailure, DnsRecords, QueryId};
use crate::evidence::{AttemptFailure, FailureCause, NetworkId};
use crate::io::{AttemptId, NetworkView, SourceAddress};
use crate::memory::MemoryView;
use crate::policy::Policy;
use crate::race::RaceSetup;
use crate::target::{Target, TargetHost};
use crate::trace::TraceRecorder;

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(1_000_000 + milliseconds)
}

fn drain(recorder: &mut TraceRecorder, now: Duration) {
    let mut questions = Vec::new();
    loop {
        match recorder.poll_output(now) {
            RaceOutput::Timeout(_) => break,
            RaceOutput::Query(query) => questions.push(query),
            _ => {}
        }
    }
    for query in questions {
        let records = match query.record_type {
            RecordType::A => Ok(DnsRecords::A(vec!["192.0.2.1".parse().unwrap()])),
            _ => Err(DnsFailure::NoData),
        };
        let answer = DnsAnswer { id: query.id, records, protected: false, expired: false };
        recorder.handle_input(now + Duration::from_micros(1_500), RaceInput::Answer(answer));
    }
}

fn recorder() -> TraceRecorder {
    let mut recorder = early_recorder();
    drain(&mut recorder, ms(60));
    recorder
}

/// Only the first attempt has started.
fn early_recorder() -> TraceRecorder {
    let mut recorder = unanswered_recorder();
    drain(&mut recorder, ms(0));
    drain(&mut recorder, ms(2));
    recorder
}

fn unanswered_recorder() -> TraceRecorder {
    let source = SourceAddress {
        address: "198.51.100.9".parse().unwrap(),
        prefix_len: 24,
        deprecated: false,
        routed: true,
    };
    let network = NetworkView {
        id: NetworkId("home".into()),
        sources: vec![source],
        pref64: Vec::new(),
        lacking: Vec::new(),
    };
    let transports = vec![Transport::Quic, Transport::Tcp];
    let setup = RaceSetup {
        target: Target::plain(TargetHost::Name("a.test".into()), 443, transports, Security::Tls),
        policy: Policy::of_first_tries(),
        view: MemoryView::empty(),
        network,
        seed: 7,
    };
    TraceRecorder::new(setup, ms(0))
}

fn ready(recorder: &mut TraceRecorder, id: u32, at: u64) {
    let rtt = Some(Duration::from_millis(9));
    let id = AttemptId(id);
    recorder.handle_input(ms(at), RaceInput::Ready { id, alpn: None, rtt });
    drain(recorder, ms(at));
}

#[test]
fn a_report_describes_the_whole_race() {
    let mut recorder = recorder();
    ready(&mut recorder, 1, 80);
    ready(&mut recorder, 0, 200);
    let report = RaceReport::from_trace(recorder.trace()).unwrap();
    let winner = report.winner.unwrap();
    assert_eq!((winner.transport, winner.ready_ms), (Transport::Tcp, 80.0));
    assert_eq!(winner.address, "192.0.2.1:443");
    let upgrade = report.upgraded_to.unwrap();
    assert_eq!((upgrade.transport, upgrade.ready_ms), (Transport::Quic, 200.0));
    assert!(!report.from_memory);
    assert_eq!(report.failure, None);
    let outcomes: Vec<_> = report.attempts.iter().map(|attempt| attempt.outcome).collect();
    assert_eq!(outcomes, [AttemptOutcome::Upgraded, AttemptOutcome::Won]);
    assert!(report.attempts.iter().all(|attempt| !attempt.reason.is_empty()));
    let answered: Vec<_> = report.dns.iter().map(|dns| (dns.asked_ms, dns.answered_ms)).collect();
    assert!(!answered.is_empty());
    assert!(answered.iter().all(|times| *times == (0.0, Some(1.5))), "{answered:?}");
}

#[test]
fn a_report_shows_the_new_answer_and_that_an_expired_one_came_first() {
    let mut recorder = unanswered_recorder();
    let answer = |expired, records| {
        RaceInput::Answer(DnsAnswer { id: QueryId(0), records, protected: false, expired })
    };
    let RaceOutput::Query(query) = recorder.poll_output(ms(0)) else { panic!("no query") };
    assert_eq!((query.id, query.record_type), (QueryId(0), RecordType::A));
    let addresses = |text: &str| Ok(DnsRecords::A(vec![text.parse().unwrap()]));
    recorder.handle_input(ms(0), answer(true, addresses("192.0.2.1")));
    drain(&mut recorder, ms(0));
    let dns = |recorder: &TraceRecorder| RaceReport::from_trace(recorder.trace()).unwrap().dns;
    let shown = |dns: &[DnsReport]| (dns[0].answered_ms, dns[0].records(), dns[0].expired);
    assert_eq!(shown(&dns(&recorder)), (Some(0.0), 1, true));
    recorder.handle_input(ms(7), answer(false, Err(DnsFailure::NoSuchName)));
    drain(&mut recorder, ms(7));
    assert_eq!(shown(&dns(&recorder)), (Some(7.0), 0, true));
    assert_eq!(dns(&recorder)[0].failure(), Some(&DnsFailure::NoSuchName));
}

#[test]
fn a_report_of_a_race_that_failed_says_why() {
    let mut recorder = recorder();
    for (id, cause) in [(0, FailureCause::Silent), (1, FailureCause::Certificate)] {
        let failure = AttemptFailure::new(cause, EvidenceLevel::Transport, "expired yesterday");
        recorder.handle_input(ms(90), RaceInput::Failed { id: AttemptId(id), failure });
    }
    drain(&mut recorder, ms(90));
    let report = RaceReport::from_trace(recorder.trace()).unwrap();
    assert_eq!(report.winner, None);
    assert!(matches!(report.failure, Some(RaceFailure::AllFailed(_))));
    let tcp = &report.attempts[1];
    assert_eq!(tcp.outcome, AttemptOutcome::Failed);
    assert_eq!(tcp.reason, "certificate after the transport was up: expired yesterday");
    assert_eq!(tcp.ended_ms, Some(90.0));
}

#[test]
fn a_report_is_available_during_the_race() {
    let recorder = recorder();
    let report = RaceReport::new(recorder.race(), recorder.trace());
    assert_eq!(report.winner, None);
    assert!(report.attempts.iter().all(|attempt| attempt.outcome == AttemptOutcome::UnderWay));
}

#[test]
fn a_report_has_the_field_names_of_the_documents() {
    let mut recorder = recorder();
    ready(&mut recorder, 1, 80);
    let report = RaceReport::new(recorder.race(), recorder.trace());
    let json = serde_json::to_value(&report).unwrap();
    for field in ["transport", "security", "address", "ready_ms"] {
        assert!(!json["winner"][field].is_null(), "winner.{field}");
    }
    for field in ["transport", "security", "address", "started_ms", "outcome", "reason"] {
        assert!(!json["attempts"][1][field].is_null(), "attempts[].{field}");
    }
    assert_eq!(json["attempts"][1]["outcome"], AttemptOutcome::Won.name());
    assert_eq!(json["from_memory"], false);
    assert!(json["upgraded_to"].is_null());
}

#[test]
fn an_untried_candidate_says_so() {
    let mut recorder = early_recorder();
    ready(&mut recorder, 0, 20);
    let report = RaceReport::from_trace(recorder.trace()).unwrap();
    assert_eq!(report.attempts.len(), 1, "quic won within its head start");
    let not_started: Vec<bool> = report
        .plan
        .entries
        .iter()
        .map(|e| e.reasons.contains(&PlanReason(ReasonKind::NotStarted)))
        .collect();
    assert_eq!(not_started, [false, true]);
    let last = report.plan.entries[1].reasons.last().unwrap();
    assert_eq!(last.to_string(), "not started: the race was over");
}

#[test]
fn during_the_race_every_candidate_may_still_be_tried() {
    let recorder = early_recorder();
    let report = RaceReport::from_trace(recorder.trace()).unwrap();
    assert_eq!((report.attempts.len(), report.plan.entries.len()), (1, 2));
    assert!(
        report
            .plan
            .entries
            .iter()
            .all(|e| !e.reasons.contains(&PlanReason(ReasonKind::NotStarted)))
    );
}
