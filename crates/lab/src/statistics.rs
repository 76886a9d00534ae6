//! Means with confidence intervals, statistics of trials, and regression lines.

mod interval;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

pub use interval::{ConfidenceInterval, IntervalMethod};
pub(crate) use interval::{DRAWS, plausible_share, resample, seed_of};

/// The longest series whose maximum can be estimated.
const MAX_SERIES: u32 = 1_000_000;

/// A number of a point with its uncertainty.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct SampleSummary {
    /// The mean over the runs, or the value over all trials.
    pub value: f64,
    /// The 95 % confidence interval; `None` with a single run or trial.
    pub interval: Option<ConfidenceInterval>,
    /// The number of runs or trials.
    pub samples: usize,
}

impl SampleSummary {
    /// Returns the mean of these numbers, one per run; `None` if there are none, or one of them is
    /// NaN.
    #[must_use]
    pub fn from_samples(samples: &[f64]) -> Option<Self> {
        if samples.is_empty() || samples.iter().any(|sample| !sample.is_finite()) {
            return None;
        }
        let value = samples.iter().sum::<f64>() / samples.len() as f64;
        Some(Self {
            value,
            interval: ConfidenceInterval::student_t(samples),
            samples: samples.len(),
        })
    }
}

/// A statistic of many trials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum TrialStatistic {
    /// `mean`: the mean.
    Mean,
    /// `deviation`: the standard deviation.
    Deviation,
    /// `count`: the number of trials that have this column.
    Count,
    /// `least`: the minimum.
    Least,
    /// `most`: the maximum.
    Most,
    /// `most1000`: the median maximum of series of this many trials, which can be compared with the
    /// maximum of one published series of the same length.
    MostOf(u32),
    /// `p50`, `p99`: a percentile, interpolated between neighbouring trials.
    Percentile(u8),
}

impl FromStr for TrialStatistic {
    type Err = ();

    fn from_str(text: &str) -> Result<Self, ()> {
        Ok(match text {
            "mean" => Self::Mean,
            "deviation" => Self::Deviation,
            "count" => Self::Count,
            "least" => Self::Least,
            "most" => Self::Most,
            _ if text.starts_with("most") => {
                let series = text.strip_prefix("most").and_then(|rest| rest.parse().ok());
                Self::MostOf(series.filter(|series| (2..=MAX_SERIES).contains(series)).ok_or(())?)
            }
            _ => {
                let percent = text.strip_prefix('p').and_then(|rest| rest.parse().ok()).ok_or(())?;
                (1..=99).contains(&percent).then_some(Self::Percentile(percent)).ok_or(())?
            }
        })
    }
}

impl fmt::Display for TrialStatistic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mean => f.write_str("mean"),
            Self::Deviation => f.write_str("deviation"),
            Self::Count => f.write_str("count"),
            Self::Least => f.write_str("least"),
            Self::Most => f.write_str("most"),
            Self::MostOf(series) => write!(f, "most{series}"),
            Self::Percentile(percent) => write!(f, "p{percent}"),
        }
    }
}

impl TrialStatistic {
    /// Returns whether it is an extreme of all trials, which resampled trials never exceed.
    pub(crate) const fn is_extreme(self) -> bool {
        matches!(self, Self::Least | Self::Most)
    }

    /// Returns the statistic of these trials; NaN if there are too few.
    #[must_use]
    pub fn compute(self, trials: &[f64]) -> f64 {
        let count = trials.len() as f64;
        match self {
            Self::Count => count,
            _ if trials.is_empty() => f64::NAN,
            Self::Mean => trials.iter().sum::<f64>() / count,
            Self::Deviation => {
                let mean = Self::Mean.compute(trials);
                let squares: f64 = trials.iter().map(|trial| (trial - mean).powi(2)).sum();
                (squares / (count - 1.0)).sqrt()
            }
            Self::Least => trials.iter().copied().fold(f64::INFINITY, f64::min),
            Self::Most => trials.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Self::MostOf(series) => {
                percentile_of(trials, 100.0 * interval::quantile_of_maximum(series))
            }
            Self::Percentile(percent) => percentile_of(trials, f64::from(percent)),
        }
    }
}

fn percentile_of(trials: &[f64], percent: f64) -> f64 {
    let mut sorted = trials.to_vec();
    sorted.sort_by(f64::total_cmp);
    percentile(&sorted, percent)
}

/// Returns a percentile of sorted numbers; NaN if there are none.
#[must_use]
pub(crate) fn percentile(sorted: &[f64], percent: f64) -> f64 {
    let Some(last) = sorted.len().checked_sub(1) else { return f64::NAN };
    let rank = last as f64 * percent / 100.0;
    let (below, above) = (sorted[rank.floor() as usize], sorted[rank.ceil() as usize]);
    below + (above - below) * rank.fract()
}

/// A regression line by least squares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct RegressionLine {
    /// The slope: y per x.
    pub slope: f64,
    /// R²: the fraction of the variance of y that it explains.
    pub r_squared: f64,
}

impl RegressionLine {
    /// Returns the line through these points; `None` with fewer than two different values of x.
    #[must_use]
    pub(crate) fn fit(xs: &[f64], ys: &[f64]) -> Option<Self> {
        let count = xs.len().min(ys.len()) as f64;
        let mean = |values: &[f64]| values.iter().sum::<f64>() / count;
        let (middle, height) = (mean(xs), mean(ys));
        let sum = |term: &dyn Fn(f64, f64) -> f64| -> f64 {
            xs.iter().zip(ys).map(|(x, y)| term(x - middle, y - height)).sum()
        };
        let (xx, xy, yy) = (sum(&|x, _| x * x), sum(&|x, y| x * y), sum(&|_, y| y * y));
        if xx == 0.0 || !xx.is_finite() {
            return None;
        }
        let r_squared = if yy == 0.0 { 1.0 } else { xy * xy / (xx * yy) };
        Some(Self { slope: xy / xx, r_squared })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_single_sample_has_no_interval() {
        assert_eq!(
            SampleSummary::from_samples(&[4.0]),
            Some(SampleSummary { value: 4.0, interval: None, samples: 1 })
        );
        assert_eq!(SampleSummary::from_samples(&[]), None);
        assert_eq!(SampleSummary::from_samples(&[1.0, f64::NAN]), None);
        let same = SampleSummary::from_samples(&[2.0, 2.0]).unwrap();
        assert_eq!(same.interval.map(ConfidenceInterval::half_width), Some(0.0));
    }

    #[test]
    fn statistics_are_computed_from_trials() {
        let trials = [4.0, 1.0, 3.0, 2.0, 5.0];
        let of = |name: &str| name.parse::<TrialStatistic>().unwrap().compute(&trials);
        assert_eq!((of("mean"), of("p50"), of("count")), (3.0, 3.0, 5.0));
        assert_eq!((of("least"), of("most"), of("p25")), (1.0, 5.0, 2.0));
        assert!((of("p90") - 4.6).abs() < 1e-12 && (of("deviation") - 1.5811).abs() < 1e-4);
        assert!(TrialStatistic::Mean.compute(&[]).is_nan());
        for refused in ["p0", "p100", "median", "p"] {
            assert!(refused.parse::<TrialStatistic>().is_err(), "{refused}");
        }
    }

    #[test]
    fn regression_lines_have_a_slope_and_a_fit() {
        let line = RegressionLine::fit(&[1.0, 2.0, 3.0], &[3.0, 5.0, 7.0]).unwrap();
        assert!((line.slope - 2.0).abs() < 1e-12 && (line.r_squared - 1.0).abs() < 1e-12);
        let bent = RegressionLine::fit(&[0.0, 1.0, 2.0], &[0.0, 1.0, 0.0]).unwrap();
        assert!(bent.slope.abs() < 1e-12 && bent.r_squared < 1e-12);
        assert_eq!(RegressionLine::fit(&[1.0, 1.0], &[1.0, 2.0]), None);
    }
}
