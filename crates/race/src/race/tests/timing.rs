//! When attempts start.

use super::scene::*;
use crate::candidate::Transport;
use crate::dns::RecordType;
use crate::evidence::{EvidenceLevel, FailureCause, TrustContext};
use crate::memory::{Memory, MemoryConfig, MemoryView};
use crate::policy::Policy;

fn tcp_only() -> Policy {
    Policy { transports: vec![Transport::Tcp], ..Policy::of_first_tries() }
}

const FOUR: [&str; 4] = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"];

/// ```text
/// 0     quic ──▶
/// 50    tcp  ──▶        the head start is over
/// ```
#[test]
fn the_more_preferred_transport_has_a_head_start() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    assert_eq!(scene.until(1_000), ["0 start 0 quic 192.0.2.1", "50 start 1 tcp 192.0.2.1"]);
}

//= hev3 §6
//# attempts SHOULD NOT be simultaneous, unless the caller says so (`Policy::simultaneous`)
#[test]
fn the_next_attempt_starts_after_the_connection_attempt_delay() {
    let mut scene = Scene::new(&FOUR[..3], tcp_only());
    let starts =
        ["0 start 0 tcp 192.0.2.1", "250 start 1 tcp 192.0.2.2", "500 start 2 tcp 192.0.2.3"];
    assert_eq!(scene.until(2_000), starts);
}

/// ```text
/// 0     1 ──▶
/// 30    1 ✕ refused ─ next at once
/// 30    2 ──▶
/// 33    2 ✕ refused ─ but not within 10 ms of the start before
/// 40    3 ──▶
/// 290   4 ──▶
/// ```
#[test]
fn a_failure_starts_the_next_attempt_at_once_but_not_within_the_floor() {
    let mut scene = Scene::new(&FOUR, tcp_only());
    scene.until(30);
    scene.fails(0, FailureCause::Refused);
    assert_eq!(scene.until(33), ["30 learn tcp refused at Started", "30 start 1 tcp 192.0.2.2"]);
    scene.fails(1, FailureCause::Refused);
    let lines = [
        "33 learn tcp refused at Started",
        "40 start 2 tcp 192.0.2.3",
        "290 start 3 tcp 192.0.2.4",
    ];
    assert_eq!(scene.until(1_000), lines);
}

/// The failure of the second to last attempt says nothing about the last one.
#[test]
fn the_failure_of_an_older_attempt_does_not_change_the_timer() {
    let mut scene = Scene::new(&FOUR[..3], tcp_only());
    scene.until(300);
    scene.fails(0, FailureCause::Refused);
    let lines = ["300 learn tcp refused at Started", "500 start 2 tcp 192.0.2.3"];
    assert_eq!(scene.until(1_000), lines);
}

//= hev3 §6.1
//# progress extends the delay
/// ```text
/// 0     1 ──▶
/// 200   1 ◀── SYN ACK: the delay restarts for TLS
/// 450   2 ──▶
/// ```
#[test]
fn progress_extends_the_delay() {
    let mut scene = Scene::new(&FOUR[..2], tcp_only());
    scene.until(200);
    scene.answered(0);
    assert_eq!(scene.until(1_000), ["450 start 1 tcp 192.0.2.2"]);
}

//= hev3 §6.1
//# progress extends the delay by the round trip, up to the maximum
#[test]
fn a_long_round_trip_extends_it_further_up_to_the_maximum() {
    let policy = Policy { attempt_delay: ms(1_800), ..tcp_only() };
    let mut scene = Scene::new(&FOUR[..2], policy);
    scene.until(1_500);
    scene.reaches(0, EvidenceLevel::Answered, Some(ms(1_500)));
    assert_eq!(scene.until(5_000), ["2000 start 1 tcp 192.0.2.2"]);
}

#[test]
fn a_simultaneous_race_starts_everything_at_once() {
    let policy = Policy { simultaneous: true, ..Policy::of_first_tries() };
    let mut scene = Scene::new(&FOUR[..2], policy);
    let lines = scene.until(0);
    assert_eq!(lines.iter().filter(|line| line.starts_with("0 start")).count(), 4, "{lines:?}");
}

//= hev3 §7
//# a DNS update alone does not reschedule the timer
/// ```text
/// 0     AAAA ◀── : the preferred family is known, and nothing else is waited for
/// 0     v6 1 ──▶
/// 100   A ◀──
/// 250   v4 1 ──▶           the other family's turn
/// ```
#[test]
fn a_late_answer_takes_its_position_in_the_order() {
    let mut scene = Scene::unanswered(setup(tcp_only()));
    scene.answer_only(RecordType::Aaaa, &[V6, "2001:db8::2"]);
    assert_eq!(scene.until(100), ["0 start 0 tcp 2001:db8::1"]);
    scene.answer(&[V4]);
    let lines = ["250 start 1 tcp 192.0.2.1", "500 start 2 tcp 2001:db8::2"];
    assert_eq!(scene.until(1_000), lines);
}

#[test]
fn nothing_starts_before_dns_has_answered() {
    let mut scene = Scene::unanswered(setup(tcp_only()));
    assert!(scene.until(5_000).is_empty());
    scene.answer(&[V4]);
    assert_eq!(scene.until(5_000), ["5000 start 0 tcp 192.0.2.1"]);
}

/// IPv4 has just worked, so its answer is awaited, but no longer than the answer for IPv6 would be.
///
/// ```text
/// 0     HTTPS -, AAAA     1     A ─ 4 ──▶
/// 0     HTTPS -, AAAA     50      ─ 6 ──▶
/// ```
#[test]
fn an_answer_that_may_have_what_worked_recently_is_awaited() {
    let mut memory = Memory::new(MemoryConfig::default());
    memory.learn(&good(Transport::Tcp), &TrustContext::default());
    let mut setup = setup(tcp_only());
    setup.view =
        memory.view(&setup.network.id, &setup.target.host, &TrustContext::default(), EPOCH);
    let ahead = |setup| {
        let mut scene = Scene::unanswered(setup);
        scene.answer_only(RecordType::Https, &[]);
        scene.answer_only(RecordType::Aaaa, &[V6]);
        scene
    };
    let mut scene = ahead(setup.clone());
    assert_eq!(scene.until(1), Vec::<String>::new());
    scene.answer_only(RecordType::A, &[V4]);
    assert_eq!(scene.until(20), ["1 start 0 tcp 192.0.2.1"]);
    let mut scene = ahead(setup.clone());
    assert_eq!(scene.until(60), ["50 start 0 tcp 2001:db8::1"]);
    setup.view = MemoryView::empty();
    assert_eq!(ahead(setup).until(0), ["0 start 0 tcp 2001:db8::1"]);
}
