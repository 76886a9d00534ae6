//! The handshake (RFC 9260 §5.1), with each packet lost in turn, and the state that it leaves.

use crate::world::{A, B, World, ms};
use eyas_sctp::endpoint::AssociationState;
use eyas_sctp::event::{Event, LossReason};
use std::time::Duration;

fn up(by_peer: bool) -> Event {
    Event::Up { outbound: 1024, inbound: 1024, by_peer }
}

#[test]
fn four_packets_open_an_association() {
    let mut world = World::new();
    world.connected();
    assert_eq!(
        world.ladder[..4],
        ["A -> B  INIT", "A <- B  INIT-ACK", "A -> B  COOKIE-ECHO", "A <- B  COOKIE-ACK",]
    );
    assert_eq!(world.now, ms(40));
    assert_eq!(world.hosts[A].said(), [Event::Answered, up(false)]);
    assert_eq!(world.hosts[B].said(), [up(true)]);
}

#[test]
fn nothing_is_held_for_a_peer_before_its_cookie_comes_back() {
    let mut world = World::new();
    world.lose("COOKIE-ECHO");
    world.connect();
    world.run_for(ms(100));
    assert_eq!(world.hosts[B].endpoint.associations(), []);
    assert_eq!(world.hosts[A].state(), AssociationState::CookieEchoed);
}

#[test]
fn each_packet_may_get_lost() {
    for lost in ["INIT", "INIT-ACK", "COOKIE-ECHO", "COOKIE-ACK"] {
        let mut world = World::new();
        world.lose(lost);
        world.connected();
        assert!(world.lost_all(), "{lost}");
        assert!(world.now >= ms(1000), "{lost} is made up for by T1: {:?}", world.now);
        assert_eq!(world.hosts[A].said(), [Event::Answered, up(false)], "{lost}");
        assert_eq!(world.hosts[B].said(), [up(true)], "{lost}");
    }
}

#[test]
fn silence_ends_after_max_init_retransmits() {
    let mut world = World::new();
    world.network.cut = vec![0];
    let id = world.connect();
    world.run_for(Duration::from_secs(1000));
    assert_eq!(world.hosts[A].events, [(id, Event::Lost(LossReason::NoAnswer))]);
    assert_eq!(world.ladder.len(), 9, "one INIT and eight more");
    assert_eq!(world.hosts[A].endpoint.associations(), []);
}
