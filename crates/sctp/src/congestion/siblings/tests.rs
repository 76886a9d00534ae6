use super::*;

const A: SiblingPath = SiblingPath {
    window: 100_000,
    mtu: 1500,
    slow_start_threshold: usize::MAX,
    smoothed_rtt: 100_000_000,
    loss_interval: 1_000_000,
};

const B: SiblingPath = SiblingPath {
    window: 50_000,
    mtu: 1500,
    slow_start_threshold: 20_000,
    smoothed_rtt: 50_000_000,
    loss_interval: 1_000_000,
};

#[test]
fn the_sums_match_the_papers() {
    let a = SiblingPaths::new(&A, [A, B].into_iter());
    assert_eq!((a.paths, a.windows), (2, 150_000));
    // A has no threshold, so its window counts.
    assert_eq!((a.own_slow_start_threshold, a.slow_start_thresholds), (100_000, 120_000));
    // 100,000 bytes in 100 ms, 50,000 in 50 ms.
    assert_eq!((a.own_rate, a.rates), (1_000_000, 2_000_000));
    assert_eq!(
        (a.own_window_per_rtt_squared, a.largest_window_per_rtt_squared),
        (10_000_000, 20_000_000)
    );
    let b = SiblingPaths::new(&B, [A, B].into_iter());
    assert_eq!((b.own_slow_start_threshold, b.own_window_per_rtt_squared), (20_000, 20_000_000));
}

#[test]
fn the_best_path_is_the_one_on_which_a_single_flow_would_be_fastest() {
    // The same number of bytes between losses, at half the round trip: B is best, and has the
    // smaller window.
    let a = SiblingPaths::new(&A, [A, B].into_iter());
    assert_eq!((a.standing, a.largest, a.collected), (PathStanding::Largest, 1, 1));
    assert_eq!(SiblingPaths::new(&B, [A, B].into_iter()).standing, PathStanding::Collected);
    // With an eighth of the bytes it is not.
    let worse = SiblingPath { loss_interval: 125_000, ..B };
    let b = SiblingPaths::new(&worse, [A, worse].into_iter());
    assert_eq!((b.standing, b.largest, b.collected), (PathStanding::Other, 1, 0));
}

#[test]
fn equal_paths_are_all_largest() {
    let both = SiblingPaths::new(&A, [A, A].into_iter());
    assert_eq!((both.standing, both.largest, both.collected), (PathStanding::Largest, 2, 0));
}

#[test]
fn shares_are_rounded_up_and_bounded_by_the_whole() {
    let a = SiblingPaths::new(&A, [A, B].into_iter());
    assert_eq!(a.share_by_rate(1501), 751);
    assert_eq!(a.share_by_threshold(1500), 1250);
    let new = SiblingPath { smoothed_rtt: 0, ..A };
    let unknown = SiblingPaths::new(&new, [new, B].into_iter());
    assert_eq!(unknown.share_by_rate(1500), 750);
    assert_eq!(SiblingPaths::default().share_by_rate(1500), 1500);
    assert_eq!(SiblingPaths::default().share_by_threshold(1500), 1500);
}
