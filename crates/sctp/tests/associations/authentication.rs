//! Authenticated chunks (RFC 4895).

use super::world::*;
use bytes::Bytes;
use eyas_sctp::config::{EndpointConfig, SharedKeys};
use eyas_sctp::error::Error;
use eyas_sctp::event::Event;
use eyas_sctp::wire::ChecksumKind;
use std::time::Duration;

/// DATA, SACK, HEARTBEAT, ABORT, COOKIE ECHO, COOKIE ACK, FORWARD-TSN and I-DATA.
const MANY: [u8; 8] = [0, 3, 4, 6, 10, 11, 192, 64];

fn requiring(chunks: &[u8]) -> EndpointConfig {
    let mut config = listening();
    config.association.extensions.authentication = true;
    config.association.authenticated_chunks = chunks.to_vec();
    config
}

fn with_shared_key(chunks: &[u8], secret: &'static [u8]) -> EndpointConfig {
    let mut config = requiring(chunks);
    let mut keys = SharedKeys::default();
    keys.set(9, Bytes::from_static(secret)).unwrap();
    keys.activate(9).unwrap();
    config.association.shared_keys = keys;
    config
}

fn sends_bulk(world: &mut World) {
    let (a, b) = world.connected();
    for size in [1, 1000, 1424, 1440, 5000, 100_000] {
        world.send(A, a, 1, vec![7; size]);
        world.send(B, b, 2, vec![8; size]);
    }
    world.run_for(Duration::from_secs(20));
    for host in [A, B] {
        assert_eq!(world.hosts[host].received_messages(), 6);
        assert_eq!(world.hosts[host].received_bytes(), 108_865);
        let counters = world.hosts[host].endpoint.counters();
        assert_eq!((counters.unauthenticated_chunks, counters.forged_authentications), (0, 0));
    }
}

#[test]
fn authenticated_data_flows_both_ways() {
    let mut world = World::with(requiring(&MANY), requiring(&MANY));
    sends_bulk(&mut world);
    let data = |line: &String| line.contains("DATA");
    assert!(world.tap.ladder.iter().filter(|line| data(line)).all(|line| line.contains("AUTH")));
}

#[test]
fn requirements_of_one_side_do_not_bind_the_other() {
    let mut world = World::with(requiring(&[]), requiring(&MANY));
    sends_bulk(&mut world);
    let from_b = |line: &&String| line.contains("A <- B") && line.contains("DATA");
    assert!(world.tap.ladder.iter().filter(from_b).all(|line| !line.contains("AUTH")));
}

#[test]
fn authenticated_data_survives_losses() {
    let mut world = World::with(requiring(&MANY), requiring(&MANY));
    for what in ["COOKIE-ECHO", "COOKIE-ACK", "DATA", "DATA", "SACK"] {
        world.lose(what);
    }
    sends_bulk(&mut world);
    assert!(world.lost_all());
}

#[test]
fn a_peer_without_the_key_is_ignored() {
    let data = [0, 64];
    let mut world =
        World::with(with_shared_key(&[], b"guessed"), with_shared_key(&data, b"secret"));
    let (a, _) = world.connected();
    world.send(A, a, 1, "hello");
    world.run_for(Duration::from_secs(5));
    assert_eq!(world.hosts[B].received_messages(), 0);
    assert!(world.hosts[B].endpoint.counters().forged_authentications > 0);
}

#[test]
fn a_key_is_changed_while_data_flows() {
    let data = [0, 64];
    let mut world =
        World::with(with_shared_key(&data, b"secret"), with_shared_key(&data, b"secret"));
    let (a, b) = world.connected();
    for (host, id) in [(A, a), (B, b)] {
        let mut association = world.association(host, id);
        assert_eq!(association.activate_shared_key(10), Err(Error::NoSuchKey));
        assert_eq!(association.set_shared_key(10, Bytes::from_static(b"new")), Ok(()));
        assert_eq!(association.activate_shared_key(10), Ok(()));
        assert_eq!(association.remove_shared_key(9), Ok(()));
        assert_eq!(association.remove_shared_key(10), Err(Error::Busy));
    }
    world.send(A, a, 1, "hello");
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.hosts[B].received_messages(), 1);
}

#[test]
fn keys_require_negotiated_auth() {
    let mut world = World::new();
    let (a, _) = world.connected();
    let refused = world.association(A, a).activate_shared_key(0);
    assert_eq!(refused, Err(Error::NotSupported));
}

#[test]
fn an_authenticated_abort_ends_the_association() {
    let mut world = World::with(requiring(&MANY), requiring(&MANY));
    let (a, _) = world.connected();
    world.hosts[A].endpoint.abort(world.now, a, Bytes::from_static(b"enough")).unwrap();
    world.run_for(Duration::from_secs(1));
    assert!(matches!(world.hosts[B].events().last(), Some(Event::Lost(_))));
}

/// COOKIE ECHO alone.
const COOKIE_ECHO: [u8; 1] = [10];

#[test]
fn a_cookie_can_require_authentication() {
    let mut world =
        World::with(with_shared_key(&[], b"secret"), with_shared_key(&COOKIE_ECHO, b"secret"));
    let (a, _) = world.connected();
    assert!(world.tap.ladder.iter().any(|line| line.contains("AUTH COOKIE-ECHO")));
    world.send(A, a, 1, "hello");
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.hosts[B].received_messages(), 1);
    let counters = world.hosts[B].endpoint.counters();
    assert_eq!((counters.unauthenticated_chunks, counters.forged_authentications), (0, 0));
}

//= hostile sctp-setup
//# a cookie with a forged AUTH, or without one
//= bound: no key is derived before its signature is verified
#[test]
fn a_cookie_authenticated_with_another_key_opens_nothing() {
    let mut world =
        World::with(with_shared_key(&[], b"guessed"), with_shared_key(&COOKIE_ECHO, b"secret"));
    world.connect();
    world.run_for(Duration::from_secs(5));
    assert_eq!(world.hosts[B].endpoint.associations(), []);
    assert!(world.hosts[B].endpoint.counters().forged_authentications > 0);
}

#[test]
fn an_unauthenticated_cookie_opens_nothing_if_auth_is_required() {
    let mut world = World::with(requiring(&[]), requiring(&COOKIE_ECHO));
    world.tap.keep = Some("COOKIE-ECHO");
    world.lose("COOKIE-ECHO");
    world.connect();
    world.run_for(ms(100));
    let packet = world.tap.kept.clone().expect("the COOKIE ECHO");
    world.inject(B, socket(A, 0), without_auth(&packet));
    world.run_for(ms(100));
    assert_eq!(world.hosts[B].endpoint.associations(), []);
    assert_eq!(world.hosts[B].endpoint.counters().unauthenticated_chunks, 1);
}

/// The packet without the AUTH chunk that it begins with.
fn without_auth(packet: &Bytes) -> Bytes {
    let length = usize::from(u16::from_be_bytes([packet[14], packet[15]])).next_multiple_of(4);
    let mut bare = [&packet[..12], &packet[12 + length..]].concat();
    ChecksumKind::Crc32c.patch(&mut bare);
    bare.into()
}

#[test]
fn a_repeated_authenticated_cookie_changes_nothing() {
    let mut world = World::with(requiring(&[]), requiring(&COOKIE_ECHO));
    world.lose("COOKIE-ACK");
    let (a, b) = world.connected();
    world.send(B, b, 1, "hello");
    world.run_for(Duration::from_secs(5));
    assert_eq!(world.hosts[A].received_messages(), 1);
    assert!(world.hosts[A].endpoint.status(a).is_some());
    let cookies = world.tap.ladder.iter().filter(|line| line.contains("AUTH COOKIE-ECHO"));
    assert_eq!(cookies.count(), 2);
    assert_eq!(world.hosts[B].endpoint.counters().forged_authentications, 0);
}
