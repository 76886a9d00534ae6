//! Tests of recording and replay.

use alloc::sync::Arc;
use core::time::Duration;

use super::*;
use crate::candidate::{Security, Transport};
use crate::evidence::{
    AttemptFailure, CertificateFailure, CertificateFault, EvidenceLevel, FailureCause, NetworkId,
};
use crate::io::{AttemptId, NetworkView, SourceAddress};
use crate::memory::MemoryView;
use crate::policy::Policy;
use crate::target::{Target, TargetHost};

fn ms(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

fn drain(recorder: &mut TraceRecorder, now: Duration) {
    while !matches!(recorder.poll_output(now), RaceOutput::Timeout(_)) {}
}

/// TCP wins at 80 ms, QUIC becomes better at 200 ms.
fn recording() -> Trace {
    let literal = TargetHost::Literal("192.0.2.1".parse().unwrap(), 0);
    let transports = vec![Transport::Quic, Transport::Tcp];
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
    let setup = RaceSetup {
        target: Target::plain(literal, 443, transports, Security::Tls),
        policy: Policy::of_first_tries(),
        view: MemoryView::empty(),
        network,
        seed: 7,
    };
    let mut recorder = TraceRecorder::new(setup, ms(0));
    drain(&mut recorder, ms(0));
    drain(&mut recorder, ms(50));
    for (at, id) in [(80, 1), (200, 0)] {
        let id = AttemptId(id);
        let ready = RaceInput::Ready { id, alpn: None, rtt: Some(ms(9)) };
        recorder.handle_input(ms(at), ready);
        drain(&mut recorder, ms(at));
    }
    assert!(recorder.race().is_over());
    recorder.into_trace()
}

#[test]
fn a_recording_replays_to_the_same_outputs() {
    let trace = recording();
    let race = replay(&trace).unwrap();
    assert_eq!(race.attempts().len(), 2);
}

#[test]
fn a_recording_survives_json_lines_byte_for_byte() {
    let trace = recording();
    let mut lines = vec![serde_json::to_string(&trace.header).unwrap()];
    lines.extend(trace.steps.iter().map(|step| serde_json::to_string(step).unwrap()));

    let version: HeaderVersion = serde_json::from_str(&lines[0]).unwrap();
    assert_eq!(version.check(), Ok(()));
    let read = Trace {
        header: serde_json::from_str(&lines[0]).unwrap(),
        steps: lines[1..].iter().map(|line| serde_json::from_str(line).unwrap()).collect(),
    };
    assert_eq!(read, trace);
    replay(&read).unwrap();
    let rewritten: Vec<String> =
        read.steps.iter().map(|step| serde_json::to_string(step).unwrap()).collect();
    assert_eq!(rewritten, lines[1..]);
}

#[test]
fn a_divergence_names_the_first_step_that_differs() {
    let mut trace = recording();
    let usable = TraceEvent::Output(Box::new(RaceOutput::Usable(AttemptId(1))));
    let step = trace.steps.iter().position(|step| step.event == usable).unwrap();
    trace.steps[step].event = TraceEvent::Output(Box::new(RaceOutput::Usable(AttemptId(0))));
    let Err(ReplayDivergence::Output { step: found, recorded, replayed, .. }) = replay(&trace)
    else {
        panic!("the change went unnoticed");
    };
    assert_eq!(found, step);
    assert_eq!(*recorded, RaceOutput::Usable(AttemptId(0)));
    assert_eq!(*replayed, RaceOutput::Usable(AttemptId(1)));
    let text = replay(&trace).unwrap_err().to_string();
    let expected = format!(
        "step {} differs: recorded was attempt 0 winning, and this eyas has attempt 1 winning; the \
         trace was recorded by another version of eyas, or was changed",
        step + 1
    );
    assert_eq!(text, expected);
}

#[test]
fn every_divergence_is_one_line_without_names_of_types() {
    let recorded = recording();
    for (at, step) in recorded.steps.iter().enumerate() {
        let TraceEvent::Output(output) = &step.event else { continue };
        let mut trace = recorded.clone();
        trace.steps[at].event = TraceEvent::Output(Box::new(match **output {
            RaceOutput::Finished => RaceOutput::Timeout(None),
            _ => RaceOutput::Finished,
        }));
        let text = replay(&trace).unwrap_err().to_string();
        assert!(!text.contains(['\n', '{', '"']) && !text.contains("Some("), "{text}");
        assert!(text.len() < 300, "{text}");
    }
}

#[test]
fn an_unknown_version_is_rejected() {
    let mut trace = recording();
    trace.header.version = SCHEMA_VERSION + 1;
    let unknown = UnknownVersion(SCHEMA_VERSION + 1);
    assert_eq!(replay(&trace).unwrap_err(), ReplayDivergence::Version(unknown));
    let future = format!(r#"{{"version":{},"of":["things","to","come"]}}"#, SCHEMA_VERSION + 1);
    let version: HeaderVersion = serde_json::from_str(&future).unwrap();
    assert_eq!(version.check(), Err(unknown));
}

#[test]
fn a_recording_is_bounded() {
    let trace = recording();
    let mut recorder = TraceRecorder::new(trace.header.setup, ms(0));
    for _ in 0..MAX_STEPS + 10 {
        recorder.handle_input(ms(0), RaceInput::Tick);
        if recorder.trace().steps.len() == MAX_STEPS {
            break;
        }
        drain(&mut recorder, ms(0));
    }
    recorder.handle_input(ms(0), RaceInput::Cancel);
    assert_eq!(recorder.trace().steps.len(), MAX_STEPS);
    replay(recorder.trace()).unwrap();
}

#[test]
fn a_journal_is_bounded() {
    let setup = recording().header.setup;
    let mut journal = RaceJournal::new(Arc::new(setup), ms(0));
    journal.note_polls(ms(0), u32::try_from(MAX_STEPS).unwrap() - 1);
    journal.note_input(ms(0), &RaceInput::Tick);
    journal.note_input(ms(0), &RaceInput::Cancel);
    journal.note_polls(ms(0), 7);
    let trace = journal.trace();
    assert_eq!(trace.steps.len(), MAX_STEPS);
    assert_eq!(trace.steps.last().unwrap().event, TraceEvent::Input(RaceInput::Tick));
}

#[test]
fn a_journal_reflects_the_current_race() {
    let setup = Arc::new(recording().header.setup);
    let mut journal = RaceJournal::new(Arc::clone(&setup), ms(0));
    let mut race = Race::new(setup, ms(0));
    while !matches!(race.poll_output(ms(0)), RaceOutput::Timeout(_)) {
        journal.note_polls(ms(0), 1);
    }
    journal.note_polls(ms(0), 1);
    assert_eq!(journal.race().plan(), race.plan());
    assert_eq!(journal.race().attempts(), race.attempts());
    assert!(!race.plan().entries.is_empty());
}

/// A line of a trace from before failures had a fault.
const OLD_LINE: &str = r#"{"at":{"secs":0,"nanos":9},"input":{"failed":{"id":1,"failure":{"cause":"certificate","reached":"transport","detail":"the certificate expired on 2002-01-01"}}}}"#;

#[test]
fn a_failure_without_a_fault_is_read_and_written_as_before() {
    let step: TraceStep = serde_json::from_str(OLD_LINE).unwrap();
    let detail = "the certificate expired on 2002-01-01";
    let failure = AttemptFailure::new(FailureCause::Certificate, EvidenceLevel::Transport, detail);
    // The text is not parsed: what was not recorded is not known.
    assert_eq!((failure.peer_certificate(), failure.own_certificate()), (None, None));
    let expected = TraceEvent::Input(RaceInput::Failed { id: AttemptId(1), failure });
    assert_eq!(step.event, expected);
    assert_eq!(serde_json::to_string(&step).unwrap(), OLD_LINE);
}

/// A line of a trace from before answers could have expired.
const OLD_ANSWER: &str = r#"{"at":{"secs":0,"nanos":9},"input":{"answer":{"id":2,"records":{"Ok":{"A":["192.0.2.1"]}},"protected":false}}}"#;

#[test]
fn an_answer_that_holds_is_read_and_written_as_before() {
    let step: TraceStep = serde_json::from_str(OLD_ANSWER).unwrap();
    let TraceEvent::Input(RaceInput::Answer(answer)) = &step.event else { panic!("{step:?}") };
    assert!(!answer.expired);
    assert_eq!(serde_json::to_string(&step).unwrap(), OLD_ANSWER);
}

#[test]
fn faults_are_recorded_by_name() {
    use CertificateFault as Which;
    let failure = AttemptFailure::new(FailureCause::Certificate, EvidenceLevel::Transport, "x");
    for (fault, name) in [
        (Which::Expired, "expired"),
        (Which::NotYetValid, "not-yet-valid"),
        (Which::WrongName, "wrong-name"),
        (Which::UnknownIssuer, "unknown-issuer"),
        (Which::Revoked, "revoked"),
        (Which::Missing, "missing"),
        (Which::Other, "other"),
    ] {
        for (fault, side) in [
            (CertificateFailure::PeerCertificate(fault), "peer-certificate"),
            (CertificateFailure::OwnCertificate(fault), "own-certificate"),
        ] {
            let failure = failure.clone().with_fault(fault);
            let line = serde_json::to_string(&failure).unwrap();
            let member = format!(r#""fault":{{"{side}":"{name}"}}"#);
            assert!(line.contains(&member), "{line}");
            assert_eq!(serde_json::from_str::<AttemptFailure>(&line).unwrap(), failure);
            let later = line.replace(name, "of-a-later-version");
            let read: AttemptFailure = serde_json::from_str(&later).unwrap();
            let read = read.peer_certificate().or(read.own_certificate());
            assert_eq!(read, Some(Which::Other), "{later}");
        }
    }
}
