//! A race that is decided at the INIT ACK: until `proceed`, and after a loss, the peer holds
//! nothing.

use crate::associations::world::{A, B, World, ms};
use bytes::Bytes;
use eyas_sctp::endpoint::AssociationState;
use eyas_sctp::error::Error;
use eyas_sctp::event::{Event, LossReason};
use eyas_sctp::identifier::AssociationId;
use eyas_sctp::message::SendInfo;

fn held() -> (World, AssociationId) {
    let mut world = World::new();
    let id = world.connect_with(|options| options.hold_at_init_ack = true);
    world.run_for(ms(100));
    assert_eq!(world.tap.ladder, ["A -> B  INIT", "A <- B  INIT-ACK"]);
    assert_eq!(world.hosts[A].events(), [Event::Answered]);
    assert_eq!(world.hosts[A].state(), AssociationState::Held);
    (world, id)
}

#[test]
fn a_held_association_leaves_no_state_at_the_peer_however_long_it_waits() {
    let (mut world, _) = held();
    world.run_for(ms(3_600_000));
    assert_eq!(world.tap.ladder.len(), 2);
    assert_eq!(world.hosts[B].endpoint.associations(), []);
    assert_eq!(world.hosts[B].endpoint.counters().packets_in, 1);
}

#[test]
fn an_association_that_proceeds_is_established() {
    let (mut world, id) = held();
    world.hosts[A].endpoint.proceed(world.now, id).unwrap();
    world.finish_handshake(id);
    assert_eq!(world.tap.ladder[2..], ["A -> B  COOKIE-ECHO", "A <- B  COOKIE-ACK"]);
}

#[test]
fn proceeding_before_the_init_ack_does_not_wait_at_it() {
    let mut world = World::new();
    let id = world.connect_with(|options| options.hold_at_init_ack = true);
    world.hosts[A].endpoint.proceed(world.now, id).unwrap();
    world.finish_handshake(id);
    assert_eq!(world.now, ms(40));
}

#[test]
fn a_loser_sends_nothing() {
    for quietly in [false, true] {
        let (mut world, id) = held();
        if quietly {
            world.hosts[A].endpoint.forget(world.now, id);
        } else {
            world.hosts[A].endpoint.abort(world.now, id, Bytes::from_static(b"lost")).unwrap();
        }
        world.run_for(ms(60_000));
        assert_eq!(world.tap.ladder.len(), 2, "{:?}", world.tap.ladder);
        assert_eq!(world.hosts[A].endpoint.associations(), []);
        assert_eq!(world.hosts[B].endpoint.associations(), []);
        assert!(world.hosts[B].events().is_empty());
    }
}

#[test]
fn a_loser_sends_nothing_even_while_its_init_is_in_flight() {
    let mut world = World::new();
    let id = world.connect();
    world.run_for(ms(5));
    world.hosts[A].endpoint.abort(world.now, id, Bytes::new()).unwrap();
    world.run_for(ms(60_000));
    let aborted = Event::Lost(LossReason::Aborted);
    assert_eq!(world.hosts[A].events(), [aborted]);
    assert_eq!(world.hosts[B].endpoint.associations(), []);
    // The late INIT ACK matches no association; its sender holds no state that an ABORT could end.
    assert_eq!(world.tap.ladder[..2], ["A -> B  INIT", "A <- B  INIT-ACK"]);
}

//= rfc9260 §5.1.5
//# an expired cookie: ERROR, Stale Cookie; a longer life is requested three times
#[test]
fn a_stale_cookie_is_requested_again() {
    let (mut world, id) = held();
    world.run_for(ms(100_000));
    world.hosts[A].endpoint.proceed(world.now, id).unwrap();
    world.finish_handshake(id);
    assert_eq!(
        world.tap.ladder[2..8],
        [
            "A -> B  COOKIE-ECHO",
            "A <- B  ERROR",
            "A -> B  INIT",
            "A <- B  INIT-ACK",
            "A -> B  COOKIE-ECHO",
            "A <- B  COOKIE-ACK",
        ]
    );
    assert_eq!(world.hosts[B].endpoint.counters().stale_cookies, 1);
}

#[test]
fn data_bundled_with_a_stale_cookie_is_sent_again() {
    let (mut world, id) = held();
    for length in [1, 100, 30_000] {
        world.send(A, id, 3, vec![7; length]);
    }
    world.run_for(ms(100_000));
    world.hosts[A].endpoint.proceed(world.now, id).unwrap();
    world.finish_handshake(id);
    world.run_for(ms(10_000));
    assert_eq!(world.hosts[B].endpoint.counters().stale_cookies, 1);
    assert_eq!(world.hosts[B].received_messages(), 3);
    assert_eq!(world.hosts[B].received_bytes(), 30_101);
    let failed = |event: &Event| matches!(event, Event::SendFailed { .. });
    assert!(!world.hosts[A].events().iter().any(failed));
}

#[test]
fn a_requested_shutdown_survives_a_stale_cookie() {
    let (mut world, id) = held();
    world.send(A, id, 3, "last words");
    world.run_for(ms(100_000));
    world.hosts[A].endpoint.proceed(world.now, id).unwrap();
    world.hosts[A].endpoint.shutdown(world.now, id).unwrap();
    let late = |world: &mut World| {
        let data = Bytes::from_static(b"late");
        world.hosts[A].endpoint.send(world.now, id, &SendInfo::default(), data)
    };
    assert_eq!(late(&mut world), Err(Error::WrongState));
    world.run_for(ms(25));
    assert_eq!(world.hosts[B].endpoint.counters().stale_cookies, 1);
    assert_eq!(world.hosts[A].state(), AssociationState::CookieWait);
    assert_eq!(late(&mut world), Err(Error::WrongState));
    world.hosts[A].endpoint.shutdown(world.now, id).unwrap();
    world.run_for(ms(2000));
    assert_eq!(world.hosts[B].received_messages(), 1);
    assert_eq!(world.hosts[A].events().last(), Some(&Event::Closed));
    assert_eq!(world.hosts[B].events().last(), Some(&Event::Closed));
}
