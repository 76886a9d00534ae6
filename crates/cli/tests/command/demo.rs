//! `eyas demo`: a user's first sight of eyas.

use std::time::Duration;

use crate::stage::{Eyas, validate};

#[test]
fn it_shows_every_scene_and_ends_by_itself() {
    let shown = Eyas::new("demo").run().exits(0);
    assert!(shown.took < Duration::from_secs(10), "{:?}", shown.took);
    for heading in [
        "All is well",
        "The network swallows UDP",
        "TCP is slow",
        "QUIC is slow",
        "HTTP/3 only",
        "A wrong certificate",
        "SCTP inside UDP",
        "drops protocol 132",
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
fn colours_come_when_asked() {
    let shown = Eyas::new("demo --color always").run().exits(0);
    assert!(shown.out.contains('\u{1b}'));
}

#[test]
fn the_object_tells_how_each_network_was_met() {
    let object = Eyas::new("demo --json").run().exits(0).json();
    validate("demo", &object);
    let winner = |scene: usize, when: &str| {
        let race = &object["scenes"][scene][when];
        (race["winner"]["transport"].as_str().unwrap_or("none").to_owned(), race.clone())
    };
    let names: Vec<_> = (0..8).map(|scene| object["scenes"][scene]["name"].clone()).collect();
    let expected = [
        "all-well",
        "udp-swallowed",
        "tcp-slow",
        "quic-slow",
        "http3-only",
        "wrong-certificate",
        "sctp-inside-udp",
        "protocol-132-dropped",
    ];
    assert_eq!(names, expected);
    assert_eq!(winner(0, "without_memory").0, "quic");
    assert_eq!(winner(1, "without_memory").0, "tcp");
    let (transport, again) = winner(1, "with_memory");
    assert_eq!(transport, "tcp");
    assert_eq!(again["from_memory"], true);
    assert_eq!(again["attempts"].as_array().map(Vec::len), Some(1), "QUIC is left alone");
    assert_eq!(winner(3, "without_memory").1["upgraded_to"], "quic");
    assert_eq!(winner(4, "without_memory").0, "quic");
    assert_eq!(winner(5, "without_memory").0, "tcp");
    assert_eq!(winner(6, "without_memory").0, "sctp-udp");
    assert_eq!(winner(7, "without_memory").0, "sctp-udp");
    let (transport, again) = winner(7, "with_memory");
    assert_eq!(transport, "sctp-udp");
    assert_eq!(again["attempts"].as_array().map(Vec::len), Some(1), "protocol 132 is left alone");
}
