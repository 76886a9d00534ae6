//! The events and counters of races.

use std::time::Duration;

use crate::common::{self, Scene, SlowUdp, wait};
use crate::observer::Observer;
use eyas::race::candidate::Transport;
use eyas::race::policy::Policy;

#[tokio::test]
async fn a_race_tells_its_plan_starts_failures_win_and_what_it_learnt() {
    let (observer, _guard) = Observer::start(&["eyas::race"]);
    let scene = Scene::new([Transport::Tcp]).await;
    let policy = Policy { head_start: Duration::from_secs(2), ..Policy::default() };
    let mut initiation = scene.endpoint.preconnection(scene.target()).policy(policy).initiate();
    wait(initiation.usable()).await.expect("a connection");
    wait(initiation.finished()).await;
    let events = observer.events();
    for (message, words) in [
        ("plan", "candidates=quic "),
        ("start", "candidate=quic "),
        ("failure", "cause=\"refused\""),
        ("start", "candidate=tcp "),
        ("win", "candidate=tcp "),
        ("learnt", "candidate=tcp "),
        ("learnt", "cause=\"refused\""),
    ] {
        let is_it = |event: &&String| {
            event.starts_with(&format!("{message} host=")) && event.contains(words)
        };
        assert!(events.iter().any(|event| is_it(&event)), "{message} {words}: {events:#?}");
    }
    let races = scene.endpoint.races();
    assert_eq!((races.started, races.won, races.switched, races.failed), (1, 1, 0, 0));
}

#[tokio::test]
async fn a_late_switch_is_told_and_counted() {
    let (observer, _guard) = Observer::start(&["eyas::race"]);
    let identity = common::identity();
    let quic = common::listen(&identity, [Transport::Quic]).await;
    let (tcp, udp) = common::listen_beside_udp(&identity).await;
    // So slow that TCP wins even on a busy machine.
    let _relay = SlowUdp::to(quic.local_addr(), udp, Duration::from_secs(2)).await;
    let port = tcp.local_addr().port();
    let endpoint = common::builder_for(&[identity], port).build().expect("an endpoint");
    let policy = Policy { late_switch_for: Duration::from_secs(20), ..Policy::default() };
    let mut initiation = endpoint.preconnection(common::https(port)).policy(policy).initiate();
    wait(initiation.usable()).await.expect("a connection");
    assert!(observer.first("switch").is_none(), "{:#?}", observer.events());
    wait(initiation.better()).await.expect("a better one");
    wait(initiation.finished()).await;
    let events = observer.events();
    let place = |message: &str, words: &str| {
        let is_it = |event: &String| {
            event.starts_with(&format!("{message} host={} ", common::NAME)) && event.contains(words)
        };
        events.iter().position(is_it).unwrap_or_else(|| panic!("no {message}: {events:#?}"))
    };
    let won = place("win", "candidate=tcp ");
    let switched = place("switch", "candidate=quic ");
    assert!(won < switched && events[switched].contains("after_ms="), "{events:#?}");
    let races = endpoint.races();
    assert_eq!((races.started, races.won, races.switched, races.failed), (1, 1, 1, 0));
}

#[tokio::test]
async fn a_race_without_winner_is_told_and_counted() {
    let (observer, _guard) = Observer::start(&["eyas::race"]);
    let identity = common::identity();
    let (tcp, hole) = common::listen_beside_udp(&identity).await;
    let port = tcp.local_addr().port();
    let endpoint =
        common::builder_for(std::slice::from_ref(&identity), port).build().expect("an endpoint");
    let mut initiation = endpoint.preconnection(common::https(port)).initiate();
    let won = wait(initiation.usable()).await.expect("a connection");
    assert_eq!(won.info().transport, Transport::Tcp);
    drop((tcp, hole));
    let refused = wait(endpoint.preconnection(common::https(port)).connect()).await;
    refused.expect_err("nobody listens");
    assert!(observer.first("no winner").is_some(), "{:#?}", observer.events());
    let races = endpoint.races();
    assert_eq!((races.started, races.won, races.failed), (2, 1, 1));
}
