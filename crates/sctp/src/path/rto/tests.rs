use super::*;

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn rto(min: u64, initial: u64, max: u64) -> RetransmissionTimeout {
    let config = AssociationConfig {
        rto_initial: ms(initial),
        rto_min: ms(min),
        rto_max: ms(max),
        ..AssociationConfig::default()
    };
    RetransmissionTimeout::new(&config)
}

#[test]
fn the_first_sample_sets_three_times_the_round_trip() {
    let mut rto = rto(10, 1000, 60_000);
    assert_eq!((rto.current(), rto.smoothed()), (ms(1000), None));
    rto.on_sample(ms(100000), ms(100));
    assert_eq!(rto.smoothed(), Some(ms(100)));
    assert_eq!(rto.variance(), ms(50));
    assert_eq!(rto.current(), ms(300));
}

//= rfc9260 §6.3.1 C1 to C7
//# RTO from SRTT and RTTVAR
#[test]
fn later_samples_weigh_an_eighth_and_a_quarter() {
    let mut rto = rto(10, 1000, 60_000);
    rto.on_sample(ms(200000), ms(100));
    rto.on_sample(ms(300000), ms(180));
    assert_eq!(rto.smoothed(), Some(ms(110)));
    assert_eq!(rto.variance(), Duration::from_micros(57_500));
    assert_eq!(rto.current(), ms(340));
    assert_eq!((rto.min_rtt(), rto.latest()), (Some(ms(100)), Some(ms(180))));
}

#[test]
fn the_rto_is_bounded() {
    let mut rto = rto(1000, 1000, 4000);
    rto.on_sample(ms(400000), ms(1));
    assert_eq!(rto.current(), ms(1000));
    rto.on_sample(ms(500000), ms(60_000));
    assert_eq!(rto.current(), ms(4000));
    rto.back_off();
    assert_eq!(rto.current(), ms(4000));
}

#[test]
fn a_back_off_doubles_and_a_measurement_ends_it() {
    let mut rto = rto(100, 1000, 60_000);
    rto.back_off();
    assert_eq!(rto.current(), ms(2000));
    rto.on_sample(ms(600000), ms(100));
    rto.back_off();
    rto.back_off();
    assert_eq!(rto.current(), ms(1200));
    rto.on_sample(ms(700000), ms(100));
    assert_eq!(rto.current(), Duration::from_micros(250_000));
}

#[test]
fn an_rtt_of_zero_is_a_valid_sample() {
    let mut rto = rto(0, 1000, 60_000);
    for _ in 0..100 {
        rto.on_sample(ms(800000), Duration::ZERO);
    }
    assert!(rto.smoothed().is_some());
    assert!(rto.current() > Duration::ZERO);
}

#[test]
fn one_sample_is_used_per_round_trip() {
    let mut rto = rto(10, 1000, 60_000);
    rto.on_sample(ms(1_000), ms(100));
    // Sent before that round trip ended.
    rto.on_sample(ms(1_050), ms(300));
    rto.on_sample(ms(1_099), ms(100));
    assert_eq!((rto.smoothed(), rto.latest()), (Some(ms(100)), Some(ms(100))));
    rto.on_sample(ms(1_180), ms(180));
    assert_eq!(rto.smoothed(), Some(ms(110)));
    rto.on_sample(ms(1_190), ms(90));
    assert_eq!((rto.smoothed(), rto.min_rtt()), (Some(ms(110)), Some(ms(90))));
}
