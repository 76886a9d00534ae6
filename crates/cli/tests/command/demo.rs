//! Tests of `eyas demo`.

use serde_json::Value;

use crate::stage::{Eyas, validate};

#[test]
fn it_shows_every_scene_and_ends_by_itself() {
    let shown = Eyas::new("demo").run().exits(0);
    for heading in [
        "All is well",
        "The network drops UDP",
        "TCP is slow",
        "QUIC is slow",
        "HTTP/3 only",
        "A wrong certificate",
        "SCTP inside UDP",
        "drops protocol 132",
        "through eyas proxy",
        "Summary",
        "eyas get",
    ] {
        assert!(shown.out.contains(heading), "{heading}: {}", shown.out);
    }
    assert!(!shown.out.contains('\u{1b}'), "a pipe gets no colours");
    assert!(shown.out.lines().all(|line| line.chars().count() <= 80), "{}", shown.out);
    assert_eq!(shown.err, "");
}

#[test]
fn colours_are_used_on_request() {
    let shown = Eyas::new("demo --color always").run().exits(0);
    assert!(shown.out.contains('\u{1b}'));
}

/// Returns the transport that won the race of a scene, and the race.
fn race<'a>(object: &'a Value, scene: usize, when: &str) -> (&'a str, &'a Value) {
    let race = &object["scenes"][scene][when];
    (race["winner"]["transport"].as_str().unwrap_or("none"), race)
}

fn attempts(race: &Value) -> usize {
    race["attempts"].as_array().map_or(0, Vec::len)
}

#[test]
fn the_object_has_the_result_of_each_network() {
    let object = Eyas::new("demo --json").run().exits(0).json();
    validate("demo", &object);
    let names: Vec<_> = (0..9).map(|scene| object["scenes"][scene]["name"].clone()).collect();
    let expected = [
        "all-well",
        "udp-swallowed",
        "tcp-slow",
        "quic-slow",
        "http3-only",
        "wrong-certificate",
        "sctp-inside-udp",
        "protocol-132-dropped",
        "proxy",
    ];
    assert_eq!(names, expected);
    for when in ["without_memory", "with_memory"] {
        for (scene, only) in [(1, "tcp"), (4, "quic"), (5, "tcp"), (8, "tcp")] {
            assert_eq!(race(&object, scene, when).0, only, "{scene} {when}: {object:#}");
        }
        let winner = &race(&object, 8, when).1["winner"]["address"];
        assert!(winner.as_str().is_some_and(|at| at.starts_with("127.0.0.1:")), "{object:#}");
    }
    let second_race = race(&object, 1, "with_memory").1;
    assert_eq!(second_race["from_memory"], true, "{object:#}");
    assert_eq!(second_race["attempts"][0]["transport"], "tcp", "it is tried directly: {object:#}");
}

/// Returns whether the fast and the preferred transports won, where both could. The demo uses
/// delays of tens of milliseconds, which are not reliable on a busy machine.
fn matches_texts(object: &Value) -> bool {
    race(object, 0, "without_memory").0 == "quic"
        && attempts(race(object, 1, "with_memory").1) == 1
        && race(object, 3, "without_memory").1["upgraded_to"] == "quic"
        && race(object, 6, "without_memory").0 == "sctp-udp"
        && race(object, 7, "without_memory").0 == "sctp-udp"
        && race(object, 7, "with_memory").0 == "sctp-udp"
        && attempts(race(object, 7, "with_memory").1) == 1
        && attempts(race(object, 8, "without_memory").1) == 2
        && attempts(race(object, 8, "with_memory").1) == 1
}

#[test]
fn the_scenes_show_what_their_texts_claim() {
    let shown: Vec<Value> = (0..20)
        .map(|_| Eyas::new("demo --json").run().exits(0).json())
        .take_while(|object| !matches_texts(object))
        .collect();
    assert!(shown.len() < 20, "not once in {} times: {:#}", shown.len(), shown[0]);
}
