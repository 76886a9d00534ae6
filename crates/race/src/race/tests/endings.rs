//! How races end without a winner.

use super::scene::*;
use crate::evidence::{EvidenceLevel, FailureCause};
use crate::io::{RaceFailure, RaceInput};
use crate::policy::Policy;

/// The failure that a race ends with, and the lines before it.
fn ending(mut scene: Scene, milliseconds: u64) -> Vec<String> {
    let lines = scene.until(milliseconds);
    assert_eq!(lines.last().map(|line| line.contains("finished")), Some(true), "{lines:?}");
    assert!(scene.race.is_over());
    lines
}

#[test]
fn a_race_ends_when_everything_has_failed() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(100);
    scene.fails(0, FailureCause::Silent);
    scene.until(100);
    scene.fails(1, FailureCause::Refused);
    let lines = ending(scene, 100);
    assert!(lines[1].contains("failed AllFailed"), "{lines:?}");
    assert!(lines[1].find("Quic").unwrap() < lines[1].find("Tcp").unwrap());
    assert!(
        lines[1].contains("simulated failure"),
        "the failure includes the detail of the lower layer"
    );
}

#[test]
fn a_race_ends_at_once_when_dns_knows_no_address() {
    let scene = Scene::new(&[], Policy::of_first_tries());
    let lines = ending(scene, 60);
    assert!(lines[0].contains("failed NoAddress([("), "{lines:?}");
}

#[test]
fn the_deadline_ends_a_race() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(100);
    scene.fails(0, FailureCause::Reset);
    let lines = ending(scene, 30_000);
    assert_eq!(lines[1], "30000 learn tcp silent at Started");
    assert_eq!(lines[2], "30000 close 1 Deadline");
    assert!(lines[3].starts_with("30000 failed Deadline([("), "{lines:?}");
    assert!(lines[3].contains("None"), "tcp was still in progress: {lines:?}");
    assert!(lines[3].contains("Reset"), "quic had failed: {lines:?}");
}

#[test]
fn what_started_just_before_the_deadline_is_no_evidence() {
    let scene = Scene::new(&[V4], Policy { deadline: ms(1_000), ..Policy::of_first_tries() });
    let lines = ending(scene, 1_000);
    assert!(lines.iter().all(|line| !line.contains("learn")), "{lines:?}");
}

#[test]
fn the_deadline_ends_the_wait_for_dns() {
    let scene = Scene::unanswered(setup(Policy::of_first_tries()));
    let lines = ending(scene, 30_000);
    assert!(lines[0].starts_with("30000 failed "), "{lines:?}");
}

#[test]
fn a_cancelled_race_leaves_nothing_behind() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(60);
    scene.input(RaceInput::Cancel);
    let lines =
        ["60 close 0 Cancelled", "60 close 1 Cancelled", "60 failed Cancelled", "60 finished"];
    assert_eq!(ending(scene, 60), lines);
}

#[test]
fn a_finished_race_ignores_everything() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(40);
    scene.ready(0);
    scene.until(40);
    assert!(scene.race.is_over());
    scene.fails(0, FailureCause::Reset);
    scene.ready(1);
    scene.answered(7);
    scene.input(RaceInput::Cancel);
    scene.moves_to("cafe");
    assert_eq!(scene.until(60_000), Vec::<String>::new());
}

/// Progress of the winner arrives together with the input that ends the race: it is too late after
/// the end, and after a change of network it would be stored for the wrong one.
#[test]
fn nothing_comes_after_the_end_in_the_same_instant() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(90);
    scene.ready(1);
    scene.until(90);
    scene.fails(1, FailureCause::Reset);
    scene.moves_to("cafe");
    scene.moves_to("train");
    assert_eq!(scene.until(60_000), ["90 close 0 NetworkChanged", "90 finished"]);
}

/// ```text
/// 90     tcp ◀── complete, and the server sends nothing 30000  the deadline closes it like all
/// others
/// ```
#[test]
fn a_complete_connection_that_stays_silent_is_closed_at_the_deadline() {
    let policy = Policy { win_at: EvidenceLevel::FirstByte, ..Policy::of_first_tries() };
    let mut scene = Scene::new(&[V4], policy);
    scene.until(90);
    scene.ready(1);
    let lines = scene.until(30_000);
    assert_eq!(lines[0], "90 learn tcp good at Security");
    assert_eq!(
        lines[1..4],
        ["30000 learn quic silent at Started", "30000 close 0 Deadline", "30000 close 1 Deadline"]
    );
    assert!(lines[4].starts_with("30000 failed Deadline"), "{lines:?}");
    assert_eq!(lines[4].matches("Candidate").count(), 2, "both are named: {lines:?}");
    scene.moves_to("cafe");
    assert_eq!(lines[5..], ["30000 finished"]);
    assert_eq!(scene.until(60_000), Vec::<String>::new());
}

#[test]
fn no_network_is_distinguished_from_no_candidate() {
    let mut setup = setup(Policy::of_first_tries());
    setup.network.sources.clear();
    let mut scene = Scene::with(setup, &[V4]);
    let attempts = scene.until(60).len();
    for id in 0..u32::try_from(attempts).unwrap() {
        scene.fails(id, FailureCause::Unreachable);
    }
    let lines = ending(scene, 60);
    assert!(lines.contains(&format!("60 failed {:?}", RaceFailure::NoNetwork)), "{lines:?}");
}
