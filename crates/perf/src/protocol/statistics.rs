//! The goodput of a flow, and how far it can be trusted.
//!
//! The confidence interval of the mean is that of Student's t over the rates of the intervals, as if they were independent.
//! They are not quite: a congestion control that takes several intervals for each of its cycles makes neighbors alike, and
//! the confidence interval is then too narrow. The autocorrelation of neighbors tells; longer intervals cure it (Law,
//! Simulation Modeling and Analysis, §9.5: batch means).

use std::time::Duration;

use statrs::distribution::{ContinuousCDF, StudentsT};

use super::goodput::{GoodputInterval, rate};

/// The quantile of a 95 % interval.
const UPPER: f64 = 0.975;

/// What flowed in one direction.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowReport {
    /// What was received in each interval.
    pub intervals: Vec<GoodputInterval>,
    /// The length that intervals were to have.
    nominal: Duration,
}

impl FlowReport {
    /// Creates a report of these intervals, which were to have this length.
    pub fn new(intervals: Vec<GoodputInterval>, nominal: Duration) -> Self {
        Self { intervals, nominal }
    }

    /// Returns the bytes received.
    pub fn bytes(&self) -> u64 {
        self.intervals.iter().fold(0, |sum, interval| sum.saturating_add(interval.bytes))
    }

    /// Returns the time in which they were received.
    pub fn duration(&self) -> Duration {
        let lengths = self.intervals.iter().map(|interval| interval.length);
        lengths.fold(Duration::ZERO, Duration::saturating_add)
    }

    /// Returns the goodput at the receiver, in bits per second; `None` if nothing was received.
    pub fn goodput(&self) -> Option<f64> {
        rate(self.bytes(), self.duration())
    }

    /// Returns the confidence interval of the goodput, if there are at least two intervals. One of less than half its
    /// length, at the end, does not count.
    pub fn confidence(&self) -> Option<MeanConfidence> {
        let whole = self.intervals.iter().filter(|interval| interval.length * 2 >= self.nominal);
        MeanConfidence::new(&whole.filter_map(GoodputInterval::rate).collect::<Vec<_>>())
    }
}

/// The mean of a series, with its 95 % confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MeanConfidence {
    /// The number of values.
    pub count: usize,
    /// Their mean.
    pub mean: f64,
    /// Half the width of the interval around it.
    pub half_width: f64,
    /// The autocorrelation of neighbors, -1 to 1; `None` if they are all equal or fewer than four.
    pub autocorrelation: Option<f64>,
}

impl MeanConfidence {
    /// Returns the mean of these values; `None` with fewer than two.
    pub fn new(values: &[f64]) -> Option<Self> {
        if values.len() < 2 {
            return None;
        }
        let count = values.len() as f64;
        let mean = values.iter().sum::<f64>() / count;
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let quantile = StudentsT::new(0.0, 1.0, count - 1.0).ok()?.inverse_cdf(UPPER);
        let half_width = quantile * (squares / (count - 1.0)).sqrt() / count.sqrt();
        let products = values.windows(2).map(|pair| (pair[0] - mean) * (pair[1] - mean));
        let has_enough = values.len() >= 4 && squares > 0.0;
        let autocorrelation = has_enough.then(|| products.sum::<f64>() / squares);
        Some(Self { count: values.len(), mean, half_width, autocorrelation })
    }

    /// Returns whether neighbors are so much alike that the interval is too narrow: more than two standard errors of
    /// independent values.
    pub fn is_too_narrow(&self) -> bool {
        self.autocorrelation.is_some_and(|r| r > 2.0 / (self.count as f64).sqrt())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(bytes: u64) -> GoodputInterval {
        GoodputInterval { start: Duration::ZERO, length: Duration::from_secs(1), bytes }
    }

    #[test]
    fn the_interval_is_that_of_tables() {
        // t(0.975, 4) = 2.776; the deviation of 1 to 5 is √2.5.
        let confidence = MeanConfidence::new(&[1.0, 2.0, 3.0, 4.0, 5.0]).expect("enough");
        let half = 2.776_445 * 2.5_f64.sqrt() / 5.0_f64.sqrt();
        assert!((confidence.half_width - half).abs() < 1e-5, "{confidence:?}");
        assert_eq!((confidence.mean, confidence.autocorrelation), (3.0, Some(0.4)));
        assert_eq!(MeanConfidence::new(&[1.0]), None);
        let same = MeanConfidence::new(&[2.0; 8]).expect("enough");
        assert_eq!((same.half_width, same.autocorrelation), (0.0, None));
    }

    #[test]
    fn slow_waves_make_the_interval_too_narrow() {
        let wave: Vec<f64> = (0..40).map(|at| f64::from(at / 10 % 2)).collect();
        assert!(MeanConfidence::new(&wave).expect("enough").is_too_narrow());
        let quick: Vec<f64> = (0..40).map(|at| f64::from(at % 2)).collect();
        assert!(!MeanConfidence::new(&quick).expect("enough").is_too_narrow());
    }

    #[test]
    fn a_stub_counts_as_data_but_not_as_an_interval() {
        let stub = GoodputInterval { length: Duration::from_millis(100), ..second(1_000) };
        let flow = FlowReport::new(vec![second(100), second(100), stub], Duration::from_secs(1));
        assert_eq!(flow.bytes(), 1_200);
        assert_eq!(flow.goodput(), Some(9_600.0 / 2.1));
        let confidence = flow.confidence().expect("two intervals");
        assert_eq!((confidence.count, confidence.mean), (2, 800.0));
        assert_eq!(FlowReport::new(Vec::new(), Duration::from_secs(1)).goodput(), None);
    }
}
