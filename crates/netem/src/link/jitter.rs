//! The random delay of a packet: distributions as `tc qdisc … netem` names them, and correlation.

use super::config::JitterDistribution;
use crate::random::RandomStream;
use crate::time::EpochNanos;

/// The shape of the Pareto distribution of `tc` (`netem/pareto.c` of iproute2): its mean is 3/2 and
/// its variance 3/4.
const PARETO_MEAN: f64 = 1.5;
/// What `tc` multiplies the difference from the mean by: the inverse of the variance, not of its
/// root.
const PARETO_SCALE: f64 = 4.0 / 3.0;
/// How far `tc`'s tables reach, in units of the jitter.
const REACH: f64 = 4.0;

/// The random delays of a link.
#[derive(Clone, Debug)]
pub(super) struct LinkJitter {
    amount: EpochNanos,
    distribution: JitterDistribution,
    /// Between consecutive packets, from 0 to 1.
    correlation: f64,
    /// The last number from the normal distribution, of which all others are functions. A process
    /// with memory is formed from these, so that correlation leaves the distribution as it is.
    last: Option<f64>,
}

impl LinkJitter {
    pub(super) const fn new(
        amount: EpochNanos,
        distribution: JitterDistribution,
        correlation: f64,
    ) -> Self {
        Self { amount, distribution, correlation, last: None }
    }

    pub(super) const fn set_amount(&mut self, amount: EpochNanos) {
        self.amount = amount;
    }

    /// Returns when a packet arrives whose delay without jitter ends at `arrival`. It cannot arrive
    /// before `end`, the end of its transmission.
    pub(super) fn arrival(
        &mut self,
        end: EpochNanos,
        arrival: EpochNanos,
        random: &mut RandomStream,
    ) -> EpochNanos {
        if self.amount == 0 {
            return arrival;
        }
        if self.distribution == JitterDistribution::Above && self.correlation <= 0.0 {
            return arrival.saturating_add(random.below(self.amount.saturating_add(1)));
        }
        let deviation = self.deviation(random) * self.amount as f64;
        let size = deviation.abs() as EpochNanos;
        if deviation < 0.0 {
            arrival.saturating_sub(size).max(end)
        } else {
            arrival.saturating_add(size)
        }
    }

    /// Draws the deviation from the delay, in units of the jitter.
    fn deviation(&mut self, random: &mut RandomStream) -> f64 {
        let fresh = random.normal();
        let normal = match self.last {
            Some(last) if self.correlation > 0.0 => {
                let correlation = self.correlation.min(1.0);
                correlation * last + libm::sqrt(1.0 - correlation * correlation) * fresh
            }
            _ => fresh,
        };
        self.last = Some(normal);
        match self.distribution {
            JitterDistribution::Above => 1.0 - above(normal),
            JitterDistribution::Uniform => 1.0 - 2.0 * above(normal),
            JitterDistribution::Normal => normal.clamp(-REACH, REACH),
            JitterDistribution::Pareto => pareto(normal),
            // `netem/paretonormal.c`: a quarter of one and three quarters of the other.
            JitterDistribution::ParetoNormal => {
                0.25 * normal.clamp(-REACH, REACH) + 0.75 * pareto(normal)
            }
        }
    }
}

/// Returns the probability of a larger number than this in the normal distribution.
fn above(normal: f64) -> f64 {
    0.5 * libm::erfc(normal * core::f64::consts::FRAC_1_SQRT_2)
}

/// Returns the deviation from the mean of the Pareto distribution at the quantile of this number.
fn pareto(normal: f64) -> f64 {
    let value = 1.0 / libm::cbrt(above(normal));
    ((value - PARETO_MEAN) * PARETO_SCALE).min(REACH)
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const DELAY: EpochNanos = 1_000_000_000;
    const AMOUNT: EpochNanos = 1_000_000;

    /// Draws deviations in units of the jitter.
    fn deviations(distribution: JitterDistribution, correlation: f64) -> Vec<f64> {
        let (mut jitter, mut random) =
            (LinkJitter::new(AMOUNT, distribution, correlation), RandomStream::new(11, 3));
        let mut draw = || jitter.arrival(0, DELAY, &mut random) as f64 - DELAY as f64;
        (0..200_000).map(|_| draw() / AMOUNT as f64).collect()
    }

    /// Returns mean, standard deviation, skewness and the correlation of neighbours.
    fn moments(values: &[f64]) -> [f64; 4] {
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let power =
            |exponent| values.iter().map(|it| (it - mean).powi(exponent)).sum::<f64>() / count;
        let variance = power(2);
        let together: f64 = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean)).sum();
        [mean, variance.sqrt(), power(3) / variance.powf(1.5), together / count / variance]
    }

    /// Mean, deviation and skewness: those of the exact distributions for the first three, and of
    /// the tables of iproute2, which end at four times the jitter, for the others.
    const KNOWN: [(JitterDistribution, [f64; 3]); 5] = [
        (JitterDistribution::Above, [0.5, 0.2887, 0.0]),
        (JitterDistribution::Uniform, [0.0, 0.5774, 0.0]),
        (JitterDistribution::Normal, [0.0, 1.0, 0.0]),
        (JitterDistribution::Pareto, [-0.0329, 0.8209, 2.673]),
        (JitterDistribution::ParetoNormal, [-0.0247, 0.8349, 1.940]),
    ];

    #[test]
    fn moments_are_those_of_the_distribution_with_and_without_correlation() {
        for (distribution, [mean, deviation, skewness]) in KNOWN {
            // Correlated numbers count as fewer.
            for (correlation, tolerance) in [(0.0, 0.01), (0.25, 0.015), (0.75, 0.03)] {
                let found = moments(&deviations(distribution, correlation));
                let text = format!("{distribution:?} {correlation}: {found:?}");
                assert!((found[0] - mean).abs() < tolerance, "{text}");
                assert!((found[1] - deviation).abs() < tolerance, "{text}");
                assert!((found[2] - skewness).abs() < 8.0 * tolerance, "{text}");
                // Exact for the normal distribution; slightly less for its functions.
                assert!((found[3] - correlation).abs() < 0.12, "{text}");
                let is_exact = distribution == JitterDistribution::Normal;
                assert!(!is_exact || (found[3] - correlation).abs() < tolerance, "{text}");
            }
        }
    }

    #[test]
    fn no_packet_arrives_before_it_has_been_sent() {
        let mut random = RandomStream::new(5, 3);
        for (distribution, _) in KNOWN {
            let mut jitter = LinkJitter::new(50 * AMOUNT, distribution, 0.5);
            let arrivals = (0..1000).map(|_| jitter.arrival(DELAY, DELAY + AMOUNT, &mut random));
            assert!(arrivals.into_iter().all(|at| at >= DELAY), "{distribution:?}");
        }
    }
}
