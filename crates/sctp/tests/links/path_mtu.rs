//! Packet sizes, and paths on which large packets are lost (RFC 8899).

use std::time::Duration;

use eyas_netem::link::LinkConfig;
use eyas_sctp::config::AssociationConfig;

use crate::network::{link, ms};
use crate::saturated::{Traffic, World};

/// 20 Mbit/s and 40 ms, for packets of at most this many bytes.
fn passing(largest: usize) -> LinkConfig {
    LinkConfig { mtu: Some(largest), ..link(20_000_000, ms(20), ms(50)) }
}

fn over_ipv4(largest: usize) -> World {
    World::connected(&AssociationConfig::default(), &[passing(largest)])
}

fn over_ipv6(largest: usize) -> World {
    let traffic = Traffic { ipv6: true, ..Traffic::new(&AssociationConfig::default(), 1) };
    World::with(traffic, &[passing(largest)], 1)
}

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// The size of the largest IP packet on the only path.
fn mtu(world: &World) -> usize {
    let path = &world.status().paths[0];
    let headers = if path.remote.is_ipv6() { 48 } else { 28 };
    path.mtu + headers
}

//= rfc9260 §7.3
//# path MTU discovery per address: RFC 8899, where data was sent
#[test]
fn jumbo_frames_are_found_within_a_second() {
    let mut world = over_ipv4(9_000);
    world.run_to(seconds(2));
    assert_eq!(mtu(&world), 9_000);
}

//= rfc9260 §7.3
//# a lost probe of the path MTU is no sign of congestion
#[test]
fn lost_probes_do_not_slow_data_down() {
    let mut world = over_ipv4(1_500);
    world.run_to(seconds(6));
    assert_eq!(mtu(&world), 1_500);
    let bits = world.delivered(seconds(2), seconds(6)) * 8 / 4;
    assert!(bits >= 17_000_000, "{bits} bits a second");
}

//= rfc8261 §4
//# path MTU discovery without ICMP: RFC 8899 in SCTP
#[test]
fn a_path_that_drops_large_packets_is_detected() {
    let mut world = over_ipv4(1_430);
    world.run_to(seconds(15));
    assert_eq!(mtu(&world), 1_420);
    let bits = world.delivered(seconds(11), seconds(15)) * 8 / 4;
    assert!(bits >= 10_000_000, "{bits} bits a second");
}

//= rfc9260 §3, §6.10
//# packets MUST NOT exceed the path MTU; chunks built when it was larger are fragmented by IP
#[test]
fn a_shrinking_path_mtu_is_detected() {
    let mut world = over_ipv4(1_500);
    world.run_to(seconds(6));
    world.change_links(|_, link| link.mtu = Some(1_300));
    world.run_to(seconds(25));
    assert_eq!(mtu(&world), 1_280);
    let bits = world.delivered(seconds(21), seconds(25)) * 8 / 4;
    assert!(bits >= 10_000_000, "{bits} bits a second");
}

#[test]
fn an_ipv6_path_that_drops_large_packets_is_detected() {
    for (largest, found) in [(1_430, 1_420), (1_280, 1_280)] {
        let mut world = over_ipv6(largest);
        world.run_to(seconds(15));
        assert_eq!(mtu(&world), found);
        let bits = world.delivered(seconds(11), seconds(15)) * 8 / 4;
        assert!(bits >= 10_000_000, "{bits} bits a second");
    }
}

#[test]
fn a_shrinking_ipv6_path_falls_to_the_minimum_mtu() {
    let mut world = over_ipv6(1_500);
    world.run_to(seconds(6));
    assert_eq!(mtu(&world), 1_500);
    world.change_links(|_, link| link.mtu = Some(1_300));
    world.run_to(seconds(25));
    assert_eq!(mtu(&world), 1_280);
    let bits = world.delivered(seconds(21), seconds(25)) * 8 / 4;
    assert!(bits >= 10_000_000, "{bits} bits a second");
}
