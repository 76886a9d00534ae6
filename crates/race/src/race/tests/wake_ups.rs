//! A decision that follows from another one is made at the same instant.

use super::scene::*;
use crate::candidate::{Security, Transport};
use crate::evidence::FailureCause;
use crate::policy::Policy;
use crate::race::RaceSetup;
use crate::target::TargetService;

/// QUIC and SCTP in UDP before TCP.
fn setup_of(policy: Policy) -> RaceSetup {
    let transports = vec![Transport::Quic, Transport::SctpUdp, Transport::Tcp];
    let mut setup = setup(Policy { transports: transports.clone(), ..policy });
    setup.target.service = TargetService::Plain { transports, alpn: vec![] };
    setup.target.security = Security::Tls;
    setup
}

/// ```text
/// 0     quic ──▶             dropped
/// 50    sctp-udp ──▶
/// 100   tcp ──▶
/// 150   sctp-udp ◀── refused
/// 1350  tcp ◀── complete, and waits for more preferred attempts
/// 1350  quic: given up, since its host refuses; nothing is left to wait for
/// ```
fn with_grace() -> Scene {
    let policy = Policy { grace: ms(300), ..Policy::of_first_tries() };
    let mut scene = Scene::with(setup_of(policy), &[V4]);
    scene.until(150);
    scene.fails(1, FailureCause::Refused);
    scene.until(1_350);
    scene
}

#[test]
fn giving_up_the_last_preferred_attempt_lets_a_complete_connection_win() {
    let mut scene = with_grace();
    scene.ready(2);
    let lines = scene.until(60_000);
    assert!(lines.contains(&"1350 usable 2".to_owned()), "{lines:?}");
}

#[test]
fn a_change_of_network_just_afterwards_does_not_undo_the_win() {
    let mut scene = with_grace();
    scene.ready(2);
    scene.until(1_351);
    scene.moves_to("cafe");
    let lines = scene.until(60_000);
    assert!(!lines.iter().any(|line| line.contains("failed")), "{lines:?}");
}

/// The same while the grace runs: its end is not waited for.
#[test]
fn abandoned_attempts_are_not_waited_for() {
    let policy = Policy { grace: ms(300), ..Policy::of_first_tries() };
    let mut scene = Scene::with(setup_of(policy), &[V4]);
    scene.until(150);
    scene.fails(1, FailureCause::Refused);
    scene.until(1_300);
    scene.ready(2);
    let lines = scene.until(60_000);
    assert!(lines.contains(&"1350 usable 2".to_owned()), "{lines:?}");
}

/// `race --all` where TCP works, UDP is dropped and SCTP in UDP refused: nothing is left to try at
/// 1,350 ms.
#[test]
fn an_exhaustive_race_ends_when_its_last_attempt_is_given_up() {
    let policy = Policy { exhaustive: true, ..Policy::of_first_tries() };
    let mut scene = Scene::with(setup_of(policy), &[V4]);
    scene.until(130);
    scene.ready(2);
    scene.until(150);
    scene.fails(1, FailureCause::Refused);
    let lines = scene.until(60_000);
    assert!(lines.contains(&"1350 usable 2".to_owned()), "{lines:?}");
    assert_eq!(lines.last().unwrap(), "1350 finished");
}
