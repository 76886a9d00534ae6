use super::*;
use crate::congestion::CongestionControl;
use crate::congestion::WindowRules;
use crate::congestion::tests::coupled::{MTU, acknowledged, event, siblings};

fn path(window: usize, threshold: usize) -> CmtRpV1 {
    let mut path = CmtRpV1::new(MTU, WindowRules::default());
    (path.base.window, path.base.threshold) = (window, threshold);
    path
}

fn by_threshold(windows: usize, own: usize, all: usize) -> SiblingPaths {
    SiblingPaths {
        windows,
        own_slow_start_threshold: own,
        slow_start_thresholds: all,
        ..siblings()
    }
}

#[test]
fn growth_is_proportional_to_the_threshold() {
    let view = by_threshold(100_000, 30_000, 120_000);
    let mut slow = path(30_000, 30_000);
    slow.on_acknowledged(&acknowledged(2904, view));
    assert_eq!(slow.window(), 30_000 + 375);
    let mut avoiding = path(60_000, 30_000);
    for _ in 0..39 {
        avoiding.on_acknowledged(&acknowledged(1500, view));
        assert_eq!(avoiding.window(), 60_000);
    }
    avoiding.on_acknowledged(&acknowledged(1500, view));
    assert_eq!(avoiding.window(), 60_000 + 375);
}

#[test]
fn a_loss_reduces_the_path_by_half_of_all_windows() {
    let view = by_threshold(100_000, 30_000, 120_000);
    let mut large = path(60_000, 30_000);
    large.on_congestion(&event(view));
    assert_eq!((large.window(), large.slow_start_threshold()), (10_000, 10_000));
    // 40,000 − 50,000: what is left is the share of four packets.
    let mut small = path(40_000, 30_000);
    small.on_congestion(&event(view));
    assert_eq!(small.window(), 1500);
    let mut larger_share = path(40_000, 90_000);
    larger_share.on_congestion(&event(by_threshold(100_000, 90_000, 120_000)));
    assert_eq!(larger_share.window(), 4500);
    let mut timed_out = path(60_000, 30_000);
    timed_out.on_timeout(&event(view));
    assert_eq!((timed_out.window(), timed_out.slow_start_threshold()), (1500, 10_000));
}

#[test]
fn a_single_path_behaves_like_new_reno() {
    let alone = by_threshold(60_000, 30_000, 30_000);
    let mut path = path(60_000, 30_000);
    path.on_acknowledged(&acknowledged(60_000, alone));
    assert_eq!(path.window(), 61_500);
    path.on_congestion(&event(by_threshold(61_500, 30_000, 30_000)));
    assert_eq!(path.window(), 30_750);
}
