//! Second tries: when they start, and what happens to those that are superseded.

use super::scene::*;
use crate::candidate::Transport;
use crate::evidence::{Evidence, EvidenceLevel, FailureCause, NetworkId, TrustContext};
use crate::io::{AttemptId, RaceInput};
use crate::memory::{Memory, MemoryConfig};
use crate::policy::Policy;
use crate::target::TargetHost;

/// QUIC with a head start of 50 ms before TCP, and no grace.
fn both() -> Policy {
    Policy { second_tries: 3, ..Policy::of_first_tries() }
}

fn quic_only() -> Policy {
    Policy { transports: vec![Transport::Quic], ..both() }
}

/// A race at home, where the round trips to other hosts are these.
fn among(round_trips: &[u64]) -> Scene {
    let mut memory = Memory::new(MemoryConfig::default());
    for (number, round_trip) in round_trips.iter().enumerate() {
        let host = TargetHost::Name(format!("{number}.test"));
        let evidence = Evidence { host, rtt: Some(ms(*round_trip)), ..good(Transport::Tcp) };
        memory.learn(&evidence, &TrustContext::default());
    }
    let mut setup = setup(quic_only());
    setup.view =
        memory.view(&NetworkId("home".into()), &setup.target.host, &TrustContext::default(), EPOCH);
    Scene::with(setup, &[V4])
}

/// ```text
/// 0     quic ──▶
/// 250   quic ──▶        three more, each waits twice as long as the one before it
/// 750   quic ──▶
/// 1750  quic ──▶
/// ```
#[test]
fn unanswered_candidates_are_retried_at_growing_intervals_by_default() {
    let policy = Policy { transports: vec![Transport::Quic], ..Policy::default() };
    let mut scene = Scene::new(&[V4], policy);
    let starts = [
        "0 start 0 quic 192.0.2.1",
        "250 start 1 quic 192.0.2.1",
        "750 start 2 quic 192.0.2.1",
        "1750 start 3 quic 192.0.2.1",
    ];
    assert_eq!(scene.until(20_000), starts);
}

#[test]
fn other_hosts_of_the_network_shorten_the_delay_down_to_its_minimum() {
    let second = |round_trips: &[u64]| among(round_trips).until(600)[1].clone();
    assert_eq!(second(&[5, 5, 5]), "100 start 1 quic 192.0.2.1");
    assert_eq!(second(&[5, 40, 5]), "130 start 1 quic 192.0.2.1", "the longest counts");
    assert_eq!(second(&[5, 400, 5]), "250 start 1 quic 192.0.2.1");
    assert_eq!(second(&[5, 5]), "250 start 1 quic 192.0.2.1", "two hosts are too few");
}

#[test]
fn the_first_to_complete_wins_and_the_silence_of_the_others_is_no_evidence() {
    let mut scene = Scene::new(&[V4], quic_only());
    scene.until(770);
    scene.ready(1);
    let lines = [
        "770 learn quic good at Security",
        "770 usable 1",
        "770 close 0 Lost",
        "770 close 2 Lost",
        "770 finished",
    ];
    assert_eq!(scene.until(60_000), lines);
}

/// A host that drops everything is remembered once, not once for each try.
#[test]
fn repeated_silence_is_learnt_once() {
    let mut scene = Scene::new(&[V4], quic_only());
    let lines = scene.until(60_000);
    let learnt = lines.iter().filter(|line| line.contains("learn quic silent")).count();
    assert_eq!(learnt, 1, "{lines:?}");
    let failed = lines.iter().find(|line| line.contains("failed")).unwrap();
    assert_eq!(failed.matches("Candidate").count(), 1, "listed once: {failed}");
}

/// ```text
/// 0     quic ──▶
/// 50    tcp ──▶
/// 55    tcp ◀── answered, after a round trip of 20 ms: QUIC is overdue
/// 70    quic ──▶
/// ```
#[test]
fn a_round_trip_measured_by_another_attempt_shortens_the_wait() {
    let mut scene = Scene::new(&[V4], both());
    scene.until(55);
    scene.reaches(1, EvidenceLevel::Transport, Some(ms(20)));
    assert_eq!(scene.until(100), ["70 start 2 quic 192.0.2.1"]);
}

#[test]
fn what_has_been_answered_is_not_tried_again() {
    let mut scene = Scene::new(&[V4], quic_only());
    scene.until(90);
    scene.answered(0);
    assert_eq!(scene.until(20_000), Vec::<String>::new());
}

#[test]
fn a_host_that_refuses_is_not_tried_again() {
    let mut scene = Scene::new(&[V4], both());
    scene.until(60);
    scene.fails(1, FailureCause::Refused);
    let lines = scene.until(800);
    assert!(!lines.iter().any(|line| line.contains("start")), "{lines:?}");
}

/// ```text
/// 0     quic ──▶
/// 50    tcp ──▶
/// 90    tcp ◀── complete: usable, and nothing more is started
/// ```
#[test]
fn no_second_try_starts_after_a_winner() {
    let mut scene = Scene::new(&[V4], both());
    scene.until(90);
    scene.ready(1);
    let lines = scene.until(60_000);
    assert!(!lines.iter().any(|line| line.contains("start")), "{lines:?}");
}

/// ```text
/// 0     quic ──▶
/// 30    tcp ──▶
/// 32    tcp ◀── complete, after round trips of 1 ms: QUIC has until 44
/// 40    quic ──▶        10 ms after the last start
/// 43    quic ◀── complete: usable
/// ```
#[test]
fn an_overdue_preferred_transport_is_tried_again_within_the_grace() {
    let mut scene = Scene::new(&[V4], Policy::default());
    scene.until(32);
    let rtt = Some(ms(1));
    scene.input(RaceInput::Ready { id: AttemptId(1), alpn: None, rtt });
    assert_eq!(
        scene.until(43),
        ["32 learn tcp good at Security", "40 start 2 quic 192.0.2.1"],
        "no second try of a complete attempt"
    );
    scene.ready(2);
    let lines = scene.until(43);
    assert!(lines.contains(&"43 usable 2".to_owned()), "{lines:?}");
}

#[test]
fn a_second_try_in_progress_at_the_win_may_still_become_better() {
    let mut scene = Scene::new(&[V4], Policy::default());
    scene.until(32);
    let rtt = Some(ms(1));
    scene.input(RaceInput::Ready { id: AttemptId(1), alpn: None, rtt });
    let lines = scene.until(48);
    assert!(lines.contains(&"44 usable 1".to_owned()), "{lines:?}");
    scene.ready(2);
    let lines = scene.until(48);
    assert!(lines.contains(&"48 better 2".to_owned()), "{lines:?}");
}

/// A second try does not take the place of an untried candidate.
#[test]
fn untried_candidates_come_before_second_tries() {
    let policy = Policy { transports: vec![Transport::Tcp], max_in_flight: 2, ..both() };
    let mut scene = Scene::new(&["192.0.2.1", "192.0.2.2"], policy);
    let starts = ["0 start 0 tcp 192.0.2.1", "250 start 1 tcp 192.0.2.2"];
    assert_eq!(scene.until(20_000), starts);
}

#[test]
fn a_simultaneous_race_has_no_second_tries() {
    let mut scene = Scene::new(&[V4], Policy { simultaneous: true, ..quic_only() });
    assert_eq!(scene.until(20_000), ["0 start 0 quic 192.0.2.1"]);
}
