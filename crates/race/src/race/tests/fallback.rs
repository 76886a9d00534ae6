//! MPTCP that falls back to TCP: usable as TCP, and no evidence in favour of MPTCP.

use super::scene::*;
use crate::candidate::{Candidate, Security, Transport};
use crate::evidence::{EvidenceLevel, FailureCause, TrustContext};
use crate::io::{AttemptId, RaceInput, RaceOutput};
use crate::memory::{Memory, MemoryConfig, MemorySubject, MemoryVerdict};
use crate::policy::Policy;
use crate::race::RaceSetup;
use crate::report::RaceReport;
use crate::target::Target;
use crate::trace::TraceRecorder;

/// A race of MPTCP, with or without plain TCP behind it.
fn mptcp_setup(transports: &[Transport], security: Security, policy: Policy) -> RaceSetup {
    let transports = transports.to_vec();
    let policy = Policy { transports: transports.clone(), ..policy };
    RaceSetup { target: Target::plain(target().host, 443, transports, security), ..setup(policy) }
}

const BOTH: [Transport; 2] = [Transport::Mptcp, Transport::Tcp];

fn fell_back(scene: &mut Scene, id: u32) {
    scene.input(RaceInput::FellBack { id: AttemptId(id) });
}

#[test]
fn a_fallback_wins_as_tcp_and_is_evidence_against_mptcp() {
    for security in [Security::None, Security::Tls] {
        let mut scene = Scene::with(mptcp_setup(&BOTH, security, Policy::of_first_tries()), &[V4]);
        scene.until(20);
        fell_back(&mut scene, 0);
        scene.reaches(0, EvidenceLevel::Transport, Some(ms(20)));
        assert_eq!(scene.until(20), ["20 learn mptcp fell-back at Answered"]);
        scene.until(40);
        scene.ready(0);
        let level = if security == Security::None { "Transport" } else { "Security" };
        let lines = scene.until(40);
        assert_eq!(lines[..2], [format!("40 learn tcp good at {level}"), "40 usable 0".to_owned()]);
        scene.reaches(0, EvidenceLevel::FirstByte, None);
        let lines = scene.until(41);
        assert!(!lines.iter().any(|line| line.contains("mptcp")), "{lines:?}");
    }
}

/// Whatever happens after the fallback concerns TCP: a certificate that is not accepted shows that
/// the peer answers over TCP, not that it does over MPTCP.
#[test]
fn what_follows_a_fallback_is_evidence_about_tcp() {
    for cause in
        [FailureCause::Certificate, FailureCause::Tls, FailureCause::Reset, FailureCause::Silent]
    {
        let setup = mptcp_setup(&[Transport::Mptcp], Security::Tls, Policy::of_first_tries());
        let mut scene = Scene::with(setup, &[V4]);
        scene.until(20);
        fell_back(&mut scene, 0);
        scene.reaches(0, EvidenceLevel::Transport, Some(ms(20)));
        scene.until(30);
        scene.fails(0, cause);
        let lines = scene.until(30);
        let learnt = format!("30 learn tcp {cause} at Transport");
        assert!(lines.contains(&learnt), "{lines:?}");
    }
}

#[test]
fn only_an_open_attempt_over_mptcp_can_fall_back_and_only_once() {
    let mut scene = Scene::with(mptcp_setup(&BOTH, Security::Tls, Policy::of_first_tries()), &[V4]);
    scene.until(300);
    // The second attempt is one over TCP, and the third does not exist.
    for id in [1, 2, u32::MAX] {
        fell_back(&mut scene, id);
    }
    assert_eq!(scene.until(300), Vec::<String>::new());
    fell_back(&mut scene, 0);
    fell_back(&mut scene, 0);
    assert_eq!(scene.until(300), ["300 learn mptcp fell-back at Answered"]);
    scene.fails(0, FailureCause::Reset);
    scene.until(301);
    fell_back(&mut scene, 0);
    assert!(!scene.until(302).iter().any(|line| line.contains("fell-back")));
}

/// Every sequence of a fallback with other events, at any time: the memory never concludes that
/// MPTCP works, in no row about the peer or about the network.
#[test]
fn the_memory_never_stores_that_mptcp_works_after_a_fallback() {
    for security in [Security::None, Security::Tls] {
        for exhaustive in [false, true] {
            for fails in [None, Some(FailureCause::Certificate), Some(FailureCause::Reset)] {
                let policy = Policy { exhaustive, ..Policy::of_first_tries() };
                let setup = mptcp_setup(&BOTH, security, policy);
                let mut memory = Memory::new(MemoryConfig::default());
                let mut scene = Scene::with(setup, &[V4]);
                scene.until(0);
                fell_back(&mut scene, 0);
                scene.reaches(0, EvidenceLevel::Transport, Some(ms(20)));
                match fails {
                    None => scene.ready(0),
                    Some(cause) => scene.fails(0, cause),
                }
                learn_all(&mut scene, &mut memory);
                scene.reaches(0, EvidenceLevel::FirstByte, None);
                learn_all(&mut scene, &mut memory);
                let mptcp = Candidate { security, ..candidate(Transport::Mptcp, V4) };
                let view = memory.view(
                    &network("home").id,
                    &target().host,
                    &TrustContext::default(),
                    EPOCH,
                );
                let verdict = view.verdict(&mptcp, EPOCH);
                assert!(
                    matches!(verdict, MemoryVerdict::Bad { cause: FailureCause::FellBack, .. }),
                    "{verdict:?}"
                );
                let about_path = |subject: &MemorySubject| {
                    matches!(subject, MemorySubject::Path { transport: Transport::Mptcp, .. })
                };
                assert!(!memory.records().any(|record| about_path(&record.key.subject)));
                let tcp = Candidate { transport: Transport::Tcp, ..mptcp };
                let is_good = matches!(view.verdict(&tcp, EPOCH), MemoryVerdict::Good { .. });
                assert_eq!(is_good, fails.is_none());
            }
        }
    }
}

fn learn_all(scene: &mut Scene, memory: &mut Memory) {
    loop {
        match scene.output() {
            RaceOutput::Learn(evidence) => memory.learn(&evidence, &TrustContext::default()),
            RaceOutput::Timeout(_) | RaceOutput::Finished => return,
            _ => {}
        }
    }
}

#[test]
fn the_report_says_that_an_attempt_fell_back() {
    let policy = Policy { exhaustive: true, ..Policy::of_first_tries() };
    let setup = mptcp_setup(&[Transport::Mptcp], Security::Tls, policy);
    let mut recorder = TraceRecorder::new(setup, EPOCH);
    let mut queries = Vec::new();
    while let output = recorder.poll_output(EPOCH)
        && !matches!(output, RaceOutput::Timeout(_))
    {
        if let RaceOutput::Query(query) = output {
            queries.push(query);
        }
    }
    for query in queries {
        let records = match query.record_type {
            crate::dns::RecordType::A => Ok(crate::dns::DnsRecords::A(vec![V4.parse().unwrap()])),
            _ => Err(crate::dns::DnsFailure::NoData),
        };
        let answer =
            crate::dns::DnsAnswer { id: query.id, records, protected: false, expired: false };
        recorder.handle_input(EPOCH, RaceInput::Answer(answer));
    }
    while !matches!(recorder.poll_output(EPOCH), RaceOutput::Timeout(_)) {}
    let id = AttemptId(0);
    recorder.handle_input(EPOCH + ms(20), RaceInput::FellBack { id });
    recorder.handle_input(EPOCH + ms(20), RaceInput::Ready { id, alpn: None, rtt: None });
    while !matches!(
        recorder.poll_output(EPOCH + ms(20)),
        RaceOutput::Timeout(_) | RaceOutput::Finished
    ) {}
    let report = RaceReport::from_trace(&recorder.into_trace()).unwrap();
    let attempt = &report.attempts[0];
    assert!(attempt.fell_back);
    assert_eq!(attempt.transport, Transport::Tcp);
    assert!(attempt.reason.starts_with("MPTCP fell back to TCP"), "{}", attempt.reason);
    let json = serde_json::to_value(crate::report::RaceJson::from(&report)).unwrap();
    assert_eq!(json["attempts"][0]["fell_back"], true);
    assert_eq!(json["attempts"][0]["transport"], "tcp");
}
