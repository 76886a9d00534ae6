//! Several paths (RFC 9260 §6.4, §8): what happens when one breaks.

use crate::associations::world::{A, B, World, address, ms, multihomed, socket};
use eyas_sctp::config::EndpointConfig;
use eyas_sctp::endpoint::{AssociationState, PathState};
use eyas_sctp::error::Error;
use eyas_sctp::event::{Event, PathChange};
use eyas_sctp::identifier::PathId;
use eyas_sctp::io::{Ecn, Input, Received};
use eyas_sctp::message::SendInfo;
use std::time::Duration;

#[test]
fn data_continues_over_another_path_when_one_is_cut() {
    let mut world = World::with(multihomed(A, 2), multihomed(B, 2));
    let (a, b) = world.connected();
    world.run_for(ms(2000));
    for (host, id) in [(A, a), (B, b)] {
        let status = world.hosts[host].status(id);
        assert_eq!(status.paths.len(), 2);
        assert!(status.paths.iter().all(|path| path.state == PathState::Active), "{status:?}");
    }
    world.network.cut = vec![0];
    world.clear_ladder();
    world.send(A, a, 0, "over there");
    world.run_until(ms(5000), |world| world.hosts[B].received_messages() == 1);
    assert!(world.tap.ladder.iter().any(|line| line == "A -> B  I-DATA (network 1)"));
}

#[test]
fn an_init_ack_from_another_address_does_not_set_the_source_address() {
    let mut world = World::with(multihomed(A, 2), multihomed(B, 2));
    world.tap.keep = Some("INIT-ACK");
    world.lose("INIT-ACK");
    let a = world.connect();
    world.run_until(ms(1000), |world| world.tap.kept.is_some());
    let contents = world.tap.kept.take().unwrap();
    // Some implementations reply from any of their addresses.
    let received = Received {
        local: Some(address(A, 0)),
        remote: socket(B, 1),
        ecn: Ecn::NotCapable,
        peer: None,
        segment_size: contents.len(),
        contents,
    };
    world.hosts[A].endpoint.handle_input(world.now, Input::Packets(received));
    let status = world.hosts[A].status(a);
    let path = status.paths.iter().find(|path| path.remote == socket(B, 1)).unwrap();
    assert_eq!(path.local, None, "routing decides");
    // Its heartbeat identifies the path.
    world.run_for(ms(3000));
    let status = world.hosts[A].status(a);
    let path = status.paths.iter().find(|path| path.remote == socket(B, 1)).unwrap();
    assert_ne!(path.local, Some(address(A, 0)), "{status:?}");
}

/// Two hosts on two networks, with heartbeats every second.
fn with_heartbeats() -> World {
    let beating = |host| {
        let mut config: EndpointConfig = multihomed(host, 2);
        config.association.hb_interval = Some(Duration::from_secs(1));
        config
    };
    World::with(beating(A), beating(B))
}

fn change(world: &World, host: usize, path: u16, wanted: PathChange) -> bool {
    world.hosts[host].events().iter().any(|event| {
        matches!(event, Event::Path { path: id, change, .. }
            if *id == PathId(path) && *change == wanted)
    })
}

//= rfc9260 §5.4
//# an address outside the handshake is probed with a nonce, and gets no data before
#[test]
fn no_data_is_sent_to_an_address_before_it_is_verified() {
    let mut world = World::with(multihomed(A, 2), multihomed(B, 2));
    world.network.cut = vec![1];
    let (a, _) = world.connected();
    world.run_for(ms(500));
    let status = world.hosts[A].status(a);
    assert_eq!(status.paths[1].state, PathState::Unconfirmed);
    assert_eq!(world.association(A, a).set_primary(PathId(1)), Err(Error::NoSuchPath));
    world.network.cut = vec![0];
    world.clear_ladder();
    world.send(A, a, 0, "nowhere to go");
    world.run_for(ms(300));
    let data = |line: &String| line.contains("DATA") && line.contains("network 1");
    assert!(!world.tap.ladder.iter().any(data), "{:?}", world.tap.ladder);
}

#[test]
fn an_address_is_verified_when_a_heartbeat_comes_from_it() {
    let together = |host| {
        let mut config = multihomed(host, 2);
        config.association.hb_max_burst = 4;
        config
    };
    let mut world = World::with(together(A), together(B));
    // B's, which it sends first: nothing passes towards A until A has sent something, as behind a
    // NAT, or inside DTLS.
    world.lose("HEARTBEAT");
    let (_, b) = world.connected();
    assert!(world.lost_all());
    // One round trip for A's heartbeat and the answer with another one of B's, and half for that.
    world.run_until(ms(40), |world| {
        let paths = world.hosts[B].status(b).paths;
        paths.len() == 2 && paths.iter().all(|path| path.state == PathState::Active)
    });
    let answer = "A <- B  HEARTBEAT-ACK HEARTBEAT (network 1)";
    assert!(world.tap.ladder.iter().any(|line| line == answer), "{:?}", world.tap.ladder);
}

//= rfc7829 §3.2, 12
//# `PathState::PotentiallyFailed` and its changes are events
#[test]
fn a_broken_idle_path_is_detected_and_recovers() {
    let mut world = with_heartbeats();
    let (a, _) = world.connected();
    world.run_for(ms(3000));
    world.network.cut = vec![1];
    world.run_for(ms(400_000));
    assert!(change(&world, A, 1, PathChange::PotentiallyFailed));
    assert!(change(&world, A, 1, PathChange::Inactive));
    assert_eq!(world.hosts[A].status(a).paths[1].state, PathState::Inactive);
    assert_eq!(world.hosts[A].state(), AssociationState::Established);
    world.network.cut = vec![];
    world.run_for(ms(120_000));
    assert_eq!(world.hosts[A].status(a).paths[1].state, PathState::Active);
    assert!(change(&world, A, 1, PathChange::Active));
}

#[test]
fn data_returns_to_the_primary_path_when_it_works_again() {
    let mut world = with_heartbeats();
    let (a, _) = world.connected();
    world.run_for(ms(3000));
    world.network.cut = vec![0];
    world.send(A, a, 0, "the other way");
    world.run_until(ms(10_000), |world| world.hosts[B].received_messages() == 1);
    world.network.cut = vec![];
    world.run_for(ms(120_000));
    world.clear_ladder();
    world.send(A, a, 0, "home again");
    world.run_for(ms(100));
    assert!(world.tap.ladder.iter().any(|line| line == "A -> B  I-DATA"), "{:?}", world.tap.ladder);
}

//= rfc9260 §6.4
//# data goes to the primary path unless the user says otherwise
#[test]
fn the_user_chooses_the_primary_path_and_a_path_for_a_message() {
    let mut world = World::with(multihomed(A, 2), multihomed(B, 2));
    let (a, _) = world.connected();
    world.run_for(ms(2000));
    world.clear_ladder();
    let info = SendInfo { path: Some(PathId(1)), ..SendInfo::default() };
    world.hosts[A].endpoint.send(world.now, a, &info, "there".into()).unwrap();
    world.run_for(ms(5));
    assert_eq!(world.tap.ladder, ["A -> B  I-DATA (network 1)"]);
    world.run_for(ms(500));
    world.association(A, a).set_primary(PathId(1)).unwrap();
    world.clear_ladder();
    world.send(A, a, 0, "there too");
    world.run_for(ms(5));
    assert_eq!(world.tap.ladder, ["A -> B  I-DATA (network 1)"]);
    assert!(change(&world, A, 1, PathChange::MadePrimary));
}

#[test]
fn a_long_transfer_survives_flapping_paths() {
    let mut world = with_heartbeats();
    let (a, _) = world.connected();
    world.run_for(ms(3000));
    for round in 0..10u8 {
        world.network.cut = vec![round % 2];
        for _ in 0..10 {
            world.send(A, a, 0, vec![round; 5000]);
        }
        world.run_for(ms(8000));
    }
    world.network.cut = vec![];
    world.run_until(ms(60_000), |world| world.hosts[B].received_bytes() == 500_000);
}

#[test]
fn addresses_that_the_peer_cannot_reach_are_not_listed() {
    let mut config = multihomed(A, 2);
    for none in ["127.0.0.1", "224.0.0.1", "0.0.0.0", "169.254.0.1"] {
        config.addresses.push(none.parse().unwrap());
    }
    let mut world = World::with(config, multihomed(B, 2));
    let (_, b) = world.connected();
    let status = world.hosts[B].status(b);
    let remotes: Vec<_> = status.paths.iter().map(|path| path.remote).collect();
    assert_eq!(remotes, [socket(A, 0), socket(A, 1)]);
    assert_eq!(world.hosts[B].endpoint.counters().addresses_ignored, 0);
    assert_eq!(address(A, 0), remotes[0].ip());
}
