use super::*;

const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

fn rto(min: u64, initial: u64, max: u64) -> Rto {
    let config = AssociationConfig {
        rto_initial: ms(initial),
        rto_min: ms(min),
        rto_max: ms(max),
        ..AssociationConfig::default()
    };
    Rto::new(&config)
}

#[test]
fn the_first_sample_sets_three_times_the_round_trip() {
    let mut rto = rto(10, 1000, 60_000);
    assert_eq!((rto.current(), rto.smoothed()), (ms(1000), None));
    rto.on_sample(ms(100));
    assert_eq!(rto.smoothed(), Some(ms(100)));
    assert_eq!(rto.variance(), ms(50));
    assert_eq!(rto.current(), ms(300));
}

#[test]
fn later_samples_weigh_an_eighth_and_a_quarter() {
    let mut rto = rto(10, 1000, 60_000);
    rto.on_sample(ms(100));
    rto.on_sample(ms(180));
    assert_eq!(rto.smoothed(), Some(ms(110)));
    assert_eq!(rto.variance(), Duration::from_micros(57_500));
    assert_eq!(rto.current(), ms(340));
    assert_eq!((rto.least(), rto.latest()), (Some(ms(100)), Some(ms(180))));
}

#[test]
fn the_bounds_hold() {
    let mut rto = rto(1000, 1000, 4000);
    rto.on_sample(ms(1));
    assert_eq!(rto.current(), ms(1000));
    rto.on_sample(ms(60_000));
    assert_eq!(rto.current(), ms(4000));
    rto.back_off();
    assert_eq!(rto.current(), ms(4000));
}

#[test]
fn a_back_off_doubles_and_a_measurement_ends_it() {
    let mut rto = rto(100, 1000, 60_000);
    rto.back_off();
    assert_eq!(rto.current(), ms(2000));
    rto.on_sample(ms(100));
    rto.back_off();
    rto.back_off();
    assert_eq!(rto.current(), ms(1200));
    rto.on_sample(ms(100));
    assert_eq!(rto.current(), Duration::from_micros(250_000));
}

#[test]
fn a_round_trip_of_nothing_is_still_a_round_trip() {
    let mut rto = rto(0, 1000, 60_000);
    for _ in 0..100 {
        rto.on_sample(Duration::ZERO);
    }
    assert!(rto.smoothed().is_some());
    assert!(rto.current() > Duration::ZERO);
}
