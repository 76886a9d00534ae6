//! Starts that changed DNS answers bring forward.

use super::scene::*;
use crate::candidate::Transport;
use crate::dns::RecordType;
use crate::evidence::{Evidence, FailureCause, NetworkId, TrustContext};
use crate::io::AttemptId;
use crate::memory::{Memory, MemoryConfig};
use crate::policy::Policy;
use crate::race::RaceSetup;
use crate::report::RaceReport;
use crate::target::TargetHost;
use crate::trace::{SCHEMA_VERSION, Trace, TraceHeader};

const OLD: &str = "192.0.2.1";
const OTHER: &str = "192.0.2.2";
const NEW: &str = "192.0.2.3";

fn tcp_only() -> Policy {
    Policy { transports: vec![Transport::Tcp], ..Policy::of_first_tries() }
}

/// A set-up at home, where these round trips were measured: to the old address, and to others.
fn remembering(to_old: Option<u64>, to_others: &[u64]) -> RaceSetup {
    let mut memory = Memory::new(MemoryConfig::default());
    let others = to_others.iter().enumerate().map(|(number, round_trip)| Evidence {
        host: TargetHost::Name(format!("{number}.test")),
        rtt: Some(ms(*round_trip)),
        ..good(Transport::Tcp)
    });
    let old =
        to_old.map(|round_trip| Evidence { rtt: Some(ms(round_trip)), ..good(Transport::Tcp) });
    for evidence in others.chain(old) {
        memory.learn(&evidence, &TrustContext::default());
    }
    let mut setup = setup(tcp_only());
    setup.view =
        memory.view(&NetworkId("home".into()), &setup.target.host, &TrustContext::default(), EPOCH);
    setup
}

/// A race to the old address; at this time the new one takes its place.
fn replaced_at(setup: RaceSetup, milliseconds: u64) -> Scene {
    let mut scene = Scene::with(setup, &[OLD]);
    assert_eq!(scene.until(milliseconds), ["0 start 0 tcp 192.0.2.1"]);
    scene.answer_again(RecordType::A, &[NEW]);
    scene
}

fn reasons(scene: &Scene, id: u32) -> Vec<String> {
    let attempt = scene.race.attempt(AttemptId(id)).unwrap();
    attempt.reasons.iter().map(ToString::to_string).collect()
}

fn early_after(milliseconds: u64) -> String {
    format!(
        "started early: DNS answers changed, and an earlier attempt had been unanswered for \
         {milliseconds} ms"
    )
}

//= hev3 §7
//# MAY start the next address sooner if an attempt at a withdrawn one was not answered in time
/// ```text
/// 0     A ◀── 1
/// 0     1 ──▶
/// 40    A ◀── 3            1 is gone, and has 100 ms to answer
/// 100   3 ──▶              not at 250
/// ```
#[test]
fn an_address_that_replaces_a_silent_one_is_tried_soon() {
    let mut scene = replaced_at(setup(tcp_only()), 40);
    assert_eq!(scene.until(1_000), ["100 start 1 tcp 192.0.2.3"]);
    assert_eq!(reasons(&scene, 1).last().unwrap(), early_after(100).as_str());
    let header = TraceHeader {
        version: SCHEMA_VERSION,
        started_at: EPOCH,
        setup: scene.race.setup().clone(),
    };
    let report = RaceReport::new(&scene.race, &Trace { header, steps: Vec::new() });
    let entry = report.plan.entries.last().unwrap();
    assert_eq!(entry.reasons.last().unwrap().to_string(), early_after(100));
}

#[test]
fn after_the_window_the_new_address_is_tried_at_once() {
    let mut scene = replaced_at(setup(tcp_only()), 170);
    assert_eq!(scene.until(1_000), ["170 start 1 tcp 192.0.2.3"]);
}

//= hev3 §7
//# the expected time is the remembered round trip with a margin; without history the timer stays
/// ```text
/// 0     A ◀── 1, 2
/// 0     1 ──▶              its round trip was 130 ms
/// 40    A ◀── 3, 1         3 is next
/// 150   3 ──▶              not at 390, after three round trips
/// ```
#[test]
fn a_listed_address_has_its_round_trip_to_answer() {
    let mut scene = Scene::with(remembering(Some(130), &[]), &[OLD, OTHER]);
    assert_eq!(scene.until(40), ["0 start 0 tcp 192.0.2.1"]);
    scene.answer_again(RecordType::A, &[NEW, OLD]);
    assert_eq!(scene.until(380), ["150 start 1 tcp 192.0.2.3"]);
    assert_eq!(reasons(&scene, 1).last().unwrap(), early_after(150).as_str());
}

#[test]
fn without_history_a_listed_address_has_the_whole_delay() {
    let mut scene = Scene::with(setup(tcp_only()), &[OLD, OTHER]);
    scene.until(40);
    scene.answer_again(RecordType::A, &[NEW, OLD]);
    assert_eq!(scene.until(400), ["250 start 1 tcp 192.0.2.3"]);
    assert!(!reasons(&scene, 1).iter().any(|reason| reason.starts_with("started early")));
}

#[test]
fn the_distance_of_other_hosts_is_an_expectation() {
    let mut scene = Scene::with(remembering(None, &[5, 40, 5]), &[OLD, OTHER]);
    scene.until(40);
    scene.answer_again(RecordType::A, &[NEW, OLD]);
    assert_eq!(scene.until(300), ["130 start 1 tcp 192.0.2.3"], "three round trips and 10 ms");
}

#[test]
fn an_attempt_that_makes_progress_is_waited_for() {
    let mut scene = Scene::with(setup(tcp_only()), &[OLD]);
    scene.until(60);
    scene.answered(0);
    scene.until(80);
    scene.answer_again(RecordType::A, &[NEW]);
    assert_eq!(scene.until(1_000), ["310 start 1 tcp 192.0.2.3"]);
}

#[test]
fn the_update_must_bring_another_address_next() {
    let mut scene = Scene::with(remembering(Some(30), &[]), &[OLD, OTHER]);
    scene.until(10);
    scene.answer_again(RecordType::A, &[OLD, OTHER, NEW]);
    let regular = ["100 start 1 tcp 192.0.2.2", "350 start 2 tcp 192.0.2.3"];
    assert_eq!(scene.until(1_000), regular, "the timer of the memory: three round trips, 100 ms");
    assert!(!reasons(&scene, 1).iter().any(|reason| reason.starts_with("started early")));
}

/// ```text
/// 0     1 ──▶
/// 250   2 ──▶
/// 260   A ◀── 3, 4         the window of 1 is over
/// 350   3 ──▶              100 ms after 2
/// 600   4 ──▶              this timer started after the update
/// ```
#[test]
fn the_minimum_delay_holds_and_only_the_running_timer_is_cut() {
    let mut scene = Scene::with(setup(tcp_only()), &[OLD, OTHER]);
    scene.until(260);
    scene.answer_again(RecordType::A, &[NEW, "192.0.2.4"]);
    let starts = ["350 start 2 tcp 192.0.2.3", "600 start 3 tcp 192.0.2.4"];
    assert_eq!(scene.until(2_000), starts);
}

/// A failure has its own rule: the next attempt starts at once, which is no early start.
#[test]
fn a_failure_after_the_update_is_not_an_early_start() {
    let mut scene = replaced_at(setup(tcp_only()), 40);
    scene.fails(0, FailureCause::Refused);
    let lines = ["40 learn tcp refused at Started", "40 start 1 tcp 192.0.2.3"];
    assert_eq!(scene.until(1_000), lines);
    assert!(!reasons(&scene, 1).iter().any(|reason| reason.starts_with("started early")));
}

/// ```text
/// 0     tcp 1 ──▶
/// 40    A ◀── 1            2 was next, now it is QUIC to the address that is silent
/// 400   quic 1 ──▶         after its head start
/// ```
#[test]
fn the_silent_address_over_another_transport_is_not_brought_forward() {
    let policy = Policy {
        transports: vec![Transport::Tcp, Transport::Quic],
        head_start: ms(400),
        second_try_delay: ms(100),
        ..Policy::of_first_tries()
    };
    let mut scene = Scene::with(setup(policy), &[OLD, OTHER]);
    assert_eq!(scene.until(40), ["0 start 0 tcp 192.0.2.1"]);
    scene.answer_again(RecordType::A, &[OLD]);
    assert_eq!(scene.until(1_000), ["400 start 1 quic 192.0.2.1"]);
}
