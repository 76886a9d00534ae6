use super::*;

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

#[test]
fn a_steady_flow_is_measured_at_its_rate() {
    let mut estimator = DeliveryRateEstimator::default();
    // One packet of 1,000 bytes each millisecond, acknowledged 50 ms later.
    let mut last = None;
    for time in 0..200_u64 {
        if time >= 50 {
            let number = PacketNumber(u32::try_from(time - 50).unwrap());
            estimator.on_acknowledged(ms(time), number, 1000);
            last = estimator.sample(Some(ms(50)));
        }
        let outstanding = usize::try_from(time.min(49) * 1000).unwrap();
        estimator.on_sent(ms(time), 1000, outstanding);
    }
    let sample = last.unwrap();
    assert_eq!(sample.rate(), 1_000_000);
    assert!(!sample.too_short && !sample.sent.app_limited);
    assert_eq!(sample.lost, 0);
}

#[test]
fn a_burst_of_acknowledgements_does_not_raise_the_rate() {
    let mut estimator = DeliveryRateEstimator::default();
    for time in 0..10_u64 {
        estimator.on_sent(ms(time * 10), 1000, usize::try_from(time).unwrap() * 1000);
    }
    // All ten are acknowledged at the same moment: sending them took 90 ms, which limits the
    // sample.
    for number in 0..10 {
        estimator.on_acknowledged(ms(120), PacketNumber(number), 1000);
    }
    let sample = estimator.sample(Some(ms(30))).unwrap();
    assert_eq!(sample.bytes, 10_000);
    assert_eq!(sample.interval, 120_000_000);
}

#[test]
fn samples_are_app_limited_until_the_data_is_acknowledged() {
    let mut estimator = DeliveryRateEstimator::default();
    estimator.on_sent(ms(0), 1000, 0);
    estimator.on_app_limited(1000);
    estimator.on_sent(ms(5), 1000, 1000);
    estimator.on_acknowledged(ms(10), PacketNumber(0), 1000);
    assert!(!estimator.sample(None).unwrap().sent.app_limited);
    estimator.on_acknowledged(ms(15), PacketNumber(1), 1000);
    assert!(estimator.sample(None).unwrap().sent.app_limited);
    estimator.on_sent(ms(20), 1000, 0);
    estimator.on_acknowledged(ms(30), PacketNumber(2), 1000);
    assert!(!estimator.sample(None).unwrap().sent.app_limited);
}

#[test]
fn losses_since_a_packet_was_sent_are_counted() {
    let mut estimator = DeliveryRateEstimator::default();
    for _ in 0..3 {
        estimator.on_sent(ms(0), 1000, 0);
    }
    let lost = estimator.on_lost(PacketNumber(0), 1000).unwrap();
    assert_eq!((lost.lost, lost.in_flight), (0, 1000));
    estimator.on_acknowledged(ms(10), PacketNumber(2), 1000);
    assert_eq!(estimator.sample(None).unwrap().lost, 1000);
}

#[test]
fn finished_packet_numbers_give_no_sample() {
    let mut estimator = DeliveryRateEstimator::default();
    let number = estimator.next_number();
    estimator.on_sent(ms(0), 10, 0);
    estimator.on_acknowledged(ms(1), number, 10);
    assert!(estimator.sample(None).is_some());
    estimator.on_acknowledged(ms(2), number, 10);
    assert_eq!(estimator.sample(None), None);
    assert_eq!(estimator.on_lost(PacketNumber(77), 10), None);
    assert_eq!(estimator.next_number(), PacketNumber(1));
}

#[test]
fn the_number_of_tracked_packets_is_bounded() {
    let mut estimator = DeliveryRateEstimator::default();
    for _ in 0..MAX_PACKETS + 10 {
        estimator.on_sent(ms(0), 1, 1);
    }
    assert_eq!(estimator.packets.len(), MAX_PACKETS);
    assert_eq!(estimator.on_lost(PacketNumber(9), 1), None);
    assert!(estimator.on_lost(PacketNumber(10), 1).is_some());
}
