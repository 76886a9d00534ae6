use super::*;

#[test]
fn the_first_pacing_rate_is_the_initial_window_in_a_millisecond_by_the_gain() {
    let bbr = Bbr::new(1500);
    assert_eq!(bbr.window(), 4404);
    assert_eq!(bbr.pacing_rate, 4_404_000 * 277 / 100);
    assert_eq!(bbr.pacing_rate(), None);
}

#[test]
fn a_mark_slows_down_a_cruising_flow() {
    let mut bbr = Bbr::new(1500);
    bbr.state = BbrState::ProbeBandwidthCruise;
    bbr.full_bandwidth_reached = true;
    bbr.window = 100_000;
    bbr.max_bandwidth.update(1_000_000);
    let siblings = crate::congestion::SiblingPaths::default();
    let (now, kind) = (Duration::ZERO, CongestionKind::Ecn);
    bbr.on_congestion(&CongestionEvent { now, kind, outstanding: 90_000, siblings });
    bbr.loss_round_start = true;
    let sample = RateSample {
        now: 0,
        newly_acked: 1448,
        in_flight: 90_000,
        is_window_limited: true,
        rtt: None,
        delivery: None,
        rate: 0,
        app_limited: false,
    };
    bbr.update_congestion_signals(&sample);
    assert_eq!((bbr.bandwidth_short_term, bbr.inflight_short_term), (700_000, 70_000));
    // Once per round.
    bbr.update_congestion_signals(&sample);
    assert_eq!(bbr.bandwidth_short_term, 700_000);
}

#[test]
fn two_losses_in_a_small_flight_are_insignificant() {
    let bbr = Bbr::new(1500);
    assert!(!bbr.is_inflight_too_high(3_000, 30_000));
    assert!(bbr.is_inflight_too_high(3_001, 30_000));
    assert!(!bbr.is_inflight_too_high(20_000, 1_000_000));
    assert!(bbr.is_inflight_too_high(20_001, 1_000_000));
}
