//! Means, variances and order of arrivals.

use proptest::prelude::*;

use super::*;

const SECOND: Duration = Duration::from_secs(1);

fn times(arrivals: ArrivalProcess, extent: LoadExtent, seed: u64) -> Vec<f64> {
    ArrivalSchedule::new(arrivals, extent, seed).map(|at| at.as_secs_f64()).collect()
}

#[test]
fn poisson_gaps_have_the_mean_and_the_deviation_of_an_exponential() {
    let count = 100_000;
    let times = times(ArrivalProcess::poisson(1_000.0), LoadExtent::from_requests(count), 7);
    let gaps: Vec<f64> =
        std::iter::once(times[0]).chain(times.windows(2).map(|pair| pair[1] - pair[0])).collect();
    let mean = gaps.iter().sum::<f64>() / count as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / count as f64;
    // Six standard errors: 1/√n of the mean, √(8/n) of the variance.
    assert!((mean * 1_000.0 - 1.0).abs() < 0.019, "{mean}");
    assert!((variance * 1e6 - 1.0).abs() < 0.054, "{variance}");
}

#[test]
fn poisson_counts_have_equal_mean_and_variance() {
    let times = times(ArrivalProcess::poisson(100.0), LoadExtent::lasting(SECOND * 2_000), 3);
    let mut counts = vec![0.0; 2_000];
    times.iter().for_each(|at| counts[*at as usize] += 1.0);
    let mean = counts.iter().sum::<f64>() / 2_000.0;
    let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 2_000.0;
    assert!((98.6..101.4).contains(&mean), "{mean}");
    assert!((0.8..1.2).contains(&(variance / mean)), "{variance} for {mean}");
}

#[test]
fn constant_arrivals_are_evenly_spaced_and_start_at_zero() {
    let times = times(ArrivalProcess::constant(4.0), LoadExtent::lasting(SECOND), 1);
    assert_eq!(times, [0.0, 0.25, 0.5, 0.75]);
}

#[test]
fn a_ramp_has_the_rates_of_both_ends() {
    let rate = ArrivalRate::Ramp { from: 100.0, to: 300.0, over: SECOND * 10 };
    let arrivals = ArrivalProcess { spacing: ArrivalSpacing::Constant, rate };
    let times = times(arrivals, LoadExtent::lasting(SECOND * 20), 1);
    let within = |from: f64, to: f64| times.iter().filter(|at| (from..to).contains(*at)).count();
    // 100/s rising by 20/s each second: 110 in the first second, 290 in the tenth, 300 after it.
    assert!((109..=111).contains(&within(0.0, 1.0)), "{}", within(0.0, 1.0));
    assert!((289..=291).contains(&within(9.0, 10.0)), "{}", within(9.0, 10.0));
    assert!((299..=301).contains(&within(15.0, 16.0)), "{}", within(15.0, 16.0));
    assert!((4_999..=5_001).contains(&times.len()), "{}", times.len());
}

#[test]
fn a_ramp_down_to_nothing_ends() {
    let rate = ArrivalRate::Ramp { from: 10.0, to: 0.0, over: SECOND * 2 };
    let arrivals = ArrivalProcess { spacing: ArrivalSpacing::Constant, rate };
    assert_eq!(times(arrivals, LoadExtent::from_requests(1_000), 1).len(), 11);
}

#[test]
fn invalid_rates_are_distinguished() {
    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        assert!(!ArrivalRate::Fixed(rate).is_usable(), "{rate}");
    }
    assert!(ArrivalRate::Fixed(0.1).is_usable());
    assert!(!ArrivalRate::Ramp { from: 0.0, to: 0.0, over: SECOND }.is_usable());
    assert!(!ArrivalRate::Ramp { from: 1.0, to: 2.0, over: Duration::ZERO }.is_usable());
}

fn rates() -> impl Strategy<Value = ArrivalRate> {
    let rate = 0.5_f64..5_000.0;
    prop_oneof![
        rate.clone().prop_map(ArrivalRate::Fixed),
        (rate.clone(), rate, 1_u64..100).prop_map(|(from, to, over)| ArrivalRate::Ramp {
            from,
            to,
            over: SECOND * u32::try_from(over).unwrap_or(1),
        }),
    ]
}

proptest! {
    #[test]
    fn arrivals_are_ordered_bounded_and_reproducible(
        rate in rates(),
        poisson in any::<bool>(),
        seed in any::<u64>(),
        max_connections in 1_u64..500,
    ) {
        let spacing = if poisson { ArrivalSpacing::Poisson } else { ArrivalSpacing::Constant };
        let arrivals = ArrivalProcess { spacing, rate };
        let extent = LoadExtent { duration: Some(SECOND * 5), requests: Some(max_connections) };
        let once: Vec<_> = ArrivalSchedule::new(arrivals, extent, seed).collect();
        let repeated: Vec<_> = ArrivalSchedule::new(arrivals, extent, seed).collect();
        prop_assert_eq!(&once, &repeated);
        prop_assert!(once.is_sorted());
        prop_assert!(once.len() as u64 <= max_connections);
        prop_assert!(once.iter().all(|at| *at < SECOND * 5));
    }
}
