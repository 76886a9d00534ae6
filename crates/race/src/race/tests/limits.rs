//! Limits on attempts in flight, per race and per process.

use super::scene::*;
use crate::candidate::Transport;
use crate::evidence::Cause;
use crate::io::Input;
use crate::policy::Policy;

const FOUR: [&str; 4] = ["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4"];

fn tcp_only() -> Policy {
    Policy { transports: vec![Transport::Tcp], ..Policy::of_first_tries() }
}

#[test]
fn a_race_keeps_to_its_own_limit() {
    let mut scene = Scene::new(&FOUR, Policy { max_in_flight: 2, ..tcp_only() });
    assert_eq!(scene.until(5_000), ["0 start 0 tcp 192.0.2.1", "250 start 1 tcp 192.0.2.2"]);
    scene.fails(0, Cause::Silent);
    let lines = ["5000 learn tcp silent at Started", "5000 start 2 tcp 192.0.2.3"];
    assert_eq!(scene.until(10_000), lines);
}

#[test]
fn a_race_waits_for_slots_of_the_process() {
    let mut scene = Scene::unanswered(setup(tcp_only()));
    scene.input(Input::Slots(1));
    scene.answer(&FOUR);
    assert_eq!(scene.until(5_000), ["0 start 0 tcp 192.0.2.1"]);
    scene.input(Input::Slots(1));
    assert_eq!(scene.until(6_000), ["5000 start 1 tcp 192.0.2.2"]);
    scene.input(Input::Slots(9));
    assert_eq!(scene.until(7_000), ["6000 start 2 tcp 192.0.2.3", "6250 start 3 tcp 192.0.2.4"]);
}

#[test]
fn limits_hold_for_a_simultaneous_race_too() {
    let policy = Policy { simultaneous: true, max_in_flight: 3, ..tcp_only() };
    let mut scene = Scene::new(&FOUR, policy);
    assert_eq!(scene.until(100).len(), 3);
    scene.fails(1, Cause::Refused);
    assert_eq!(scene.until(100).last().unwrap(), "100 start 3 tcp 192.0.2.4");
}

#[test]
fn a_thousand_addresses_are_tried_in_a_bounded_way() {
    let many: Vec<String> = (0..1_000).map(|n| format!("192.0.{}.{}", n / 250, n % 250)).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let mut scene = Scene::new(&many, tcp_only());
    let lines = scene.until(29_999);
    assert_eq!(lines.len(), Policy::of_first_tries().max_in_flight, "{lines:?}");
}
