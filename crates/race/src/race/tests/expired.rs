//! Races that begin with expired answers (optimistic DNS).

use super::scene::*;
use crate::candidate::Transport;
use crate::dns::{DnsFailure, RecordType};
use crate::evidence::FailureCause;
use crate::io::RaceInput;
use crate::policy::Policy;

const OLD: &str = "192.0.2.1";
const NEW: &str = "192.0.2.3";

fn tcp_only() -> Policy {
    Policy { transports: vec![Transport::Tcp], ..Policy::of_first_tries() }
}

/// A race to one or more addresses of an expired answer; there is no AAAA record.
fn expired(addresses: &[&str]) -> Scene {
    let mut scene = Scene::unanswered(setup(tcp_only()));
    scene.answer_expired(RecordType::A, addresses);
    scene.answer_only(RecordType::Aaaa, &[]);
    scene
}

//= hev3 §4.4
//# failures at expired addresses are not final: the new answer is awaited
/// ```text
/// 0     A ◀── 1, expired
/// 0     1 ──▶
/// 20    1 ✕ refused
/// 900   A ◀── 3
/// 900   3 ──▶
/// ```
#[test]
fn a_race_does_not_fail_before_the_new_answer() {
    let mut scene = expired(&[OLD]);
    assert_eq!(scene.until(20), ["0 start 0 tcp 192.0.2.1"]);
    scene.fails(0, FailureCause::Refused);
    assert_eq!(scene.until(900), ["20 learn tcp refused at Started"]);
    scene.answer_only(RecordType::A, &[NEW]);
    assert_eq!(scene.until(5_000), ["900 start 1 tcp 192.0.2.3"]);
}

#[test]
fn without_a_new_answer_it_fails_then() {
    let mut scene = expired(&[OLD]);
    scene.until(20);
    scene.fails(0, FailureCause::Refused);
    scene.until(900);
    scene.fail_queries(RecordType::A, DnsFailure::Timeout);
    let lines = scene.until(900);
    assert!(lines[0].starts_with("900 failed AllFailed"), "{lines:?}");
}

/// ```text
/// 0     A ◀── 1, 2, expired
/// 0     1 ──▶
/// 30    A ◀── 3            2 is gone; 1 goes on, and has 100 ms to answer
/// 100   3 ──▶
/// 130   1 ◀── complete
/// ```
#[test]
fn running_attempts_go_on_and_untried_addresses_go() {
    let mut scene = expired(&[OLD, "192.0.2.2"]);
    assert_eq!(scene.until(30), ["0 start 0 tcp 192.0.2.1"]);
    scene.answer_only(RecordType::A, &[NEW]);
    assert_eq!(scene.until(130), ["100 start 1 tcp 192.0.2.3"]);
    scene.ready(0);
    let lines = scene.until(130);
    assert!(lines.contains(&"130 usable 0".to_owned()), "{lines:?}");
}

#[test]
fn a_name_that_is_gone_leaves_nothing_to_try() {
    let mut scene = expired(&[OLD, "192.0.2.2"]);
    scene.until(30);
    scene.fail_queries(RecordType::A, DnsFailure::NoSuchName);
    assert_eq!(scene.until(5_000), Vec::<String>::new(), "the second address is not tried");
    scene.fails(0, FailureCause::Refused);
    let lines = scene.until(5_000);
    assert!(lines[1].starts_with("5000 failed AllFailed"), "{lines:?}");
}

/// The race stays open for the new answer, but no longer than for any late one.
#[test]
fn the_new_answer_is_read_after_the_win() {
    let won = || {
        let mut scene = expired(&[OLD]);
        scene.until(30);
        scene.ready(0);
        let lines = scene.until(200);
        assert_eq!(lines, ["30 learn tcp good at Security", "30 usable 0"]);
        scene
    };
    let mut scene = won();
    scene.answer_only(RecordType::A, &[OLD]);
    assert_eq!(scene.until(200), ["200 finished"]);
    assert_eq!(won().until(5_000), ["1030 finished"]);
}

#[test]
fn a_cancelled_race_awaits_nothing() {
    let mut scene = expired(&[OLD]);
    scene.until(30);
    scene.input(RaceInput::Cancel);
    assert_eq!(scene.until(30).last().unwrap(), "30 finished");
}
