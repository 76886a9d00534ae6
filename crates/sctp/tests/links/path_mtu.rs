//! How large packets become, and what happens where large ones vanish (RFC 8899).

use std::time::Duration;

use eyas_sctp::config::AssociationConfig;

use crate::world::{Link, World};

/// 20 Mbit/s and 40 ms.
const LINK: Link = Link::new(20_000_000, Duration::from_millis(20), Duration::from_millis(50));

fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Bytes of the largest IP packet on the only path.
fn mtu(world: &World) -> usize {
    world.status().paths[0].mtu + world.headers()
}

#[test]
fn jumbo_frames_are_found_within_a_second() {
    let link = Link { largest: 9_000, ..LINK };
    let mut world = World::connected(&AssociationConfig::default(), &[link]);
    world.run_until(seconds(2));
    assert_eq!(mtu(&world), 9_000);
}

#[test]
fn lost_probes_do_not_slow_data_down() {
    let mut world = World::connected(&AssociationConfig::default(), &[LINK]);
    world.run_until(seconds(6));
    assert_eq!(mtu(&world), 1_500);
    let bits = world.delivered(seconds(2), seconds(6)) * 8 / 4;
    assert!(bits >= 17_000_000, "{bits} bits a second");
}

#[test]
fn a_path_that_drops_large_packets_is_detected() {
    let link = Link { largest: 1_430, ..LINK };
    let mut world = World::connected(&AssociationConfig::default(), &[link]);
    world.run_until(seconds(15));
    assert_eq!(mtu(&world), 1_420);
    let bits = world.delivered(seconds(11), seconds(15)) * 8 / 4;
    assert!(bits >= 10_000_000, "{bits} bits a second");
}

#[test]
fn a_shrinking_path_mtu_is_detected() {
    let mut world = World::connected(&AssociationConfig::default(), &[LINK]);
    world.run_until(seconds(6));
    world.pass_up_to(0, 1_300);
    world.run_until(seconds(25));
    assert_eq!(mtu(&world), 1_280);
    let bits = world.delivered(seconds(21), seconds(25)) * 8 / 4;
    assert!(bits >= 10_000_000, "{bits} bits a second");
}

#[test]
fn an_ipv6_path_that_drops_large_packets_is_detected() {
    for (largest, found) in [(1_430, 1_420), (1_280, 1_280)] {
        let link = Link { largest, ipv6: true, ..LINK };
        let mut world = World::connected(&AssociationConfig::default(), &[link]);
        world.run_until(seconds(15));
        assert_eq!(mtu(&world), found);
        let bits = world.delivered(seconds(11), seconds(15)) * 8 / 4;
        assert!(bits >= 10_000_000, "{bits} bits a second");
    }
}

#[test]
fn a_shrinking_ipv6_path_falls_to_the_minimum_mtu() {
    let link = Link { ipv6: true, ..LINK };
    let mut world = World::connected(&AssociationConfig::default(), &[link]);
    world.run_until(seconds(6));
    assert_eq!(mtu(&world), 1_500);
    world.pass_up_to(0, 1_300);
    world.run_until(seconds(25));
    assert_eq!(mtu(&world), 1_280);
    let bits = world.delivered(seconds(21), seconds(25)) * 8 / 4;
    assert!(bits >= 10_000_000, "{bits} bits a second");
}
