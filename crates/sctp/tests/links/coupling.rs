//! Multipath associations next to a single-path flow: at a shared bottleneck coupled control takes
//! no more than that flow, on separate paths it uses all of them.

use eyas_netem::link::{LinkConfig, QueueConfig, RedConfig};
use eyas_sctp::config::{AssociationConfig, CongestionControlKind, MultipathConfig};

use crate::network::{lost, ms};
use crate::saturated::World;
use CongestionControlKind::{Bbr, CmtRpV1, CmtRpV2, Lia, NewReno, Olia};

/// The rate of a bottleneck, in bit/s.
const RATE: u64 = 10_000_000;

/// 10 Mbit/s and 40 ms: 33 packets, and a queue for 50 more. Hosts are not synchronised: otherwise
/// it would not be random whose packets a full queue drops.
fn bottleneck() -> LinkConfig {
    LinkConfig { queue: QueueConfig::Packets(50), jitter: ms(1), ..LinkConfig::new(RATE, ms(20)) }
}

/// Drops at random before the queue is full: the longer the queue, the more.
fn early() -> QueueConfig {
    let (minimum, maximum) = (0.0, 50.0);
    let red = RedConfig { limit: 50, minimum, maximum, probability: 0.05, weight: 1.0, ecn: false };
    QueueConfig::Red(red)
}

fn several(kind: CongestionControlKind) -> AssociationConfig {
    let mut config = AssociationConfig::default();
    config.congestion_control = kind.into();
    config.path_mtu_discovery = false;
    let mut multipath = MultipathConfig::default();
    // Only the windows matter.
    multipath.flight_cap = None;
    config.multipath = Some(multipath);
    config
}

fn single() -> AssociationConfig {
    let mut config = AssociationConfig::default();
    config.congestion_control = NewReno.into();
    config.path_mtu_discovery = false;
    config
}

/// The throughput of two paths over one bottleneck, in percent of that of a single NewReno flow
/// next to them. Losses hit random packets, or those that arrive at a full queue.
fn beside_a_single_flow(kind: CongestionControlKind, queue: QueueConfig) -> u64 {
    let flows = [(several(kind), vec![0, 0]), (single(), vec![0])];
    let mut world = World::shared(&[LinkConfig { queue, ..bottleneck() }], &flows);
    world.rates(5);
    let rates = world.rates(45);
    let all = (rates[0] + rates[1]) * 100 / RATE;
    assert!(all >= 88, "{kind:?}: {all} % of the link");
    rates[0] * 100 / rates[1]
}

/// The utilisation of two separate links by two paths, in percent.
fn on_disjoint_links(kind: CongestionControlKind, loss: u32) -> u64 {
    let link = LinkConfig { loss: lost(loss), ..bottleneck() };
    let mut world = World::shared(&[link.clone(), link], &[(several(kind), vec![0, 1])]);
    world.rates(8);
    let rate = world.rates(16)[0];
    rate * 100 / (2 * RATE)
}

#[test]
fn uncoupled_paths_take_twice_as_much_as_one_flow() {
    let share = beside_a_single_flow(NewReno, early());
    assert!((170..=250).contains(&share), "{share} %");
}

#[test]
fn coupled_paths_take_as_much_as_one_flow() {
    // Over six seeds LIA had 139 to 152 %, and 129 to 156 % with all SACKs on the path of lowest RTT.
    for (kind, most) in [(Lia, 160), (Olia, 145), (CmtRpV1, 140), (CmtRpV2, 140)] {
        let share = beside_a_single_flow(kind, early());
        assert!((75..=most).contains(&share), "{kind:?}: {share} %");
    }
}

#[test]
fn at_a_full_queue_a_slowly_growing_flow_has_fewer_drops() {
    // Linked increases assume random losses.
    for (kind, most) in [(Lia, 175), (CmtRpV1, 130), (CmtRpV2, 135)] {
        let share = beside_a_single_flow(kind, QueueConfig::Packets(50));
        assert!((75..=most).contains(&share), "{kind:?}: {share} %");
    }
}

#[test]
fn coupled_paths_fill_separate_links() {
    // Resource pooling takes half of both windows from the path with the loss: all of it, if they
    // are equal.
    for (kind, least) in [(Lia, 92), (Olia, 90), (CmtRpV1, 60), (CmtRpV2, 55), (NewReno, 90)] {
        let share = on_disjoint_links(kind, 0);
        assert!(share >= least, "{kind:?}: {share} %");
    }
}

#[test]
fn model_based_controllers_are_not_slowed_by_losses() {
    for (loss, least) in [(0, 88), (10, 80)] {
        let share = on_disjoint_links(Bbr, loss);
        assert!(share >= least, "{loss} in a thousand: {share} %");
    }
}
