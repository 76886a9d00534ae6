use super::*;
use crate::congestion::CongestionControl;
use crate::congestion::WindowRules;
use crate::congestion::tests::coupled::{MTU, acknowledged, event, siblings};

fn path(window: usize, threshold: usize) -> CmtRpV2 {
    let mut path = CmtRpV2::new(MTU, WindowRules::default());
    (path.base.window, path.base.threshold) = (window, threshold);
    path
}

fn by_rate(own_rate: u64, rates: u64) -> SiblingPaths {
    SiblingPaths { own_rate, rates, ..siblings() }
}

#[test]
fn growth_is_proportional_to_the_bandwidth() {
    let quarter = by_rate(250_000, 1_000_000);
    let mut slow = path(30_000, 30_000);
    slow.on_acknowledged(&acknowledged(2904, quarter));
    assert_eq!(slow.window(), 30_000 + 375);
    let mut avoiding = path(60_000, 30_000);
    avoiding.on_acknowledged(&acknowledged(60_000, quarter));
    assert_eq!(avoiding.window(), 60_000 + 375);
}

#[test]
fn a_loss_reduces_the_path_by_at_least_half() {
    // β is ½ · 4/3 here: 40,000 of 60,000.
    let mut large = path(60_000, 30_000);
    large.on_congestion(&event(by_rate(750_000, 1_000_000)));
    assert_eq!((large.window(), large.slow_start_threshold()), (20_000, 20_000));
    // And ½ · 4: all of it, down to the share of four packets.
    let mut small = path(60_000, 30_000);
    small.on_congestion(&event(by_rate(250_000, 1_000_000)));
    assert_eq!(small.window(), 1500);
}

#[test]
fn a_single_path_behaves_like_new_reno() {
    let alone = by_rate(1_000_000, 1_000_000);
    let mut path = path(60_000, 30_000);
    path.on_acknowledged(&acknowledged(60_000, alone));
    assert_eq!(path.window(), 61_500);
    path.on_congestion(&event(alone));
    assert_eq!(path.window(), 30_750);
    path.on_timeout(&event(alone));
    assert_eq!((path.window(), path.slow_start_threshold()), (1500, 15_375));
}
