use super::*;
use crate::congestion::{CongestionKind, SiblingPaths};

const MTU: usize = 1500;

fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn cubic(window: usize, threshold: usize) -> Cubic {
    let mut cubic = Cubic::new(MTU, WindowRules::default());
    (cubic.base.window, cubic.base.threshold) = (window, threshold);
    cubic
}

fn acknowledged(now: Duration, rtt: Duration, window_was_full: bool) -> AcknowledgedData {
    AcknowledgedData {
        now,
        bytes: MTU,
        cumulative_advanced: true,
        window_was_full,
        rtt: Some(rtt),
        smoothed_rtt: Some(rtt),
        outstanding: 1 << 30,
        delivery: None,
        siblings: SiblingPaths::default(),
    }
}

fn event() -> CongestionEvent {
    CongestionEvent {
        now: Duration::ZERO,
        kind: CongestionKind::Loss,
        outstanding: 0,
        siblings: SiblingPaths::default(),
    }
}

fn lose(cubic: &mut Cubic, now: Duration) {
    cubic.on_congestion(&event());
    cubic.on_recovered(now);
}

/// The average window, in packets, if every `every`th packet is lost: the model behind the tables
/// of RFC 9438 §5.1.
fn average_window(rtt: Duration, every: u64) -> u64 {
    let mut cubic = cubic(100 * MTU, 100 * MTU);
    let (mut now, mut packets) = (Duration::ZERO, 0_u64);
    let (mut sum, mut rounds) = (0_u64, 0_u64);
    while packets < 20 * every {
        let round = (cubic.window() / MTU) as u64;
        for packet in 0..round {
            let offset = rtt * u32::try_from(packet).unwrap() / u32::try_from(round).unwrap();
            cubic.on_acknowledged(&acknowledged(now + offset, rtt, true));
            packets += 1;
            if packets.is_multiple_of(every) {
                lose(&mut cubic, now + offset);
            }
        }
        now += rtt;
        if packets > 10 * every {
            sum += round;
            rounds += 1;
        }
    }
    sum / rounds
}

#[test]
fn average_windows_match_the_rfc() {
    // RFC 9438, tables 1 and 2, columns for C = 0.4.
    for (rtt, every, expected) in
        [(100, 100, 12), (100, 1_000, 38), (100, 10_000, 187), (10, 1_000, 38), (10, 10_000, 120)]
    {
        let average = average_window(ms(rtt), every);
        let (low, high) = (expected * 88 / 100, expected * 112 / 100);
        assert!((low..=high).contains(&average), "{rtt} ms, 1/{every}: {average}");
    }
}

#[test]
fn a_loss_reduces_the_window_by_three_tenths() {
    let mut cubic = cubic(100 * MTU, usize::MAX);
    lose(&mut cubic, ms(0));
    assert_eq!((cubic.window(), cubic.slow_start_threshold()), (70 * MTU, 70 * MTU));
    assert_eq!(cubic.w_max, 100 * MTU);
    for _ in 0..20 {
        lose(&mut cubic, ms(0));
    }
    assert_eq!(cubic.window(), 4 * MTU);
}

#[test]
fn a_second_loss_below_the_maximum_leaves_room_for_others() {
    let mut cubic = cubic(100 * MTU, usize::MAX);
    lose(&mut cubic, ms(0));
    cubic.base.window = 80 * MTU;
    lose(&mut cubic, ms(0));
    assert_eq!(cubic.w_max, 68 * MTU);
}

#[test]
fn the_window_is_back_at_its_maximum_after_k_and_flat_there() {
    let rtt = ms(500);
    let mut cubic = cubic(1000 * MTU, usize::MAX);
    lose(&mut cubic, ms(0));
    // The cube root of 300 / 0.4 is 9.086 s.
    let (mut now, mut at_half, mut at_k, mut later) = (ms(0), 0, 0, 0);
    while now < ms(14_000) {
        let round = cubic.window() / MTU;
        for packet in 0..round {
            let offset = rtt * u32::try_from(packet).unwrap() / u32::try_from(round).unwrap();
            cubic.on_acknowledged(&acknowledged(now + offset, rtt, true));
        }
        now += rtt;
        match now.as_millis() {
            4_500 => at_half = cubic.window() / MTU,
            9_000 => at_k = cubic.window() / MTU,
            13_500 => later = cubic.window() / MTU,
            _ => {}
        }
    }
    assert_eq!(cubic.epoch.unwrap().k, 9_085);
    // Half-way to K, seven eighths of the reduction are recovered; at K, all; then the window grows
    // again.
    assert!((950..=970).contains(&at_half), "{at_half}");
    assert!((990..=1005).contains(&at_k), "{at_k}");
    assert!((1025..=1060).contains(&later), "{later}");
}

#[test]
fn growth_is_at_most_half_a_window_per_round_trip() {
    let mut cubic = cubic(10 * MTU, 10 * MTU);
    cubic.on_acknowledged(&acknowledged(ms(0), ms(100), true));
    for round in 1..30 {
        let before = cubic.window();
        for _ in 0..before / MTU {
            cubic.on_acknowledged(&acknowledged(ms(round * 1000), ms(100), true));
        }
        assert!(cubic.window() <= before + before * 13 / 20, "{before} {}", cubic.window());
    }
}

#[test]
fn time_without_a_full_window_does_not_count() {
    let mut cubic = cubic(70 * MTU, 70 * MTU);
    cubic.w_max = 100 * MTU;
    cubic.on_acknowledged(&acknowledged(ms(0), ms(100), true));
    for tick in 1..1000 {
        cubic.on_acknowledged(&acknowledged(ms(tick * 100), ms(100), false));
    }
    let before = cubic.window();
    cubic.on_acknowledged(&acknowledged(ms(100_000), ms(100), true));
    assert!(cubic.window() - before < MTU);
}

#[test]
fn a_timeout_restarts_with_one_packet_and_a_flat_maximum() {
    let mut cubic = cubic(100 * MTU, usize::MAX);
    cubic.on_timeout(&event());
    assert_eq!((cubic.window(), cubic.slow_start_threshold()), (MTU, 70 * MTU));
    for _ in 0..69 {
        cubic.on_acknowledged(&acknowledged(ms(0), ms(100), true));
    }
    assert_eq!(cubic.window(), 70 * MTU);
    cubic.on_acknowledged(&acknowledged(ms(0), ms(100), true));
    let epoch = cubic.epoch.unwrap();
    assert_eq!((epoch.k, epoch.origin), (0, 70 * MTU));
}

#[test]
fn a_spurious_timeout_is_undone() {
    let mut cubic = Cubic { w_max: 120 * MTU, ..cubic(100 * MTU, usize::MAX) };
    cubic.on_timeout(&event());
    cubic.on_spurious(ms(0));
    assert_eq!((cubic.window(), cubic.slow_start_threshold()), (100 * MTU, usize::MAX));
    assert_eq!(cubic.w_max, 120 * MTU);
}

#[test]
fn marks_do_not_start_a_recovery() {
    let mut cubic = cubic(100 * MTU, usize::MAX);
    cubic.on_congestion(&CongestionEvent { kind: CongestionKind::Ecn, ..event() });
    cubic.on_acknowledged(&acknowledged(ms(1000), ms(100), true));
    assert!(cubic.epoch.is_some());
}

#[test]
fn slow_start_doubles_and_is_paced_twice_as_fast() {
    let mut cubic = Cubic::new(MTU, WindowRules::default());
    cubic.on_acknowledged(&acknowledged(ms(0), ms(100), true));
    assert_eq!(cubic.window(), 4404 + MTU);
    assert_eq!(cubic.pacing_rate(), Some(2 * (4404 + 1500) * 10));
    cubic.base.threshold = 4404;
    assert_eq!(cubic.pacing_rate(), Some((4404 + 1500) * 10 * 5 / 4));
}

#[test]
fn cube_roots_are_whole() {
    for root in [0_u64, 1, 2, 3, 10, 999, 12_345, 2_642_244] {
        let cube = u128::from(root) * u128::from(root) * u128::from(root);
        assert_eq!(cube_root(cube), root);
        if root > 1 {
            assert_eq!(cube_root(cube - 1), root - 1);
            assert_eq!(cube_root(cube + 1), root);
        }
    }
    assert_eq!(cube_root(u128::MAX), 2_642_245);
}
