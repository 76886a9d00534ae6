//! Peers behind address translators (RFC 6951 §5.4).

use crate::associations::world::{A, B, FOREIGN_PORT, World, ms, multihomed, packet, socket};
use eyas_sctp::endpoint::{AssociationState, PathState};
use eyas_sctp::event::{Event, PathChange};
use eyas_sctp::wire::{AbortChunk, Causes, Chunk};
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
    assert!(world.hosts[B].events().iter().any(rebound));
    world.send(B, b, 0, "found you");
    world.run_for(ms(1000));
    assert_eq!(world.hosts[A].received_messages(), 1);
}

#[test]
fn a_packet_with_a_wrong_tag_does_not_rebind_the_path() {
    let mut world = World::new();
    let (_, b) = world.connected();
    let mut packet = vec![0u8; 28];
    packet[..2].copy_from_slice(&50_000u16.to_be_bytes());
    packet[2..4].copy_from_slice(&crate::associations::world::PORT.to_be_bytes());
    let mut from = socket(A, 0);
    from.set_port(1);
    world.inject(B, from, packet.into());
    world.run_for(ms(10));
    assert_eq!(world.hosts[B].status(b).paths[0].remote, socket(A, 0));
}

//= rfc9260 §8.5.1 B
//# ABORT with the T bit ends the association; not from an unverified address while another is
//# verified
//= otherwise: a translator on that path makes the peer take our probe for a stranger's
#[test]
fn a_translator_on_a_second_path_does_not_end_the_association() {
    let mut world = World::with(multihomed(A, 2), multihomed(B, 2));
    world.network.cut = vec![1];
    world.tap.keep = Some("COOKIE-ACK");
    let a = world.connect_with(|options| options.local_port = FOREIGN_PORT);
    world.finish_handshake(a);
    let tag = world.tap.kept.as_ref().and_then(|packet| packet.get(4..8)).unwrap();
    let tag = u32::from_be_bytes(tag.try_into().unwrap());
    // A's reply to a probe from B that seems to come from another host.
    let abort = Chunk::Abort(AbortChunk { reflected: true, causes: Causes::default() });
    let abort = packet(tag, &[abort]);
    world.run_for(ms(100));
    let id = world.hosts[B].endpoint.associations()[0];
    assert_eq!(world.hosts[B].status(id).paths[1].state, PathState::Unconfirmed);
    world.inject(B, socket(A, 1), abort.clone());
    world.run_for(ms(10));
    assert_eq!(world.hosts[B].state(), AssociationState::Established);
    // On the association's own path it is accepted.
    world.inject(B, socket(A, 0), abort);
    world.run_for(ms(10));
    assert_eq!(world.hosts[B].endpoint.associations(), []);
}
