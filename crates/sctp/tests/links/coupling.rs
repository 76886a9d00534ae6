//! Several paths at once beside a flow that has one: at a shared bottleneck coupled control takes no
//! more than that one, on paths of their own it takes all.

use std::time::Duration;

use eyas_sctp::config::{AssociationConfig, CongestionControlKind, Multipath};

use crate::shared::{Bottleneck, Shared};
use CongestionControlKind::{Bbr, CmtRpV1, CmtRpV2, Lia, NewReno, Olia};

/// 10 Mbit/s and 40 ms: 33 packets, and a queue for 50 more.
const LINK: Bottleneck = Bottleneck {
    rate: 10_000_000,
    queue: 50,
    delay: Duration::from_millis(20),
    loss: 0,
    early: false,
};

fn several(kind: CongestionControlKind) -> AssociationConfig {
    let mut config = AssociationConfig::default();
    config.congestion_control = kind.into();
    config.path_mtu_discovery = false;
    let mut multipath = Multipath::default();
    // Windows alone decide.
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

/// What two paths over one bottleneck get, in percent of what a single flow of NewReno beside them
/// gets. `early`: whether losses fall on packets by chance, or on whoever comes to a full queue.
fn beside_a_single_flow(kind: CongestionControlKind, early: bool) -> u64 {
    let flows = [(several(kind), vec![0, 0]), (single(), vec![0])];
    let mut world = Shared::new(&[Bottleneck { early, ..LINK }], &flows, 1);
    world.run(5);
    let rates = world.run(45);
    let all = (rates[0] + rates[1]) * 100 / LINK.rate;
    assert!(all >= 88, "{kind:?}: {all} % of the link");
    rates[0] * 100 / rates[1]
}

/// Percent of two links of their own that two paths use.
fn on_disjoint_links(kind: CongestionControlKind, loss: u64) -> u64 {
    let link = Bottleneck { loss, ..LINK };
    let mut world = Shared::new(&[link, link], &[(several(kind), vec![0, 1])], 1);
    world.run(8);
    let rate = world.run(16)[0];
    rate * 100 / (2 * LINK.rate)
}

#[test]
fn uncoupled_paths_take_twice_as_much_as_one_flow() {
    let share = beside_a_single_flow(NewReno, true);
    assert!((170..=250).contains(&share), "{share} %");
}

#[test]
fn coupled_paths_take_as_much_as_one_flow() {
    for kind in [Lia, Olia, CmtRpV1, CmtRpV2] {
        let share = beside_a_single_flow(kind, true);
        assert!((75..=140).contains(&share), "{kind:?}: {share} %");
    }
}

#[test]
fn at_a_full_queue_a_slowly_growing_flow_has_fewer_drops() {
    // Linked increases reckon with losses that fall on packets by chance.
    for (kind, most) in [(Lia, 175), (CmtRpV1, 130), (CmtRpV2, 135)] {
        let share = beside_a_single_flow(kind, false);
        assert!((75..=most).contains(&share), "{kind:?}: {share} %");
    }
}

#[test]
fn coupled_paths_take_all_of_links_of_their_own() {
    // Resource pooling takes half of both windows from the path that lost: all of it, where they
    // are equal.
    for (kind, least) in [(Lia, 92), (Olia, 90), (CmtRpV1, 60), (CmtRpV2, 55), (NewReno, 90)] {
        let share = on_disjoint_links(kind, 0);
        assert!(share >= least, "{kind:?}: {share} %");
    }
}

#[test]
fn a_controller_by_model_on_each_path_is_not_deterred_by_losses() {
    for (loss, least) in [(0, 88), (10_000, 80)] {
        let share = on_disjoint_links(Bbr, loss);
        assert!(share >= least, "{loss} in a million: {share} %");
    }
}
