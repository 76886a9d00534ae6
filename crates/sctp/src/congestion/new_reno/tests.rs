use core::time::Duration;

use super::*;
use crate::config::{IdleWindow, InitialWindow};
use crate::congestion::WindowRules;
use crate::congestion::{CongestionControl, CongestionEvent, CongestionKind, SiblingPaths};

const MTU: usize = 1500;

fn reno(window: usize, threshold: usize) -> NewReno {
    let mut reno = NewReno::new(MTU, WindowRules::default());
    (reno.base.window, reno.base.threshold) = (window, threshold);
    reno
}

fn acknowledged(bytes: usize, window_was_full: bool, outstanding: usize) -> AcknowledgedData {
    AcknowledgedData {
        now: Duration::ZERO,
        bytes,
        cumulative_advanced: true,
        window_was_full,
        rtt: None,
        smoothed_rtt: None,
        outstanding,
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

//= rfc9260 §7.2.1
//# initial window min(4 MTU, max(2 MTU, 4,404))
#[test]
fn the_initial_window_follows_the_standard() {
    assert_eq!(NewReno::new(1500, WindowRules::default()).window(), 4404);
    assert_eq!(NewReno::new(1000, WindowRules::default()).window(), 4000);
    assert_eq!(NewReno::new(9000, WindowRules::default()).window(), 18_000);
}

//= rfc9260 §7.2.1
//# slow start: one MTU per SACK if the window was in use
#[test]
fn slow_start_grows_by_one_mtu_per_sack_while_the_window_is_full() {
    let mut reno = NewReno::new(MTU, WindowRules::default());
    reno.on_acknowledged(&acknowledged(2904, true, 1500));
    assert_eq!(reno.window(), 4404 + 1500);
    reno.on_acknowledged(&acknowledged(100, true, 1500));
    assert_eq!(reno.window(), 4404 + 1600);
    reno.on_acknowledged(&acknowledged(1452, false, 1500));
    assert_eq!(reno.window(), 4404 + 1600);
    let gap = AcknowledgedData { cumulative_advanced: false, ..acknowledged(1452, true, 1500) };
    reno.on_acknowledged(&gap);
    assert_eq!(reno.window(), 4404 + 1600);
}

//= rfc9260 §7.2.2
//# congestion avoidance: one MTU per window
#[test]
fn congestion_avoidance_grows_by_one_mtu_per_window() {
    let mut reno = reno(30_000, 20_000);
    for _ in 0..19 {
        reno.on_acknowledged(&acknowledged(1500, true, 28_500));
        assert_eq!(reno.window(), 30_000);
    }
    reno.on_acknowledged(&acknowledged(1500, true, 28_500));
    assert_eq!(reno.window(), 31_500);
}

#[test]
fn an_unused_window_saves_at_most_one_step() {
    let mut reno = reno(30_000, 20_000);
    for _ in 0..100 {
        reno.on_acknowledged(&acknowledged(1500, false, 3_000));
    }
    assert_eq!((reno.window(), reno.base.partial_bytes_acked), (30_000, 30_000));
    reno.on_acknowledged(&acknowledged(1500, true, 30_000));
    assert_eq!((reno.window(), reno.base.partial_bytes_acked), (31_500, 1500));
    reno.on_acknowledged(&acknowledged(1500, true, 0));
    assert_eq!(reno.base.partial_bytes_acked, 0);
}

//= rfc9260 §7.2
//# MUST be no more aggressive than NewReno; CUBIC (RFC 9438) by default, BBR and coupled ones on
//# request
//= otherwise: NewReno if it is selected
#[test]
fn a_loss_halves_the_window_which_does_not_grow_until_recovery_ends() {
    let mut reno = reno(60_000, usize::MAX);
    reno.on_congestion(&event());
    assert_eq!((reno.window(), reno.slow_start_threshold()), (30_000, 30_000));
    reno.on_acknowledged(&acknowledged(1500, true, 30_000));
    assert_eq!(reno.window(), 30_000);
    reno.on_recovered(Duration::ZERO);
    reno.on_acknowledged(&acknowledged(1500, true, 30_000));
    assert_eq!(reno.window(), 31_500);
}

//= rfc9260 §7.2.3
//# on loss max(cwnd / 2, 4 MTU), after T3 one packet
#[test]
fn a_loss_leaves_at_least_four_packets_and_a_timeout_one() {
    let mut reno = reno(7_000, usize::MAX);
    reno.on_congestion(&event());
    assert_eq!(reno.window(), 6_000);
    reno.on_timeout(&event());
    assert_eq!((reno.window(), reno.slow_start_threshold()), (1_500, 6_000));
}

#[test]
fn a_spurious_loss_is_undone() {
    let mut reno = reno(60_000, usize::MAX);
    reno.on_timeout(&event());
    reno.on_spurious(Duration::ZERO);
    assert_eq!((reno.window(), reno.slow_start_threshold()), (60_000, usize::MAX));
}

#[test]
fn an_idle_path_loses_half_of_its_window_each_time_and_keeps_four_packets() {
    let mut reno = reno(40_000, usize::MAX);
    reno.on_idle(Duration::ZERO);
    assert_eq!((reno.window(), reno.slow_start_threshold()), (20_000, 40_000));
    for _ in 0..5 {
        reno.on_idle(Duration::ZERO);
    }
    assert_eq!((reno.window(), reno.slow_start_threshold()), (6_000, 40_000));
    let mut small = NewReno::new(MTU, WindowRules::default());
    small.on_idle(Duration::ZERO);
    assert_eq!(small.window(), 4404);
}

#[test]
fn the_older_rules_start_smaller_and_restart_after_a_pause() {
    let rules = WindowRules { initial: InitialWindow::Rfc4960, idle: IdleWindow::Initial };
    let mut reno = NewReno::new(MTU, rules);
    assert_eq!(reno.window(), 4380);
    reno.base.begin_with_threshold(65_536);
    reno.base.window = 40_000;
    reno.on_idle(Duration::ZERO);
    assert_eq!((reno.window(), reno.slow_start_threshold()), (4380, 65_536));
    reno.on_timeout(&event());
    reno.on_idle(Duration::ZERO);
    reno.base.begin_with_threshold(65_536);
    assert_eq!((reno.window(), reno.slow_start_threshold()), (1500, 6000));
}
