use super::*;
use crate::congestion::WindowRules;
use crate::congestion::tests::coupled::{MTU, acknowledged, event, siblings};
use crate::congestion::{CongestionControl, SiblingPath, SiblingPaths};

fn path(window: usize) -> Lia {
    let mut path = Lia::new(MTU, WindowRules::default());
    (path.base.window, path.base.threshold) = (window, window / 2);
    path
}

fn member(window: usize, rtt_ms: u64) -> SiblingPath {
    let (slow_start_threshold, smoothed_rtt) = (window / 2, rtt_ms * 1_000_000);
    SiblingPath { window, mtu: MTU, slow_start_threshold, smoothed_rtt, loss_interval: 0 }
}

#[test]
fn each_of_two_equal_paths_grows_at_a_quarter_of_the_pace() {
    let one = member(30_000, 100);
    let view = SiblingPaths::new(&one, [one, one].into_iter());
    // alpha is ½: ½ · 1500 · 1500 / 60,000 = 18.75 bytes for a packet; on its own it would be 75.
    let mut path = path(30_000);
    path.on_acknowledged(&acknowledged(1500, view));
    assert_eq!(path.window(), 30_018);
    for _ in 0..3 {
        path.on_acknowledged(&acknowledged(1500, view));
    }
    assert_eq!(path.window(), 30_075);
}

#[test]
fn growth_follows_the_best_path_and_never_exceeds_that_of_a_single_path() {
    // Σ w/rtt = 300,000 + 300,000, max w/rtt² = 30,000,000 (10 ms):
    // 1500² · 30,000,000 / 600,000² = 187.5 on both.
    let (fast, slow) = (member(3_000, 10), member(30_000, 100));
    let mut path_fast = path(3_000);
    path_fast
        .on_acknowledged(&acknowledged(1500, SiblingPaths::new(&fast, [fast, slow].into_iter())));
    assert_eq!(path_fast.window(), 3_187);
    // On its own the slow path would grow by 75.
    let mut path_slow = path(30_000);
    path_slow
        .on_acknowledged(&acknowledged(1500, SiblingPaths::new(&slow, [fast, slow].into_iter())));
    assert_eq!(path_slow.window(), 30_075);
}

#[test]
fn a_single_path_grows_by_a_packet_per_window_and_halves() {
    let one = member(30_000, 100);
    let alone = SiblingPaths::new(&one, [one].into_iter());
    let mut path = path(30_000);
    path.on_acknowledged(&acknowledged(30_000, alone));
    assert_eq!(path.window(), 31_500);
    let idle = AcknowledgedData { window_was_full: false, ..acknowledged(30_000, alone) };
    path.on_acknowledged(&idle);
    assert_eq!(path.window(), 31_500);
    path.on_congestion(&event(siblings()));
    assert_eq!(path.window(), 15_750);
}
