use super::*;
use crate::congestion::SentState;

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn delivery(rate: u64, app_limited: bool) -> DeliveryRate {
    DeliveryRate {
        bytes: rate,
        interval: 1_000_000_000,
        total_delivered: 0,
        lost: 0,
        sent: SentState {
            sent: 0,
            first_sent: 0,
            delivered_at: 0,
            delivered: 0,
            lost: 0,
            in_flight: 0,
            app_limited,
        },
        too_short: false,
    }
}

fn best(estimates: &PathEstimates) -> u64 {
    estimates.rates.into_iter().max().unwrap()
}

#[test]
fn a_queue_does_not_change_the_minimum_rtt() {
    let mut minimum = MinTracker::default();
    minimum.on_sample(ms(20), true);
    for _ in 0..1000 {
        minimum.on_sample(ms(140), false);
    }
    assert_eq!(minimum.get(), Some(ms(20)));
    minimum.on_sample(ms(18), false);
    assert_eq!(minimum.get(), Some(ms(18)));
}

#[test]
fn a_longer_route_is_accepted_after_eight_round_trips_without_a_queue() {
    let mut minimum = MinTracker::default();
    minimum.on_sample(ms(20), true);
    for _ in 0..7 {
        minimum.on_sample(ms(60), true);
        minimum.on_sample(ms(200), false);
    }
    assert_eq!(minimum.get(), Some(ms(20)));
    minimum.on_sample(ms(55), true);
    assert_eq!(minimum.get(), Some(ms(55)));
    // A single short round trip among them, due to jitter.
    for _ in 0..7 {
        minimum.on_sample(ms(80), true);
    }
    minimum.on_sample(ms(57), true);
    minimum.on_sample(ms(80), true);
    assert_eq!(minimum.get(), Some(ms(55)));
}

#[test]
fn the_fastest_recent_delivery_counts() {
    let mut estimates = PathEstimates::default();
    estimates.min_rtt.on_sample(ms(100), true);
    estimates.on_delivery(ms(1_000), &delivery(500, false), None);
    estimates.on_delivery(ms(1_100), &delivery(900, false), None);
    estimates.on_delivery(ms(1_200), &delivery(400, false), None);
    assert_eq!(best(&estimates), 900);
    estimates.on_delivery(ms(1_600), &delivery(400, false), None);
    assert_eq!(best(&estimates), 900);
    estimates.on_delivery(ms(2_200), &delivery(450, false), None);
    assert_eq!(best(&estimates), 450);
}

#[test]
fn an_idle_application_does_not_make_a_path_slow() {
    let mut estimates = PathEstimates::default();
    estimates.on_delivery(ms(1_000), &delivery(900, false), None);
    for second in 2..60 {
        estimates.on_delivery(ms(second * 1_000), &delivery(10, true), None);
    }
    assert_eq!(best(&estimates), 900);
    let too_short = DeliveryRate { too_short: true, ..delivery(9_000, false) };
    estimates.on_delivery(ms(60_000), &too_short, None);
    assert_eq!(best(&estimates), 900);
}

#[test]
fn a_path_that_queues_what_should_fill_it_is_slower() {
    let mut estimates = PathEstimates::default();
    estimates.min_rtt.on_sample(ms(100), true);
    estimates.on_delivery(ms(1_000), &delivery(900_000, false), None);
    let half = |in_flight| {
        let mut half = delivery(450_000, true);
        half.sent.in_flight = in_flight;
        half
    };
    // 100 ms of its load, delivered in 200 ms.
    for tenth in 20..40 {
        estimates.on_delivery(ms(tenth * 100), &half(90_000), Some(ms(200)));
    }
    assert_eq!(best(&estimates), 450_000);
    // A small amount of data that took long is no evidence.
    estimates.on_delivery(ms(5_000), &delivery(900_000, false), None);
    for tenth in 60..80 {
        estimates.on_delivery(ms(tenth * 100), &half(9_000), Some(ms(200)));
    }
    assert_eq!(best(&estimates), 900_000);
}
