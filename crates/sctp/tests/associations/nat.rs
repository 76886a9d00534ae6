//! Peers behind address translators (RFC 6951 §5.4).

use crate::world::{A, B, World, ms, socket};
use eyas_sctp::event::{Event, PathChange};
use std::net::SocketAddr;

#[test]
fn a_new_udp_port_is_followed() {
    let mut world = World::new();
    world.hosts[A].translated = Some(40_000);
    let (a, b) = world.connected();
    world.send(A, a, 0, "one");
    world.run_for(ms(1000));
    world.hosts[A].translated = Some(40_001);
    world.send(A, a, 0, "two");
    world.run_for(ms(1000));
    assert_eq!(world.hosts[B].received_messages(), 2);
    let mut remote: SocketAddr = socket(A, 0);
    remote.set_port(40_001);
    assert_eq!(world.hosts[B].status(b).paths[0].remote, remote);
    let rebound = |event: &Event| matches!(event, Event::Path { change: PathChange::Rebound, .. });
    assert!(world.hosts[B].said().iter().any(rebound));
    world.send(B, b, 0, "found you");
    world.run_for(ms(1000));
    assert_eq!(world.hosts[A].received_messages(), 1);
}

#[test]
fn a_packet_with_a_wrong_tag_moves_nothing() {
    let mut world = World::new();
    let (_, b) = world.connected();
    let mut packet = vec![0u8; 28];
    packet[..2].copy_from_slice(&50_000u16.to_be_bytes());
    packet[2..4].copy_from_slice(&crate::world::PORT.to_be_bytes());
    let mut from = socket(A, 0);
    from.set_port(1);
    world.inject(B, from, packet.into());
    world.run_for(ms(10));
    assert_eq!(world.hosts[B].status(b).paths[0].remote, socket(A, 0));
}
