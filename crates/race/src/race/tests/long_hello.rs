//! ClientHellos of two packets that do not get through where one of one packet does.

use super::scene::*;
use crate::candidate::{Security, Transport};
use crate::evidence::{FailureCause, TrustContext};
use crate::io::{AttemptId, RaceInput, RaceOutput};
use crate::memory::{Memory, MemoryConfig};
use crate::policy::Policy;
use crate::race::RaceSetup;
use crate::report::{RaceJson, RaceReport};
use crate::trace::TraceRecorder;

fn one_transport(transport: Transport, security: Security) -> RaceSetup {
    let policy = Policy { transports: vec![transport], ..Policy::of_first_tries() };
    let target = crate::target::Target::plain(target().host, 443, vec![transport], security);
    RaceSetup { target, ..setup(policy) }
}

fn shortened(id: u32) -> RaceInput {
    RaceInput::LongHelloFailed { id: AttemptId(id), detail: "it was not answered".into() }
}

/// Runs a race whose only attempt shortens its ClientHello, and returns whether it began with a short one.
fn race(setup: RaceSetup, memory: &mut Memory, finds_out: bool) -> (bool, RaceReport) {
    let mut recorder = TraceRecorder::new(setup, EPOCH);
    let mut started = None;
    let mut is_answered = false;
    for _ in 0..64 {
        match recorder.poll_output(EPOCH) {
            RaceOutput::Query(query) => {
                let records = match query.record_type {
                    crate::dns::RecordType::A => {
                        Ok(crate::dns::DnsRecords::A(vec![V4.parse().unwrap()]))
                    }
                    _ => Err(crate::dns::DnsFailure::NoData),
                };
                let answer = crate::dns::DnsAnswer {
                    id: query.id,
                    records,
                    protected: false,
                    expired: false,
                };
                recorder.handle_input(EPOCH, RaceInput::Answer(answer));
            }
            RaceOutput::Start { id, .. } => {
                started = recorder.race().attempt(id).map(|attempt| attempt.short_hello);
            }
            RaceOutput::Learn(evidence) => memory.learn(&evidence, &TrustContext::default()),
            RaceOutput::Finished => break,
            RaceOutput::Timeout(_) if !is_answered => {
                is_answered = true;
                let id = AttemptId(0);
                if finds_out {
                    recorder.handle_input(EPOCH, shortened(0));
                }
                recorder.handle_input(EPOCH, RaceInput::Ready { id, alpn: None, rtt: None });
            }
            RaceOutput::Timeout(_) => break,
            _ => {}
        }
    }
    let report = RaceReport::from_trace(&recorder.into_trace()).unwrap();
    (started.expect("an attempt started"), report)
}

#[test]
fn the_next_race_begins_with_a_short_one_and_says_why() {
    for transport in [Transport::Tcp, Transport::Quic] {
        let setup = one_transport(transport, Security::Tls);
        let mut memory = Memory::new(MemoryConfig::default());
        let (is_short, report) = race(setup.clone(), &mut memory, true);
        assert!(!is_short);
        let attempt = &report.attempts[0];
        assert!(
            attempt.short_hello && attempt.reason.starts_with("long-client-hello"),
            "{attempt:?}"
        );
        let reason = report.plan.entries[0].reasons.last().map(ToString::to_string);
        assert!(reason.is_some_and(|reason| reason.contains("long-client-hello")), "{report:?}");
        let json = serde_json::to_value(RaceJson::from(&report)).unwrap();
        assert_eq!(json["attempts"][0]["short_hello"], true);
        let view =
            memory.view(&setup.network.id, &setup.target.host, &TrustContext::default(), EPOCH);
        let (is_short, report) = race(RaceSetup { view, ..setup.clone() }, &mut memory, false);
        assert!(is_short && report.attempts[0].short_hello, "{transport}");
        assert!(report.attempts[0].reason.contains("has X25519 alone for 5 min"), "{report:?}");
        let later = EPOCH + MemoryConfig::default().bad_first;
        let trust = TrustContext::default();
        let view = memory.view(&setup.network.id, &setup.target.host, &trust, later);
        assert!(view.short_hello_until(&setup_candidate(transport), later).is_none());
    }
}

fn setup_candidate(transport: Transport) -> crate::candidate::Candidate {
    crate::candidate::Candidate { security: Security::Tls, ..candidate(transport, V4) }
}

#[test]
fn it_is_evidence_once_and_only_of_an_open_attempt_with_a_client_hello() {
    let learnt = |transport, security| {
        let mut scene = Scene::with(one_transport(transport, security), &[V4]);
        scene.until(20);
        for id in [0, 0, 1, u32::MAX] {
            scene.input(shortened(id));
        }
        let lines = scene.until(20);
        scene.fails(0, FailureCause::Reset);
        scene.until(21);
        scene.input(shortened(0));
        assert!(!scene.until(30).iter().any(|line| line.contains("long-client-hello")));
        lines
    };
    let lines = learnt(Transport::Tcp, Security::Tls);
    assert_eq!(lines, ["20 learn tcp long-client-hello at Started"]);
    assert_eq!(learnt(Transport::Tcp, Security::None), Vec::<String>::new());
    assert_eq!(learnt(Transport::SctpUdp, Security::Dtls), Vec::<String>::new());
}

/// The peer is heard: neither the candidate nor the network has failed.
#[test]
fn it_is_no_evidence_against_the_peer() {
    let mut memory = Memory::new(MemoryConfig::default());
    let setup = one_transport(Transport::Quic, Security::Tls);
    race(setup.clone(), &mut memory, true);
    let trust = TrustContext::default();
    let view = memory.view(&setup.network.id, &setup.target.host, &trust, EPOCH);
    let verdict = view.verdict(&setup_candidate(Transport::Quic), EPOCH);
    assert!(matches!(verdict, crate::memory::MemoryVerdict::Good { .. }), "{verdict:?}");
}

/// The time that it took was spent on the long one: no packet of the network was lost.
#[test]
fn what_took_its_time_is_no_loss() {
    let mut scene = Scene::with(one_transport(Transport::Quic, Security::Tls), &[V4]);
    scene.until(1400);
    scene.input(shortened(0));
    scene.ready(0);
    let mut sent_again = Vec::new();
    while let output = scene.output()
        && !matches!(output, RaceOutput::Timeout(_) | RaceOutput::Finished)
    {
        if let RaceOutput::Learn(evidence) = output {
            sent_again.push((evidence.failure.map(|failure| failure.cause), evidence.sent_again));
        }
    }
    assert_eq!(sent_again[..2], [(Some(FailureCause::LongClientHello), None), (None, None)]);
}
