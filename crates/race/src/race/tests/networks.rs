//! The network changes during a race.

use super::scene::*;
use crate::evidence::FailureCause;
use crate::io::{NetworkChange, RaceInput};
use crate::memory::MemoryView;
use crate::policy::Policy;

/// ```text
/// 0     home: quic ──▶
/// 50    home: tcp ──▶
/// 70    cafe: everything is closed, DNS is queried again
/// 70    cafe: quic ──▶
/// 120   cafe: tcp ──▶
/// ```
#[test]
fn on_another_network_the_race_restarts() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(70);
    scene.moves_to("cafe");
    assert_eq!(scene.until(70), ["70 close 0 NetworkChanged", "70 close 1 NetworkChanged"]);
    scene.answer(&[V4]);
    assert_eq!(scene.until(300), ["70 start 2 quic 192.0.2.1", "120 start 3 tcp 192.0.2.1"]);
    scene.ready(3);
    assert!(scene.until(300).contains(&"300 usable 3".to_owned()));
}

#[test]
fn the_minimum_delay_holds_across_networks() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(53);
    scene.moves_to("cafe");
    scene.until(53);
    scene.answer(&[V4]);
    assert_eq!(scene.until(61)[0], "60 start 2 quic 192.0.2.1");
}

#[test]
fn answers_to_queries_of_the_old_network_are_ignored() {
    let mut scene = Scene::unanswered(setup(Policy::of_first_tries()));
    let mut old = Scene::unanswered(setup(Policy::of_first_tries()));
    scene.moves_to("cafe");
    scene.until(0);
    // The same answers, with the query numbers of the old network.
    old.answer(&[V4]);
    let stale = [0, 1].map(|id| crate::dns::DnsAnswer {
        id: crate::dns::QueryId(id),
        records: Ok(crate::dns::DnsRecords::A(vec![V4.parse().unwrap()])),
        protected: false,
        expired: false,
    });
    for answer in stale {
        scene.input(RaceInput::Answer(answer));
    }
    assert!(scene.until(1_000).is_empty());
}

#[test]
fn new_addresses_on_the_same_network_do_not_affect_attempts() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(20);
    let mut renumbered = network("home");
    renumbered.sources[0].address = "2001:db8::77".parse().unwrap();
    let change = NetworkChange { network: renumbered, view: MemoryView::empty() };
    scene.input(RaceInput::NetworkChanged(Box::new(change)));
    assert_eq!(scene.until(1_000), ["50 start 1 tcp 192.0.2.1"]);
}

#[test]
fn after_the_win_a_change_ends_what_is_left() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(90);
    scene.ready(1);
    scene.until(90);
    scene.moves_to("cafe");
    assert_eq!(scene.until(60_000), ["90 close 0 NetworkChanged", "90 finished"]);
}

#[test]
fn failures_of_the_old_network_are_not_learnt_on_the_new_one() {
    let mut scene = Scene::new(&[V4], Policy::of_first_tries());
    scene.until(70);
    scene.moves_to("cafe");
    scene.fails(0, FailureCause::Unreachable);
    let lines = scene.until(70);
    assert!(lines.iter().all(|line| !line.contains("learn")), "{lines:?}");
}
