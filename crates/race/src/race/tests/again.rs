//! Second tries: when they start, and what becomes of those that are outdone.

use super::scene::*;
use crate::candidate::Transport;
use crate::evidence::{Cause, Level};
use crate::policy::Policy;

fn both() -> Policy {
    Policy { second_tries: 3, ..Policy::default() }
}

fn quic_only() -> Policy {
    Policy { transports: vec![Transport::Quic], ..both() }
}

/// ```text
/// 0     quic ──▶
/// 100   quic ──▶        three more, each waits twice as long as the one before it
/// 300   quic ──▶
/// 700   quic ──▶
/// ```
#[test]
fn what_nobody_answers_is_tried_again_at_growing_distances() {
    let mut scene = Scene::new(&[V4], quic_only());
    let starts = [
        "0 start 0 quic 192.0.2.1",
        "100 start 1 quic 192.0.2.1",
        "300 start 2 quic 192.0.2.1",
        "700 start 3 quic 192.0.2.1",
    ];
    assert_eq!(scene.until(20_000), starts);
}

#[test]
fn the_first_to_complete_wins_and_the_silence_of_the_others_teaches_nothing() {
    let mut scene = Scene::new(&[V4], quic_only());
    scene.until(320);
    scene.ready(1);
    let lines = [
        "320 learn quic good at Security",
        "320 usable 1",
        "320 close 0 Lost",
        "320 close 2 Lost",
        "320 finished",
    ];
    assert_eq!(scene.until(60_000), lines);
}

/// A host that swallows everything is remembered once, not once for each try.
#[test]
fn what_was_silent_however_often_is_learnt_once() {
    let mut scene = Scene::new(&[V4], quic_only());
    let lines = scene.until(60_000);
    let learnt = lines.iter().filter(|line| line.contains("learn quic silent")).count();
    assert_eq!(learnt, 1, "{lines:?}");
    let failed = lines.iter().find(|line| line.contains("failed")).unwrap();
    assert_eq!(failed.matches("Candidate").count(), 1, "told once: {failed}");
}

/// ```text
/// 0     quic ──▶
/// 50    tcp ──▶
/// 55    tcp ◀── answered, after a round trip of 20 ms: QUIC should long have been
/// 70    quic ──▶
/// ```
#[test]
fn a_round_trip_that_another_attempt_has_seen_shortens_the_wait() {
    let mut scene = Scene::new(&[V4], both());
    scene.until(55);
    scene.reaches(1, Level::Transport, Some(ms(20)));
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
fn nor_is_what_stands_at_a_host_that_refuses() {
    let mut scene = Scene::new(&[V4], both());
    scene.until(60);
    scene.fails(1, Cause::Refused);
    let lines = scene.until(800);
    assert!(!lines.iter().any(|line| line.contains("start")), "{lines:?}");
}

/// ```text
/// 0     quic ──▶
/// 50    tcp ──▶
/// 90    tcp ◀── complete: usable
/// 100   quic ──▶        beside the connection that works
/// 110   quic ◀── complete: better
/// ```
#[test]
fn a_more_wanted_transport_is_tried_again_beside_the_winner() {
    let mut scene = Scene::new(&[V4], both());
    scene.until(90);
    scene.ready(1);
    scene.until(99);
    assert_eq!(scene.until(110), ["100 start 2 quic 192.0.2.1 background"]);
    scene.ready(2);
    let lines =
        ["110 learn quic good at Security", "110 better 2", "110 close 0 Lost", "110 finished"];
    assert_eq!(scene.until(60_000), lines);
}

/// A second try takes no place from a candidate that was not tried at all.
#[test]
fn what_was_not_tried_comes_first() {
    let policy = Policy { transports: vec![Transport::Tcp], max_in_flight: 2, ..both() };
    let mut scene = Scene::new(&["192.0.2.1", "192.0.2.2"], policy);
    let starts = ["0 start 0 tcp 192.0.2.1", "250 start 1 tcp 192.0.2.2"];
    assert_eq!(scene.until(20_000), starts);
}

/// Neither does it count against what may be tried in the background.
#[test]
fn a_second_try_beside_the_winner_is_none_of_those_in_the_background() {
    let mut scene = Scene::new(&[V4, "192.0.2.2"], Policy { attempt_delay: ms(2_000), ..both() });
    scene.until(90);
    scene.ready(1);
    let lines = scene.until(60_000);
    let second_tries = lines.iter().filter(|line| line.ends_with("quic 192.0.2.1 background"));
    assert_eq!(second_tries.count(), 3, "{lines:?}");
    let next = lines.iter().find(|line| line.ends_with("quic 192.0.2.2 background"));
    assert_eq!(next.map(|line| line.split(' ').next().unwrap()), Some("3090"), "{lines:?}");
}

#[test]
fn a_simultaneous_race_has_none() {
    let mut scene = Scene::new(&[V4], Policy { simultaneous: true, ..quic_only() });
    assert_eq!(scene.until(20_000), ["0 start 0 quic 192.0.2.1"]);
}
