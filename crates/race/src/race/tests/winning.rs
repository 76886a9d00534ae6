//! Which attempt wins.

use super::scene::*;
use crate::candidate::{Security, Transport};
use crate::evidence::{EvidenceLevel, FailureCause};
use crate::policy::Policy;

fn cancelling() -> Policy {
    Policy { late_switch: false, ..Policy::of_first_tries() }
}

/// ```text
/// 0     quic ──▶
/// 40    quic ◀── complete: usable, and tcp never starts
/// ```
#[test]
fn the_first_to_complete_wins() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(40);
    scene.ready(0);
    assert_eq!(
        scene.until(60_000),
        ["40 learn quic good at Security", "40 usable 0", "40 finished"]
    );
}

//= hev3 §6
//# losers are closed at once; an unanswered preferred transport may go on for the late switch
/// ```text
/// 0     quic ──▶
/// 50    tcp ──▶
/// 90    tcp ◀── complete: usable; quic is closed
/// ```
#[test]
fn losers_are_closed_at_once() {
    let mut scene = Scene::new(&[V4], cancelling());
    scene.until(90);
    scene.ready(1);
    let lines = ["90 learn tcp good at Security", "90 usable 1", "90 close 0 Lost", "90 finished"];
    assert_eq!(scene.until(60_000), lines);
}

//= hev3 §6.1
//# an attempt wins with its TLS handshake
#[test]
fn a_syn_ack_alone_wins_nothing() {
    let mut scene = Scene::new(&[V4], cancelling());
    scene.until(60);
    scene.reaches(1, EvidenceLevel::Transport, Some(ms(5)));
    assert_eq!(scene.until(100), Vec::<String>::new());
}

#[test]
fn without_security_the_transport_is_enough() {
    let mut setup = setup(Policy::of_first_tries());
    setup.target.security = Security::None;
    setup.policy.transports = vec![Transport::Tcp];
    let mut scene = Scene::with(setup, &[V4]);
    scene.until(20);
    scene.ready(0);
    assert_eq!(scene.until(20), ["20 learn tcp good at Transport", "20 usable 0", "20 finished"]);
}

/// ```text
/// 0     quic ──▶
/// 50    tcp ──▶
/// 80    tcp ◀── complete: waits 30 ms for quic
/// 100   quic ◀── complete: usable
/// ```
#[test]
fn the_grace_lets_a_more_preferred_transport_complete() {
    let mut scene = Scene::new(&[V4], Policy { grace: ms(30), ..cancelling() });
    scene.until(80);
    scene.ready(1);
    assert_eq!(scene.until(100), ["80 learn tcp good at Security"]);
    scene.ready(0);
    let lines =
        ["100 learn quic good at Security", "100 usable 0", "100 close 1 Lost", "100 finished"];
    assert_eq!(scene.until(60_000), lines);
}

#[test]
fn the_grace_ends() {
    let mut scene = Scene::new(&[V4], Policy { grace: ms(30), ..cancelling() });
    scene.until(80);
    scene.ready(1);
    let lines =
        ["80 learn tcp good at Security", "110 usable 1", "110 close 0 Lost", "110 finished"];
    assert_eq!(scene.until(60_000), lines);
}

#[test]
fn the_grace_ends_early_when_no_preferred_attempt_is_left() {
    let mut scene = Scene::new(&[V4], Policy { grace: ms(30), ..cancelling() });
    scene.until(80);
    scene.ready(1);
    scene.until(90);
    scene.fails(0, FailureCause::Refused);
    let lines = ["90 learn quic refused at Started", "90 usable 1", "90 finished"];
    assert_eq!(scene.until(60_000), lines);
}

#[test]
fn of_two_that_complete_in_one_instant_the_more_preferred_wins() {
    for order in [[0, 1], [1, 0]] {
        let mut scene = Scene::new(&[V4], Policy::of_first_tries());
        scene.until(70);
        for id in order {
            scene.ready(id);
        }
        let lines = [
            "70 learn quic good at Security",
            "70 learn tcp good at Security",
            "70 usable 0",
            "70 close 1 Lost",
            "70 finished",
        ];
        assert_eq!(scene.until(60_000), lines);
    }
}

/// ```text
/// 0     quic ──▶
/// 50    tcp ──▶
/// 60    tcp ◀── SYN ACK decides the race; quic is closed
/// 90    tcp ◀── complete: usable
/// ```
#[test]
fn a_lower_level_decides_the_race_and_completion_makes_it_usable() {
    let mut scene = Scene::new(&[V4], Policy { win_at: EvidenceLevel::Answered, ..cancelling() });
    scene.until(60);
    scene.answered(1);
    assert_eq!(scene.until(90), ["60 close 0 Lost"]);
    scene.ready(1);
    let lines = ["90 learn tcp good at Security", "90 usable 1", "90 finished"];
    assert_eq!(scene.until(60_000), lines);
}

/// ```text
/// 60    tcp ◀── SYN ACK decides the race; quic is closed
/// 90    tcp ✕ TLS fails: the race is open again
/// 90    quic ──▶ once more
/// ```
#[test]
fn if_the_elected_attempt_fails_the_race_reopens() {
    let mut scene = Scene::new(&[V4], Policy { win_at: EvidenceLevel::Answered, ..cancelling() });
    scene.until(60);
    scene.answered(1);
    scene.until(90);
    scene.fails(1, FailureCause::Tls);
    assert_eq!(scene.until(1_000), ["90 learn tcp tls at Answered", "90 start 2 quic 192.0.2.1"]);
}

/// ```text
/// 60    tcp ◀── SYN ACK decides the race; quic is closed
/// 2060  tcp has made no progress for 2 s: the race is open again
/// 2060  quic ──▶ once more
/// ```
#[test]
fn a_stalled_elected_attempt_does_not_block_the_others() {
    let mut scene = Scene::new(&[V4], Policy { win_at: EvidenceLevel::Answered, ..cancelling() });
    scene.until(60);
    scene.answered(1);
    assert_eq!(scene.until(2_060), ["60 close 0 Lost", "2060 start 2 quic 192.0.2.1"]);
    scene.ready(2);
    assert!(scene.until(2_060).contains(&"2060 usable 2".to_owned()));
}

#[test]
fn a_higher_level_waits_for_the_first_byte() {
    let policy = Policy { win_at: EvidenceLevel::FirstByte, ..cancelling() };
    let mut scene = Scene::new(&[V4], policy);
    scene.until(40);
    scene.ready(0);
    let lines = ["40 learn quic good at Security", "90 start 1 tcp 192.0.2.1"];
    assert_eq!(scene.until(200), lines);
    scene.reaches(0, EvidenceLevel::FirstByte, None);
    assert_eq!(scene.until(200), ["200 usable 0", "200 close 1 Lost", "200 finished"]);
}

/// MPTCP that fell back is TCP and ranks as TCP.
#[test]
fn a_fallback_ranks_as_the_transport_it_falls_back_to() {
    let transports = vec![Transport::Mptcp, Transport::Quic, Transport::Tcp];
    let policy =
        Policy { transports: transports.clone(), simultaneous: true, ..Policy::of_first_tries() };
    let mut setup = setup(policy);
    setup.target.service = crate::target::TargetService::Plain { transports, alpn: Vec::new() };
    let mut scene = Scene::with(setup, &[V4]);
    scene.until(10);
    let id_of = |scene: &Scene, transport| {
        let found = scene.race.attempts().iter().find(|a| a.candidate.transport == transport);
        found.unwrap().id
    };
    let (mptcp, quic) = (id_of(&scene, Transport::Mptcp), id_of(&scene, Transport::Quic));
    scene.input(crate::io::RaceInput::FellBack { id: mptcp });
    scene.input(crate::io::RaceInput::Ready { id: mptcp, alpn: None, rtt: None });
    assert!(scene.until(10).contains(&format!("10 usable {}", mptcp.0)));
    assert_eq!(scene.race.attempt(mptcp).unwrap().transport(), Transport::Tcp);
    scene.until(30);
    scene.ready(quic.0);
    assert!(scene.until(30).contains(&format!("30 better {}", quic.0)));
}

#[test]
fn an_exhaustive_race_waits_for_all_and_elects_the_most_preferred() {
    let mut scene = Scene::new(&[V4], Policy { exhaustive: true, ..Policy::of_first_tries() });
    scene.until(70);
    scene.ready(1);
    assert_eq!(scene.until(500), ["70 learn tcp good at Security"]);
    scene.ready(0);
    let lines =
        ["500 learn quic good at Security", "500 usable 0", "500 close 1 Lost", "500 finished"];
    assert_eq!(scene.until(60_000), lines);
}

#[test]
fn an_exhaustive_race_ends_at_the_deadline_with_the_best_so_far() {
    let mut scene = Scene::new(&[V4], Policy { exhaustive: true, ..Policy::of_first_tries() });
    scene.until(70);
    scene.ready(1);
    let lines = [
        "70 learn tcp good at Security",
        "30000 learn quic silent at Started",
        "30000 close 0 Deadline",
        "30000 usable 1",
        "30000 finished",
    ];
    assert_eq!(scene.until(60_000), lines);
}
