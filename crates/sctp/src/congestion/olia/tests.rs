use super::*;
use crate::congestion::WindowRules;
use crate::congestion::tests::coupled::{MTU, acknowledged, event};
use crate::congestion::{CongestionControl, SiblingPath};

fn path(window: usize) -> Olia {
    let mut path = Olia::new(MTU, WindowRules::default());
    (path.base.window, path.base.threshold) = (window, window / 2);
    path
}

fn member(window: usize, loss_interval: u64) -> SiblingPath {
    SiblingPath {
        window,
        mtu: MTU,
        slow_start_threshold: window,
        smoothed_rtt: 100_000_000,
        loss_interval,
    }
}

#[test]
fn two_equal_paths_grow_as_with_linked_increases() {
    let one = member(30_000, 1);
    let view = SiblingPaths::new(&one, [one, one].into_iter());
    let mut path = path(30_000);
    for _ in 0..4 {
        path.on_acknowledged(&acknowledged(1500, view));
    }
    // 3,000,000 / 600,000² · 1500² = 18.75 bytes for a packet.
    assert_eq!(path.window(), 30_075);
}

#[test]
fn windows_move_to_the_best_path() {
    let (large, best) = (member(30_000, 10_000), member(15_000, 90_000));
    // Σ w/rtt = 450,000. Collected: 1,500,000 / 450,000² · 1500² = 16.67, and 1500² / (15,000 · 2)
    // = 75 on top.
    let mut collected = path(15_000);
    collected
        .on_acknowledged(&acknowledged(1500, SiblingPaths::new(&best, [large, best].into_iter())));
    assert_eq!(collected.window(), 15_091);
    // Largest: 33.33 − 1500² / (30,000 · 2) = −4.17 for a packet.
    let mut largest = path(30_000);
    let view = SiblingPaths::new(&large, [large, best].into_iter());
    for _ in 0..6 {
        largest.on_acknowledged(&acknowledged(1500, view));
    }
    assert!((29_973..=29_977).contains(&largest.window()), "{}", largest.window());
}

#[test]
fn windows_that_differ_by_less_than_a_packet_count_as_equal() {
    // B is best; A and B both have the largest window, so nothing has to move.
    let (a, b) = (member(30_000, 10_000), member(28_600, 90_000));
    let view = SiblingPaths::new(&b, [a, b].into_iter());
    assert_eq!((view.standing, view.largest, view.collected), (PathStanding::Largest, 2, 0));
    let smaller = SiblingPath { window: 28_500, ..b };
    assert_eq!(
        SiblingPaths::new(&smaller, [a, smaller].into_iter()).standing,
        PathStanding::Collected
    );
}

#[test]
fn quality_is_the_data_that_arrives_between_losses() {
    let mut path = path(30_000);
    let view = SiblingPaths { paths: 2, ..SiblingPaths::default() };
    path.on_acknowledged(&acknowledged(5_000, view));
    assert_eq!(path.loss_interval(), 5_000);
    path.on_congestion(&event(view));
    path.on_recovered(core::time::Duration::ZERO);
    path.on_acknowledged(&acknowledged(2_000, view));
    assert_eq!(path.loss_interval(), 5_000);
    path.on_acknowledged(&acknowledged(4_000, view));
    assert_eq!(path.loss_interval(), 6_000);
    // A loss after a timeout, with nothing in between, belongs to the same congestion event.
    path.on_timeout(&event(view));
    path.on_congestion(&event(view));
    assert_eq!(path.loss_interval(), 6_000);
    path.on_recovered(core::time::Duration::ZERO);
    path.on_acknowledged(&acknowledged(1_000, view));
    path.on_congestion(&event(view));
    assert_eq!(path.loss_interval(), 1_000);
}

#[test]
fn a_loss_halves_down_to_one_packet_with_several_paths() {
    let several = SiblingPaths { paths: 2, ..SiblingPaths::default() };
    let mut small = path(4_000);
    small.on_congestion(&event(several));
    assert_eq!(small.window(), 2_000);
    small.on_congestion(&event(several));
    assert_eq!(small.window(), 1_500);
    let mut alone = path(4_000);
    alone.on_congestion(&event(SiblingPaths { paths: 1, ..several }));
    assert_eq!(alone.window(), 6_000);
}
