use super::*;

const A: Member = Member {
    window: 100_000,
    mtu: 1500,
    slow_start_threshold: usize::MAX,
    smoothed_rtt: 100_000_000,
    loss_interval: 1_000_000,
};

const B: Member = Member {
    window: 50_000,
    mtu: 1500,
    slow_start_threshold: 20_000,
    smoothed_rtt: 50_000_000,
    loss_interval: 1_000_000,
};

#[test]
fn the_sums_match_the_papers() {
    let a = Siblings::of(&A, [A, B].into_iter());
    assert_eq!((a.paths, a.windows), (2, 150_000));
    // A has no threshold, so its window counts.
    assert_eq!((a.own_slow_start_threshold, a.slow_start_thresholds), (100_000, 120_000));
    // 100,000 bytes in 100 ms, 50,000 in 50 ms.
    assert_eq!((a.own_rate, a.rates), (1_000_000, 2_000_000));
    assert_eq!(
        (a.own_window_per_rtt_squared, a.largest_window_per_rtt_squared),
        (10_000_000, 20_000_000)
    );
    let b = Siblings::of(&B, [A, B].into_iter());
    assert_eq!((b.own_slow_start_threshold, b.own_window_per_rtt_squared), (20_000, 20_000_000));
}

#[test]
fn the_best_path_is_the_one_on_which_a_single_flow_would_be_fastest() {
    // The same number of bytes between losses, at half the round trip: B is best, and has the
    // smaller window.
    let a = Siblings::of(&A, [A, B].into_iter());
    assert_eq!((a.standing, a.largest, a.collected), (Standing::Largest, 1, 1));
    assert_eq!(Siblings::of(&B, [A, B].into_iter()).standing, Standing::Collected);
    // With an eighth of the bytes it is not.
    let worse = Member { loss_interval: 125_000, ..B };
    let b = Siblings::of(&worse, [A, worse].into_iter());
    assert_eq!((b.standing, b.largest, b.collected), (Standing::Other, 1, 0));
}

#[test]
fn equal_paths_are_all_largest() {
    let both = Siblings::of(&A, [A, A].into_iter());
    assert_eq!((both.standing, both.largest, both.collected), (Standing::Largest, 2, 0));
}

#[test]
fn shares_are_rounded_up_and_bounded_by_the_whole() {
    let a = Siblings::of(&A, [A, B].into_iter());
    assert_eq!(a.share_by_rate(1501), 751);
    assert_eq!(a.share_by_threshold(1500), 1250);
    let new = Member { smoothed_rtt: 0, ..A };
    let unknown = Siblings::of(&new, [new, B].into_iter());
    assert_eq!(unknown.share_by_rate(1500), 750);
    assert_eq!(Siblings::default().share_by_rate(1500), 1500);
    assert_eq!(Siblings::default().share_by_threshold(1500), 1500);
}
