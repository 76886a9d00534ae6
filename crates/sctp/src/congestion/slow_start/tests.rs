use super::*;

/// One round of sixteen acknowledgements with this round trip. Returns the result of the last one.
fn round(slow_start: &mut SlowStart, rtt: u64) -> SlowStartGrowth {
    let mut growth = SlowStartGrowth::By(0);
    for left in (0..16).rev() {
        // The data in flight at the end of the round makes the next one as long.
        let outstanding = if left == 0 { 16 * 1000 } else { left * 1000 };
        growth = slow_start.on_acknowledged(1000, outstanding, Some(Duration::from_millis(rtt)));
        if growth == SlowStartGrowth::Ends {
            break;
        }
    }
    growth
}

fn begun() -> SlowStart {
    let mut slow_start = SlowStart::new();
    // The first acknowledgement starts the first complete round.
    slow_start.on_acknowledged(1000, 16_000, Some(Duration::from_millis(100)));
    slow_start
}

#[test]
fn steady_round_trips_keep_the_pace() {
    let mut slow_start = begun();
    for _ in 0..50 {
        assert_eq!(round(&mut slow_start, 100), SlowStartGrowth::By(1000));
    }
}

#[test]
fn a_growing_queue_ends_slow_start_after_five_conservative_rounds() {
    let mut slow_start = begun();
    round(&mut slow_start, 100);
    assert_eq!(round(&mut slow_start, 111), SlowStartGrowth::By(1000));
    assert_eq!(round(&mut slow_start, 126), SlowStartGrowth::By(250));
    for _ in 0..3 {
        assert_eq!(round(&mut slow_start, 130), SlowStartGrowth::By(250));
    }
    assert_eq!(round(&mut slow_start, 130), SlowStartGrowth::Ends);
}

#[test]
fn slow_start_can_follow_one_that_ended() {
    let mut slow_start = begun();
    let rtts = |first: u64| (0..20).map(move |round| first + 20 * round);
    for first in [100, 300, 500] {
        let mut growth = rtts(first).map(|rtt| round(&mut slow_start, rtt));
        assert!(growth.any(|growth| growth == SlowStartGrowth::Ends));
    }
}

#[test]
fn a_false_alarm_is_undone() {
    let mut slow_start = begun();
    round(&mut slow_start, 100);
    assert_eq!(round(&mut slow_start, 120), SlowStartGrowth::By(250));
    assert_eq!(round(&mut slow_start, 101), SlowStartGrowth::By(1000));
    for _ in 0..20 {
        assert_eq!(round(&mut slow_start, 101), SlowStartGrowth::By(1000));
    }
}

#[test]
fn a_few_samples_prove_nothing() {
    let mut slow_start = begun();
    round(&mut slow_start, 100);
    for _ in 0..SAMPLES - 1 {
        let rtt = Some(Duration::from_millis(500));
        assert_eq!(slow_start.on_acknowledged(10, 1000, rtt), SlowStartGrowth::By(10));
    }
    assert_eq!(slow_start.conservative, None);
}
