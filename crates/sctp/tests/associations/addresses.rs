//! Addresses added and removed while an association runs (RFC 5061).

use super::world::*;
use bytes::Bytes;
use eyas_sctp::config::{EndpointConfig, MultipathConfig};
use eyas_sctp::endpoint::{AssociationState, PathState};
use eyas_sctp::error::Error;
use eyas_sctp::event::{Event, OwnAddressChange, PathChange};
use eyas_sctp::io::{Ecn, Input, Received};
use eyas_sctp::wire::{AbortChunk, Causes, ChecksumKind, Chunk};
use std::net::IpAddr;
use std::time::Duration;

fn changing(mut config: EndpointConfig) -> EndpointConfig {
    config.association.extensions.dynamic_addresses = true;
    config
}

fn world() -> World {
    World::with(changing(listening()), changing(multihomed(B, 2)))
}

/// The outcomes of `host`'s requests, from its events.
fn answers(world: &World, host: usize) -> Vec<(IpAddr, OwnAddressChange, Option<u16>)> {
    let answer = |event: Event| match event {
        Event::OwnAddress { address, change, cause } => Some((address, change, cause)),
        _ => None,
    };
    world.hosts[host].events().into_iter().filter_map(answer).collect()
}

/// The peer's addresses and their states, as `host` sees them.
fn paths(world: &World, host: usize) -> Vec<(IpAddr, PathState)> {
    let status = world.hosts[host].status(world.hosts[host].only());
    status.paths.iter().map(|path| (path.remote.ip(), path.state)).collect()
}

//= rfc5061 §5.3 F1, F14
//# an added address is verified before it is used
#[test]
fn an_address_is_added_and_verified() {
    let mut world = world();
    let (a, _) = world.connected();
    world.clear_ladder();
    world.association(A, a).add_address(address(A, 1)).unwrap();
    world.run_for(Duration::from_secs(10));
    assert_eq!(answers(&world, A), [(address(A, 1), OwnAddressChange::Added, None)]);
    let expected = [(address(A, 0), PathState::Active), (address(A, 1), PathState::Active)];
    assert_eq!(paths(&world, B), expected);
    assert_eq!(world.tap.ladder[..2], ["A -> B  AUTH ASCONF", "A <- B  AUTH ASCONF-ACK"]);
}

//= rfc9653 §5.2
//# a packet with ASCONF MUST have a correct checksum, also where others have none
#[test]
fn an_asconf_has_its_checksum_where_others_have_none() {
    let without = |mut config: EndpointConfig| {
        config.association.extensions.zero_checksum = true;
        changing(config)
    };
    let mut world = World::with(without(listening()), without(multihomed(B, 2)));
    let (a, _) = world.connected();
    for (chunk, is_zero) in [("ASCONF", false), ("ASCONF-ACK", true)] {
        world.tap.keep = Some(chunk);
        world.tap.kept = None;
        let address = address(A, if is_zero { 2 } else { 1 });
        world.association(A, a).add_address(address).unwrap();
        // The answer follows later.
        world.run_for(if is_zero { ms(100) } else { ms(1) });
        let packet = world.tap.kept.clone().expect(chunk);
        assert_eq!(packet[8..12] == [0; 4], is_zero, "{chunk}");
        world.run_for(ms(5000));
    }
}

/// The first heartbeat over the new network arrives before the request that announces its source, so
/// that its receiver does not know where it comes from.
#[test]
fn a_path_that_both_hosts_announce_is_verified_once_the_peer_knows_it() {
    let config = || {
        let mut config = changing(listening());
        config.association.multipath = Some(MultipathConfig::default());
        config
    };
    let mut world = World::with(config(), config());
    world.change_links(|network, link| link.delay = ms(if network == 0 { 25 } else { 1 }));
    let (a, b) = world.connected();
    world.run_for(Duration::from_secs(1));
    world.clear_ladder();
    world.association(B, b).add_address(address(B, 1)).unwrap();
    world.run_for(ms(20));
    world.association(A, a).add_address(address(A, 1)).unwrap();
    world.run_for(ms(20));
    assert_eq!(paths(&world, A)[1], (address(B, 1), PathState::Unconfirmed));
    // B has not heard of it.
    assert_eq!(paths(&world, B).len(), 1);
    world.run_for(ms(50));
    assert_eq!(paths(&world, A)[1], (address(B, 1), PathState::Active));
    assert_eq!(paths(&world, B)[1], (address(A, 1), PathState::Active));
}

//= rfc5061 §5.3 F13
//# packets from a deleted address are out of the blue; they are dropped without ABORT
//= otherwise: they may be the peer's, and an ABORT would end the association
#[test]
fn an_address_is_removed() {
    let mut world = World::with(changing(multihomed(A, 2)), changing(multihomed(B, 2)));
    let (a, _) = world.connected();
    world.run_for(Duration::from_secs(10));
    assert_eq!(paths(&world, B).len(), 2);
    world.association(A, a).remove_address(address(A, 1)).unwrap();
    world.run_for(Duration::from_secs(1));
    assert_eq!(answers(&world, A), [(address(A, 1), OwnAddressChange::Removed, None)]);
    assert_eq!(paths(&world, B), [(address(A, 0), PathState::Active)]);
    let removed = |event: &Event| {
        matches!(event, Event::Path { change: PathChange::Removed, remote, .. }
            if remote.ip() == address(A, 1))
    };
    assert!(world.hosts[B].events().iter().any(removed));
}

/// An ABORT from `B` to `A`: as for its own association, or as for an out-of-the-blue packet.
fn abort(world: &World, reflected: bool) -> Bytes {
    let abort = [Chunk::Abort(AbortChunk { reflected, causes: Causes::default() })];
    let wiretap = world.tap.wiretap.as_ref().expect("it was received");
    let [to_a, to_b] = [A, B].map(|host| wiretap.forge(host, &abort).expect("both have sent"));
    let mut packet = to_a.to_vec();
    if reflected {
        packet[4..8].copy_from_slice(&to_b[4..8]);
        ChecksumKind::Crc32c.patch(&mut packet);
    }
    packet.into()
}

//= rfc5061 §5.3 F4, §5.3.1
//# ABORT at an address that is being deleted MUST be ignored
/// Packets sent from the old address may arrive after the request: a peer that takes them for
/// out-of-the-blue packets sends an ABORT there (RFC 5061 §5.3, F4, and §5.3.1).
#[test]
fn an_abort_at_an_address_being_removed_is_ignored() {
    for (reflected, after) in [(false, 0), (true, 0), (false, 1000), (true, 1000)] {
        let mut world = World::with(changing(multihomed(A, 2)), changing(multihomed(B, 2)));
        world.tap.wiretap = Some(Wiretap::default());
        let (a, _) = world.connected();
        world.run_for(Duration::from_secs(10));
        let packet = abort(&world, reflected);
        world.association(A, a).remove_address(address(A, 1)).unwrap();
        world.run_for(Duration::from_millis(after));
        for (local, survives) in [(address(A, 1), true), (address(A, 0), false)] {
            let contents = packet.clone();
            let (local, remote) = (Some(local), socket(B, 0));
            let (ecn, segment_size) = (Ecn::NotCapable, contents.len());
            let input =
                Input::Packets(Received { local, remote, ecn, contents, segment_size, peer: None });
            world.hosts[A].endpoint.handle_input(world.now, input);
            let is_established = world.hosts[A].state() == AssociationState::Established;
            assert_eq!(is_established, survives, "{local:?} {reflected} {after}");
        }
    }
}

#[test]
fn the_address_in_use_is_removed_over_another_path() {
    let mut world = World::with(changing(multihomed(A, 2)), changing(multihomed(B, 2)));
    let (a, b) = world.connected();
    world.run_for(Duration::from_secs(10));
    world.association(A, a).remove_address(address(A, 0)).unwrap();
    world.send(B, b, 1, vec![1; 100_000]);
    world.run_for(Duration::from_secs(10));
    assert_eq!(answers(&world, A), [(address(A, 0), OwnAddressChange::Removed, None)]);
    assert_eq!(paths(&world, B), [(address(A, 1), PathState::Active)]);
    assert_eq!(world.hosts[A].received_bytes(), 100_000);
}

//= rfc5061 §5.4
//# a primary address is honoured once it is verified; not in INIT and INIT ACK
#[test]
fn a_new_address_becomes_primary_once_it_is_verified() {
    let mut world = world();
    let (a, b) = world.connected();
    let new = address(A, 1);
    world.association(A, a).add_address(new).unwrap();
    world.association(A, a).set_peer_primary(new).unwrap();
    world.run_for(Duration::from_secs(10));
    let done = [(new, OwnAddressChange::Added, None), (new, OwnAddressChange::MadePrimary, None)];
    assert_eq!(answers(&world, A), done);
    let status = world.hosts[B].status(b);
    let primary = status.paths.iter().find(|path| path.id == status.primary).unwrap();
    assert_eq!(primary.remote.ip(), new);
}

//= rfc5061 §5.1 B1 to B5
//# lost ASCONFs and ASCONF-ACKs are made good
#[test]
fn lost_requests_and_answers_are_retransmitted() {
    let mut world = world();
    let (a, _) = world.connected();
    world.clear_ladder();
    for what in ["ASCONF", "ASCONF-ACK"] {
        world.lose(what);
    }
    world.association(A, a).add_address(address(A, 1)).unwrap();
    world.run_for(Duration::from_secs(20));
    assert!(world.lost_all());
    assert_eq!(answers(&world, A), [(address(A, 1), OwnAddressChange::Added, None)]);
    assert_eq!(paths(&world, B).len(), 2);
    let requests = world
        .tap
        .ladder
        .iter()
        .filter(|line| line.contains("ASCONF") && !line.contains("ACK"))
        .count();
    assert_eq!(requests, 3, "{:#?}", world.tap.ladder);
}

//= rfc5061 §5.3 F7
//# a request to delete the last address is refused
#[test]
fn the_last_address_stays() {
    let mut world = world();
    let (a, _) = world.connected();
    world.association(A, a).remove_address(address(A, 0)).unwrap();
    world.run_for(Duration::from_secs(1));
    let refused = (address(A, 0), OwnAddressChange::Removed, Some(0xa0));
    assert_eq!(answers(&world, A), [refused]);
    assert_eq!(paths(&world, B), [(address(A, 0), PathState::Active)]);
}

//= rfc5061 §5.2 D4, E6, §5.3.2
//# a host whose only address changed is known by its old one, and answered at the new
#[test]
fn a_moving_host_is_recognized_by_its_old_address() {
    let mut world = World::with(changing(listening()), changing(multihomed(B, 2)));
    let a = world.connect_with(|options| {
        options.local = Some(address(A, 0));
        options.remotes.push(socket(B, 1));
    });
    world.finish_handshake(a);
    world.run_for(Duration::from_secs(5));
    // A loses network 0; what it sends to B's other address has a new source address.
    world.network.cut = vec![0];
    let new = address(A, 1);
    world.hosts[A].endpoint.handle_input(world.now, Input::LocalAddresses(vec![new]));
    world.association(A, a).add_address(new).unwrap();
    world.association(A, a).remove_address(address(A, 0)).unwrap();
    world.send(A, a, 1, "still here");
    world.run_for(Duration::from_secs(60));
    let done =
        [(new, OwnAddressChange::Added, None), (address(A, 0), OwnAddressChange::Removed, None)];
    assert_eq!(answers(&world, A), done);
    assert_eq!(paths(&world, B), [(new, PathState::Active)]);
    assert_eq!(world.hosts[B].received_messages(), 1);
}

//= rfc5061 §5.3 F4, F6, F8
//# an address that is being deleted is no source
#[test]
fn the_only_path_uses_another_source_address() {
    let mut world = World::with(changing(listening()), changing(listening()));
    let a = world.connect_with(|options| options.local = Some(address(A, 0)));
    world.finish_handshake(a);
    let new = address(A, 1);
    world.association(A, a).add_address(new).unwrap();
    world.run_for(Duration::from_secs(1));
    assert_eq!(world.hosts[A].status(a).paths[0].local, Some(address(A, 0)));
    world.association(A, a).remove_address(address(A, 0)).unwrap();
    assert_eq!(world.hosts[A].status(a).paths[0].local, Some(new));
}

#[test]
fn a_moving_host_announces_its_new_address() {
    let mut config = changing(multihomed(A, 2));
    config.association.auto_asconf = true;
    let mut world = World::with(config, changing(multihomed(B, 2)));
    let (_, b) = world.connected();
    world.run_for(Duration::from_secs(5));
    world.network.cut = vec![0];
    let left = vec![address(A, 1)];
    world.hosts[A].endpoint.handle_input(world.now, Input::LocalAddresses(left));
    world.run_for(Duration::from_secs(30));
    assert_eq!(answers(&world, A), [(address(A, 0), OwnAddressChange::Removed, None)]);
    assert_eq!(paths(&world, B), [(address(A, 1), PathState::Active)]);
    world.send(B, b, 1, "found you");
    world.run_for(Duration::from_secs(5));
    assert_eq!(world.hosts[A].received_messages(), 1);
}

#[test]
fn an_address_that_returns_after_a_probe_was_lost_is_probed_at_once() {
    let mut world = World::with(multihomed(A, 2), multihomed(B, 2));
    let (a, _) = world.connected();
    world.run_for(Duration::from_secs(5));
    let local = |world: &World| world.hosts[A].status(a).paths[1].local;
    let present = |world: &mut World, list: &[IpAddr]| {
        let input = Input::LocalAddresses(list.to_vec());
        world.hosts[A].endpoint.handle_input(world.now, input);
        world.run_for(Duration::from_millis(300));
    };
    assert_eq!(local(&world), Some(address(A, 1)));
    // Without an address there is no route: the probe that asks which address is used is lost.
    world.network.cut = vec![1];
    present(&mut world, &[address(A, 0)]);
    assert_eq!(local(&world), None);
    world.network.cut = vec![];
    present(&mut world, &[address(A, 0), address(A, 1)]);
    assert_eq!(local(&world), Some(address(A, 1)));
}

#[test]
fn the_new_address_of_a_path_is_learnt_while_data_is_in_flight() {
    let mut world = World::with(multihomed(A, 2), multihomed(B, 2));
    let (a, _) = world.connected();
    world.run_for(Duration::from_secs(5));
    // Data that waits for its retransmission postpones heartbeats.
    world.network.cut = vec![0];
    world.send(A, a, 1, "in flight");
    world.run_for(Duration::from_millis(50));
    world.network.cut = vec![];
    let present = vec![address(A, 1)];
    world.hosts[A].endpoint.handle_input(world.now, Input::LocalAddresses(present));
    assert_eq!(world.hosts[A].status(a).paths[0].local, None);
    world.run_for(Duration::from_millis(300));
    assert_eq!(world.hosts[A].status(a).paths[0].local, Some(address(A, 0)));
}

//= rfc5061 §4.2.7
//# ASCONF, ASCONF-ACK and AUTH are listed together
#[test]
fn both_sides_must_support_it() {
    let mut world = World::with(changing(listening()), listening());
    let (a, b) = world.connected();
    let new = address(A, 1);
    for (host, id) in [(A, a), (B, b)] {
        let refused = world.association(host, id).add_address(new);
        assert_eq!(refused, Err(Error::NotSupported));
    }
}

//= rfc5061 §4.2.1, §4.2.2
//# no broadcast or multicast address is added or deleted
#[test]
fn non_unicast_addresses_are_refused() {
    let mut world = world();
    let (a, _) = world.connected();
    for bad in ["0.0.0.0", "224.0.0.1", "::"] {
        let refused = world.association(A, a).add_address(bad.parse().unwrap());
        assert_eq!(refused, Err(Error::BadAddress), "{bad}");
    }
}
