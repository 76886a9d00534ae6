//! Address lists with every kind of address that cannot be a peer's (RFC 9260 §5.1.2).

use super::*;
use crate::associations::world::{init, listening, packet};
use eyas_sctp::wire::{InitChunk, Parameter};
use std::net::{IpAddr, Ipv4Addr};

/// Delivers an INIT that lists these addresses to `B`, and returns the replies.
fn listing(world: &mut World, addresses: impl Iterator<Item = IpAddr>) -> Vec<String> {
    let parameters = addresses.map(Parameter::Address).collect();
    let init = packet(0, &[Chunk::Init(InitChunk { parameters, ..init(77) })]);
    world.clear_ladder();
    world.tap.keep = Some("INIT-ACK");
    world.inject(B, socket(A, 0), init);
    world.run_for(ms(1));
    world.tap.ladder.clone()
}

//= rfc9260 §5.1.2
//# no loopback, link-local, multicast, broadcast or unspecified addresses
#[test]
fn non_unicast_addresses_are_ignored() {
    let mut world = World::new();
    let unusable = ["127.0.0.1", "224.0.0.1", "0.0.0.0", "255.255.255.255", "169.254.1.1"];
    let addresses = unusable.iter().map(|text| text.parse().unwrap());
    assert_eq!(listing(&mut world, addresses), ["A <- B  INIT-ACK"]);
    assert_eq!(world.hosts[B].endpoint.counters().addresses_ignored, 5);
}

//= hostile sctp-setup
//# listed addresses of other hosts
//= bound: `max_probes_per_source`; `MAX_UNANSWERED`, then one per `SLOW_INTERVAL`
/// Two hundred associations list addresses of uninvolved hosts.
#[test]
fn probes_to_addresses_listed_by_a_peer_have_a_budget() {
    let mut config = listening();
    config.addresses = (0..30).map(|n| IpAddr::V4(Ipv4Addr::new(198, 18, 0, n))).collect();
    config.addresses.push(crate::associations::world::address(A, 0));
    let mut world = World::with(config, listening());
    for _ in 0..200 {
        world.connect();
    }
    world.run_for(ms(60_000));
    assert_eq!(world.hosts[B].endpoint.associations().len(), 200);
    let probes =
        world.tap.ladder.iter().filter(|line| line.starts_with("A <- B  HEARTBEAT (nowhere)"));
    let probes = probes.count();
    let most = 61 * world.hosts[B].endpoint.config().max_probes_per_source as usize;
    assert!(probes > 100 && probes <= most, "{probes} heartbeats to unrelated hosts");
}

/// However long its list is, one association does not probe faster and faster.
#[test]
fn verification_slows_down_after_many_silent_addresses() {
    let mut config = listening();
    config.addresses = (0..30).map(|n| IpAddr::V4(Ipv4Addr::new(198, 18, 0, n))).collect();
    config.addresses.push(crate::associations::world::address(A, 0));
    let mut world = World::with(config, listening());
    world.connected();
    world.run_for(ms(600_000));
    let probes =
        world.tap.ladder.iter().filter(|line| line.starts_with("A <- B  HEARTBEAT (nowhere)"));
    let probes = probes.count();
    assert!((16..=16 + 20 + 1).contains(&probes), "{probes} heartbeats to unrelated hosts");
}

//= rfc9260 §5.1.2
//# of the addresses in INIT ACK at most `max_peer_addresses`, 32, are used
#[test]
fn only_a_few_of_thousands_of_addresses_are_used() {
    let mut world = World::new();
    let addresses = (0..8000_u16).map(|n| {
        let [high, low] = n.to_be_bytes();
        IpAddr::V4(Ipv4Addr::new(198, 18, high, low))
    });
    assert_eq!(listing(&mut world, addresses), ["A <- B  INIT-ACK"]);
    let most = world.hosts[B].endpoint.config().association.max_peer_addresses as u64;
    assert_eq!(world.hosts[B].endpoint.counters().addresses_ignored, 8000 - most);
    let answer = world.tap.kept.as_ref().expect("the INIT ACK").len();
    assert!(answer < 1500, "the cookie lists few of them: {answer} bytes");
    assert_eq!(world.hosts[B].endpoint.associations(), []);
}
