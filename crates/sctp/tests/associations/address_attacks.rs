//! Attempts to change an association's addresses by an attacker on the path, which sees the tag and
//! can replay packets, but does not know the key (RFC 5061 §6).

use super::world::*;
use bytes::Bytes;
use eyas_sctp::config::EndpointConfig;
use eyas_sctp::io::Output;
use eyas_sctp::wire::{ChecksumKind, ChunkType, PACKET_HEADER};
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

fn changing(mut config: EndpointConfig) -> EndpointConfig {
    config.association.extensions.dynamic_addresses = true;
    config
}

/// A world in which `A` adds an address, and the packet with that request, which was dropped.
fn captured_request() -> (World, Bytes) {
    let mut world = World::with(changing(listening()), changing(multihomed(B, 2)));
    let (a, _) = world.connected();
    world.run_for(Duration::from_millis(100));
    let now = world.now;
    let endpoint = &mut world.hosts[A].endpoint;
    endpoint.association_mut(now, a).unwrap().add_address(address(A, 1)).unwrap();
    let packet = loop {
        match endpoint.poll_output(now) {
            Output::Transmit(transmit) if names(&transmit.contents).contains("ASCONF") => {
                break transmit.contents;
            }
            Output::Timeout(_) => panic!("no ASCONF"),
            _ => {}
        }
    };
    assert_eq!(names(&packet), "AUTH ASCONF");
    (world, packet)
}

/// The chunks of a packet, each with its padding.
fn chunks(packet: &[u8]) -> Vec<Vec<u8>> {
    let mut rest = &packet[PACKET_HEADER..];
    let mut chunks = Vec::new();
    while !rest.is_empty() {
        let length = usize::from(u16::from_be_bytes([rest[2], rest[3]])).next_multiple_of(4);
        chunks.push(rest[..length].to_vec());
        rest = &rest[length..];
    }
    chunks
}

/// A packet with the header of `packet`, other contents and a valid checksum.
fn with_chunks(packet: &[u8], contents: &[Vec<u8>]) -> Bytes {
    let mut bytes = packet[..PACKET_HEADER].to_vec();
    bytes.extend(contents.concat());
    ChecksumKind::Crc32c.patch(&mut bytes);
    bytes.into()
}

fn addresses(world: &World) -> Vec<IpAddr> {
    let status = world.hosts[B].status(world.hosts[B].only());
    status.paths.iter().map(|path| path.remote.ip()).collect()
}

fn inject(world: &mut World, from: SocketAddr, packet: Bytes) {
    world.inject(B, from, packet);
    world.drain();
}

#[test]
fn the_captured_packet_is_valid() {
    let (mut world, packet) = captured_request();
    inject(&mut world, socket(A, 0), packet);
    assert_eq!(addresses(&world), [address(A, 0), address(A, 1)]);
}

//= rfc5061 §6
//# no bit of an authenticated ASCONF can be changed
#[test]
fn no_bit_of_the_packet_can_be_changed() {
    let (mut world, packet) = captured_request();
    for at in 0..packet.len() - PACKET_HEADER {
        let mut bytes = packet.to_vec();
        bytes[PACKET_HEADER + at] ^= 0x10;
        let changed = with_chunks(&bytes, &[bytes[PACKET_HEADER..].to_vec()]);
        inject(&mut world, socket(A, 0), changed);
        assert_eq!(addresses(&world), [address(A, 0)], "byte {at}");
    }
    assert!(world.hosts[B].endpoint.counters().forged_authentications > 0);
}

//= rfc5061 §4.1.1, §4.1.2, §5.2 D5
//# ASCONF and ASCONF-ACK MUST be authenticated; otherwise the rest of the packet is dropped
#[test]
fn without_auth_or_after_another_chunk_it_is_ignored() {
    let (mut world, packet) = captured_request();
    let [auth, asconf] = &chunks(&packet)[..] else { panic!("two chunks") };
    let mut zeros = auth.clone();
    zeros[8..].fill(0);
    for contents in [
        vec![asconf.clone()],
        vec![asconf.clone(), auth.clone()],
        vec![zeros.clone(), asconf.clone()],
        vec![auth[..4].to_vec(), asconf.clone()],
        vec![auth.clone(), vec![ChunkType::COOKIE_ACK.0, 0, 0, 4], asconf.clone()],
        vec![auth.clone(), zeros, asconf.clone()],
    ] {
        inject(&mut world, socket(A, 0), with_chunks(&packet, &contents));
        assert_eq!(addresses(&world), [address(A, 0)]);
    }
    let counters = world.hosts[B].endpoint.counters();
    assert!(counters.unauthenticated_chunks >= 2 && counters.forged_authentications >= 3);
}

//= rfc5061 §6
//# a replayed ASCONF is answered and not executed
#[test]
fn a_replay_is_answered_but_not_executed_again() {
    let (mut world, packet) = captured_request();
    for _ in 0..100 {
        inject(&mut world, socket(A, 0), packet.clone());
    }
    assert_eq!(addresses(&world), [address(A, 0), address(A, 1)]);
    world.run_for(Duration::from_secs(10));
    assert_eq!(addresses(&world), [address(A, 0), address(A, 1)]);
    // Once the peer has sent another request, the old one has no effect.
    let a = world.hosts[A].only();
    world.association(A, a).remove_address(address(A, 1)).unwrap();
    world.run_for(Duration::from_secs(10));
    world.clear_ladder();
    inject(&mut world, socket(A, 0), packet);
    assert_eq!(addresses(&world), [address(A, 0)]);
    assert!(world.tap.ladder.is_empty(), "{:?}", world.tap.ladder);
}

//= rfc5061 §5.2 D1 to D4
//# the association is found by the tag; then a valid signature and a known address are needed
#[test]
fn from_another_address_only_authenticated_chunks_are_accepted() {
    let (mut world, packet) = captured_request();
    let elsewhere: SocketAddr = "10.0.7.7:9899".parse().unwrap();
    let [auth, asconf] = &chunks(&packet)[..] else { panic!("two chunks") };
    world.clear_ladder();
    let before = world.hosts[B].endpoint.counters().out_of_the_blue;
    let mut zeros = auth.clone();
    zeros[8..].fill(0);
    let shutdown = vec![ChunkType::SHUTDOWN.0, 0, 0, 8, 0, 0, 0, 0];
    for contents in [
        vec![asconf.clone()],
        vec![zeros, asconf.clone()],
        vec![shutdown.clone()],
        vec![auth.clone()],
        vec![shutdown, auth.clone(), asconf.clone()],
    ] {
        inject(&mut world, elsewhere, with_chunks(&packet, &contents));
    }
    assert_eq!(addresses(&world), [address(A, 0)]);
    assert!(world.tap.ladder.is_empty(), "nobody is answered: {:?}", world.tap.ladder);
    assert_eq!(world.hosts[B].endpoint.counters().out_of_the_blue, before + 5);
    // The peer itself changes its address.
    inject(&mut world, elsewhere, packet);
    assert_eq!(addresses(&world), [address(A, 0), address(A, 1)]);
}
