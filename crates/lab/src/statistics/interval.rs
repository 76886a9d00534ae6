//! 95 % confidence intervals, each by the method that suits its quantity.
//!
//! | quantity | method |
//! | --- | --- |
//! | a mean over runs of a simulation | Student's t |
//! | a share of trials, such as requests over HTTP/3 | Wilson's score (Wilson 1927) |
//! | the maximum of a series of trials | order statistics (Clopper and Pearson 1934) |
//! | anything else over trials: means, percentiles, ratios | bootstrap percentiles (Efron 1979) |
//!
//! An interval contains the value that it belongs to. A maximum or minimum of all trials has none:
//! resampled trials never exceed it.

use std::fmt;

use eyas_netem::random::derive;
use serde::{Deserialize, Deserializer, Serialize};
use statrs::distribution::{Beta, Binomial, ContinuousCDF, DiscreteCDF, StudentsT};

use super::percentile;

/// The confidence level of an interval.
const CONFIDENCE: f64 = 0.95;
/// The quantile of the normal distribution for a 95 % interval.
const NORMAL: f64 = 1.959_963_984_540_054;
/// The number of bootstrap samples.
pub(crate) const DRAWS: u64 = 400;

/// A 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ConfidenceInterval {
    /// The lower end.
    pub low: f64,
    /// The upper end; infinite, which is null in JSON, if too few trials bound it.
    #[serde(deserialize_with = "infinite_if_null")]
    pub high: f64,
    /// The method by which it was computed.
    pub method: IntervalMethod,
}

/// The method by which an interval was computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum IntervalMethod {
    /// Student's t, over the runs.
    StudentT,
    /// Wilson's score interval of a share of trials.
    Wilson,
    /// Percentiles of the values of bootstrap samples: the trials are resampled with replacement.
    /// Shares in an expression are drawn from their Jeffreys posterior, so that a share of 0 or 100
    /// % does not count as certain.
    Bootstrap,
    /// Order statistics of the trials that enclose a quantile.
    OrderStatistics,
}

impl IntervalMethod {
    /// Returns a description for readers of a report.
    #[must_use]
    pub const fn describe(self) -> &'static str {
        match self {
            Self::StudentT => "Student’s t over the runs",
            Self::Wilson => "Wilson’s score for shares of trials",
            Self::Bootstrap => "bootstrap percentiles over the trials",
            Self::OrderStatistics => "order statistics for maxima of series of trials",
        }
    }
}

impl fmt::Display for IntervalMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::StudentT => "student-t",
            Self::Wilson => "wilson",
            Self::Bootstrap => "bootstrap",
            Self::OrderStatistics => "order-statistics",
        })
    }
}

impl ConfidenceInterval {
    /// Returns the interval of the mean of these samples, one per run; `None` with fewer than two.
    #[must_use]
    pub fn student_t(samples: &[f64]) -> Option<Self> {
        if samples.len() < 2 {
            return None;
        }
        let count = samples.len() as f64;
        let mean = samples.iter().sum::<f64>() / count;
        let squares: f64 = samples.iter().map(|sample| (sample - mean).powi(2)).sum();
        let deviation = (squares / (count - 1.0)).sqrt();
        let half = t_quantile(count - 1.0) * deviation / count.sqrt();
        Some(Self { low: mean - half, high: mean + half, method: IntervalMethod::StudentT })
    }

    /// Returns the interval of the percentage of trials that are not 0; `None` without trials.
    #[must_use]
    pub fn wilson(trials: &[f64]) -> Option<Self> {
        if trials.is_empty() {
            return None;
        }
        let count = trials.len() as f64;
        let share = successes(trials) / count;
        let square = NORMAL * NORMAL;
        let middle = (share + square / (2.0 * count)) / (1.0 + square / count);
        let variance = share * (1.0 - share) / count + square / (4.0 * count * count);
        let half = NORMAL * variance.sqrt() / (1.0 + square / count);
        // At the ends the formula yields 0 and 1 except for rounding errors, which must not cause a
        // claim to be refused.
        let low = if share == 0.0 { 0.0 } else { middle - half };
        let high = if share == 1.0 { 1.0 } else { middle + half };
        Some(Self { low: 100.0 * low, high: 100.0 * high, method: IntervalMethod::Wilson })
    }

    /// Returns the interval of a quantity with this value from its values for the bootstrap samples;
    /// `None` without any.
    #[must_use]
    pub fn bootstrap(value: f64, mut replicates: Vec<f64>) -> Option<Self> {
        if replicates.is_empty() || replicates.iter().any(|value| !value.is_finite()) {
            return None;
        }
        replicates.sort_by(f64::total_cmp);
        let tail = (1.0 - CONFIDENCE) / 2.0 * 100.0;
        let (low, high) = (percentile(&replicates, tail), percentile(&replicates, 100.0 - tail));
        Some(Self { low, high, method: IntervalMethod::Bootstrap }.containing(value))
    }

    /// Returns the interval of the median maximum of series of this many trials, estimated from
    /// these trials; infinitely high if they are too few to bound it.
    ///
    /// The median maximum of series of n is the quantile ½^(1/n) of one trial. The number of trials
    /// up to a quantile is binomial, so two order statistics enclose it, whatever the distribution
    /// (Clopper and Pearson 1934; David and Nagaraja 2003, section 7.1).
    #[must_use]
    pub fn median_maximum(trials: &[f64], series: u32) -> Option<Self> {
        let quantile = quantile_of_maximum(series);
        let below = Binomial::new(quantile, trials.len() as u64).ok()?;
        let mut sorted = trials.to_vec();
        sorted.sort_by(f64::total_cmp);
        let tail = (1.0 - CONFIDENCE) / 2.0;
        // The order statistic r (from 1) is above the quantile if fewer than r trials are below it.
        let above = |rank: usize| below.cdf(rank as u64 - 1);
        let ranks = 1..=sorted.len();
        let low = ranks.clone().rev().find(|rank| above(*rank) <= tail);
        let high = ranks.clone().find(|rank| above(*rank) >= 1.0 - tail);
        Some(Self {
            low: low.map_or(f64::NEG_INFINITY, |rank| sorted[rank - 1]),
            high: high.map_or(f64::INFINITY, |rank| sorted[rank - 1]),
            method: IntervalMethod::OrderStatistics,
        })
    }

    /// Returns this interval, extended to a value that it estimates. The percentiles of a biased
    /// statistic, such as a minimum of several shares of 100 %, may all be on one side of it.
    #[must_use]
    pub(crate) const fn containing(self, value: f64) -> Self {
        Self { low: self.low.min(value), high: self.high.max(value), ..self }
    }

    /// Returns the interval of the absolute value of the quantity.
    #[must_use]
    pub(crate) const fn absolute(self) -> Self {
        let (low, high) = (self.low.abs(), self.high.abs());
        let spans_zero = self.low <= 0.0 && self.high >= 0.0;
        Self { low: if spans_zero { 0.0 } else { low.min(high) }, high: low.max(high), ..self }
    }

    /// Returns half of the width.
    #[must_use]
    pub fn half_width(self) -> f64 {
        (self.high - self.low) / 2.0
    }
}

fn infinite_if_null<'de, D: Deserializer<'de>>(deserializer: D) -> Result<f64, D::Error> {
    Ok(Option::deserialize(deserializer)?.unwrap_or(f64::INFINITY))
}

/// Draws as many trials as there are, with replacement. The same seed draws the same indices for
/// two columns of equal length.
pub(crate) fn resample(trials: &[f64], seed: u64) -> Vec<f64> {
    let position = |trial: usize| {
        let drawn = u128::from(derive(seed, 1, trial as u64)) * trials.len() as u128;
        (drawn >> 64) as usize
    };
    (0..trials.len()).map(|trial| trials[position(trial)]).collect()
}

/// Draws a plausible percentage for these trials of 0 and 100 from the Jeffreys posterior,
/// Beta(successes + ½, failures + ½).
pub(crate) fn plausible_share(trials: &[f64], seed: u64) -> f64 {
    let count = trials.len() as f64;
    let successes = successes(trials);
    let drawn = (derive(seed, 2, 0) >> 11) as f64 / (1_u64 << 53) as f64;
    Beta::new(successes + 0.5, count - successes + 0.5)
        .map_or(f64::NAN, |posterior| 100.0 * posterior.inverse_cdf(drawn))
}

/// Returns a seed for one draw of the trials of a named quantity.
pub(crate) fn seed_of(names: [&str; 2], draw: u64) -> u64 {
    let bytes = names.into_iter().flat_map(str::bytes);
    bytes.fold(draw, |seed, byte| derive(seed, 0, u64::from(byte)))
}

/// Returns the quantile of one trial that the maximum of a series exceeds with a probability of ½.
pub(super) fn quantile_of_maximum(series: u32) -> f64 {
    0.5_f64.powf(1.0 / f64::from(series))
}

fn successes(trials: &[f64]) -> f64 {
    trials.iter().filter(|trial| **trial != 0.0).count() as f64
}

/// Returns the value that Student's t exceeds in either direction with a probability of 5 %.
fn t_quantile(freedom: f64) -> f64 {
    StudentsT::new(0.0, 1.0, freedom)
        .map_or(f64::NAN, |distribution| distribution.inverse_cdf(0.5 + CONFIDENCE / 2.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn share(successes: usize, count: usize) -> Vec<f64> {
        (0..count).map(|trial| if trial < successes { 100.0 } else { 0.0 }).collect()
    }

    #[test]
    fn intervals_of_a_textbook() {
        // t(0.975, 4) = 2.776; the deviation of 1..5 is 1.5811.
        let of_five = ConfidenceInterval::student_t(&[1.0, 2.0, 3.0, 4.0, 5.0]).unwrap();
        assert!((of_five.half_width() - 2.776 * 1.5811 / 5f64.sqrt()).abs() < 1e-3);
        assert_eq!((of_five.low + of_five.high) / 2.0, 3.0);
        // t(0.975, 23) = 2.0687.
        let many: Vec<f64> = (0..24).map(f64::from).collect();
        let half = ConfidenceInterval::student_t(&many).unwrap().half_width();
        assert!((half - 2.0687 * 50f64.sqrt() / 24f64.sqrt()).abs() < 1e-3, "{half}");
        assert_eq!(ConfidenceInterval::student_t(&[4.0]), None);
    }

    #[test]
    fn a_share_of_all_is_not_certain() {
        // Newcombe 1998, table I: 81 of 263 is 0.2553 to 0.3662, 0 of 20 is 0 to 0.1611.
        let some = ConfidenceInterval::wilson(&share(81, 263)).unwrap();
        assert!((some.low - 25.53).abs() < 0.01 && (some.high - 36.62).abs() < 0.01, "{some:?}");
        let none = ConfidenceInterval::wilson(&share(0, 20)).unwrap();
        assert!(none.low == 0.0 && (none.high - 16.11).abs() < 0.01, "{none:?}");
        let all = ConfidenceInterval::wilson(&share(20, 20)).unwrap();
        assert!((all.low - 83.89).abs() < 0.01 && all.high == 100.0, "{all:?}");
        // By the formula, 0 of 200 is 2e-16, for which "at most 0" would be refused.
        assert_eq!(ConfidenceInterval::wilson(&share(0, 200)).unwrap().low, 0.0);
        assert_eq!(ConfidenceInterval::wilson(&[]), None);
    }

    #[test]
    fn the_bootstrap_of_a_mean_agrees_with_the_central_limit() {
        let trials: Vec<f64> = (0..400).map(|trial| f64::from(trial % 20)).collect();
        let mean = |trials: &[f64]| trials.iter().sum::<f64>() / trials.len() as f64;
        let replicates = (0..DRAWS).map(|draw| mean(&resample(&trials, draw))).collect();
        let interval = ConfidenceInterval::bootstrap(mean(&trials), replicates).unwrap();
        // The deviation of 0..19 is 5.77; of the mean of 400 it is 0.288.
        assert!((interval.half_width() - 1.96 * 0.288).abs() < 0.08, "{interval:?}");
        assert!(interval.low < 9.5 && 9.5 < interval.high);
        assert_eq!(ConfidenceInterval::bootstrap(1.0, vec![1.0, f64::NAN]), None);
    }

    #[test]
    fn the_absolute_value_of_what_may_be_zero_may_be_zero() {
        let of = |low, high| {
            let interval =
                ConfidenceInterval { low, high, method: IntervalMethod::Bootstrap }.absolute();
            (interval.low, interval.high)
        };
        assert_eq!(
            [of(-0.4, 0.1), of(-0.4, -0.1), of(0.1, 0.4)],
            [(0.0, 0.4), (0.1, 0.4), (0.1, 0.4)]
        );
    }

    #[test]
    fn plausible_shares_lie_around_the_measured_one() {
        let drawn = |successes| -> Vec<f64> {
            (0..200).map(|seed| plausible_share(&share(successes, 50), seed)).collect()
        };
        assert!(drawn(50).iter().all(|share| (80.0..=100.0).contains(share)));
        assert!(drawn(50).iter().any(|share| *share < 99.0), "100 % is not certain");
        let middle = drawn(25).iter().sum::<f64>() / 200.0;
        assert!((middle - 50.0).abs() < 2.0, "{middle}");
    }
}
