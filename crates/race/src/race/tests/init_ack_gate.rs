//! Attempts that wait at the peer's first answer, and when they proceed.

use super::scene::*;
use crate::candidate::{Security, Transport};
use crate::evidence::EvidenceLevel;
use crate::policy::{LoserPolicy, Policy};
use crate::race::RaceSetup;

fn sctp_before_tcp(policy: Policy) -> RaceSetup {
    let transports = vec![Transport::Sctp, Transport::Tcp];
    let policy = Policy { transports: transports.clone(), ..policy };
    let mut setup = setup(policy);
    setup.target.service = crate::target::TargetService::Plain { transports, alpn: vec![] };
    setup.target.security = Security::None;
    setup
}

fn cancelling() -> Policy {
    Policy { late_switch: false, ..Policy::of_first_tries() }
}

/// ```text
/// 0     sctp ──▶ INIT
/// 20    sctp ◀── INIT ACK: proceeds at once, since nothing else is ready
/// ```
#[test]
fn an_attempt_that_may_still_win_proceeds_at_its_answer() {
    let mut scene = Scene::with(sctp_before_tcp(cancelling()), &[V4]);
    scene.until(20);
    scene.answered(0);
    assert_eq!(scene.until(20), ["20 proceed 0"]);
    assert_eq!(scene.until(40), Vec::<String>::new(), "only once");
    scene.ready(0);
    assert_eq!(scene.until(40), ["40 learn sctp good at Transport", "40 usable 0", "40 finished"]);
}

/// ```text
/// 0     sctp ──▶ INIT
/// 50    tcp ──▶
/// 60    tcp ◀── complete: usable; sctp is closed before it sends COOKIE ECHO
/// ```
#[test]
fn a_loser_never_proceeds() {
    let mut scene = Scene::with(sctp_before_tcp(cancelling()), &[V4]);
    scene.until(60);
    scene.ready(1);
    scene.answered(0);
    let lines = ["60 learn tcp good at Transport", "60 usable 1", "60 close 0 Lost", "60 finished"];
    assert_eq!(scene.until(60_000), lines, "the INIT ACK of the same instant changes nothing");
}

#[test]
fn the_late_switch_lets_a_preferred_loser_proceed() {
    let mut scene = Scene::with(sctp_before_tcp(Policy::of_first_tries()), &[V4]);
    scene.until(60);
    scene.ready(1);
    assert_eq!(scene.until(60), ["60 learn tcp good at Transport", "60 usable 1"]);
    scene.until(90);
    scene.answered(0);
    assert_eq!(scene.until(90), ["90 proceed 0"]);
    scene.until(120);
    scene.ready(0);
    assert_eq!(scene.until(120)[..2], ["120 learn sctp good at Transport", "120 better 0"]);
}

/// An unanswered attempt planned before the winner only has to show whether it is silent, so its
/// first answer ends it.
#[test]
fn an_attempt_that_only_tests_for_silence_ends_at_its_answer() {
    let policy = Policy {
        transports: vec![Transport::Tcp, Transport::Sctp],
        losers: LoserPolicy::Cancel,
        ..Policy::of_first_tries()
    };
    let mut setup = sctp_before_tcp(policy);
    setup.policy.transports = vec![Transport::Sctp];
    let mut scene = Scene::with(setup, &[V6, V4]);
    scene.until(300);
    scene.ready(1);
    scene.until(320);
    scene.answered(0);
    let lines = scene.until(60_000);
    assert_eq!(lines, ["320 close 0 Lost", "320 finished"]);
}

#[test]
fn a_loser_waits_during_the_grace() {
    let mut setup = sctp_before_tcp(Policy { grace: ms(30), ..cancelling() });
    let transports = vec![Transport::Sctp, Transport::Tcp, Transport::SctpUdp];
    setup.policy.transports.clone_from(&transports);
    setup.target.service = crate::target::TargetService::Plain { transports, alpn: vec![] };
    let mut scene = Scene::with(setup, &[V4]);
    scene.until(110);
    scene.ready(1);
    scene.answered(2);
    let lines = scene.until(110);
    assert_eq!(lines, ["110 learn tcp good at Transport"], "sctp-udp is less preferred than tcp");
    scene.answered(0);
    assert_eq!(scene.until(110), ["110 proceed 0"], "sctp is more preferred, and has the grace");
}

#[test]
fn the_naive_race_carries_every_handshake_to_its_end() {
    let setup = sctp_before_tcp(Policy::of_first_tries().naive());
    let mut scene = Scene::with(setup, &[V4]);
    let starts = ["0 start 0 sctp 192.0.2.1", "0 start 1 tcp 192.0.2.1"];
    assert_eq!(scene.until(0), starts);
    scene.until(20);
    scene.ready(1);
    scene.answered(0);
    assert_eq!(scene.until(20), ["20 learn tcp good at Transport", "20 usable 1", "20 proceed 0"]);
    scene.until(40);
    scene.ready(0);
    let lines = ["40 learn sctp good at Transport", "40 close 0 Lost", "40 finished"];
    assert_eq!(scene.until(60_000), lines);
}

/// As in the paper's footnote: where SCTP is preferred, its INIT ACK ends the others.
#[test]
fn the_init_ack_can_win() {
    let policy = Policy { win_at: EvidenceLevel::Answered, ..cancelling() };
    let mut scene = Scene::with(sctp_before_tcp(policy), &[V4]);
    scene.until(60);
    scene.answered(0);
    assert_eq!(scene.until(60), ["60 close 1 Lost", "60 proceed 0"]);
}
