//! Routers that mark packets instead of dropping them (RFC 9260 appendix A).

use std::time::Duration;

use eyas_netem::link::{CoDelConfig, LinkConfig, QueueConfig};
use eyas_sctp::config::{AssociationConfig, CongestionControlKind};

use crate::network::{link, ms};
use crate::saturated::World;

/// 20 Mbit/s and 40 ms, with a queue of 100 ms that marks once it has been a quarter full for a
/// while.
fn a_link() -> LinkConfig {
    let queue = CoDelConfig { limit: 166, target: ms(25), ..CoDelConfig::default() };
    LinkConfig { queue: QueueConfig::CoDel(queue), ..link(20_000_000, ms(20), ms(100)) }
}

#[test]
fn marks_keep_the_queue_short_and_nothing_is_lost() {
    for kind in [CongestionControlKind::NewReno, CongestionControlKind::Cubic] {
        let mut config = AssociationConfig::default();
        config.congestion_control = kind.into();
        config.extensions.ecn = true;
        // Lost probes do not count here.
        config.path_mtu_discovery = false;
        let mut world = World::connected(&config, &[a_link()]);
        world.run_to(Duration::from_secs(3));
        let dropped = world.network.dropped();
        world.run_to(Duration::from_secs(10));
        assert_eq!(world.network.dropped(), dropped, "{kind:?}");
        let bits = world.delivered(Duration::from_secs(3), Duration::from_secs(10)) * 8 / 7;
        assert!(bits >= 16_000_000, "{kind:?}: {bits} bits a second");
        let rtt = world.status().paths[0].smoothed_rtt.unwrap();
        assert!(rtt < Duration::from_millis(90), "{kind:?}: {rtt:?}");
    }
}

#[test]
fn a_path_that_drops_ecn_capable_packets_is_used_without_ecn() {
    let mut config = AssociationConfig::default();
    config.extensions.ecn = true;
    config.path_mtu_discovery = false;
    let mut world = World::connected(&config, &[a_link()]);
    world.tap.drops_markable = true;
    world.run_to(Duration::from_secs(20));
    let bits = world.delivered(Duration::from_secs(10), Duration::from_secs(20)) * 8 / 10;
    assert!(bits >= 16_000_000, "{bits} bits a second");
}
