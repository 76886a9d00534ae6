//! Median and 95th percentile of the rounds of one client in one scenario.

use std::collections::BTreeMap;

/// The rounds of each client, by client and heading of the column.
pub(crate) type Results = BTreeMap<(&'static str, &'static str), Rounds>;

/// The rounds of one client in one scenario.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rounds {
    /// The times of successful rounds, in milliseconds.
    pub(crate) times: Vec<f64>,
    /// The errors of failed rounds.
    pub(crate) errors: Vec<String>,
}

impl Rounds {
    /// Adds the result of one round.
    pub(crate) fn add(&mut self, answer: Result<f64, String>) {
        match answer {
            Ok(time) => self.times.push(time),
            Err(error) => self.errors.push(error),
        }
    }

    /// Returns the median, if more than half of the rounds succeeded.
    pub(crate) fn median(&self) -> Option<f64> {
        (self.times.len() > self.errors.len()).then(|| self.quantile(0.5))
    }

    /// Returns the 95th percentile under the same condition.
    pub(crate) fn p95(&self) -> Option<f64> {
        (self.times.len() > self.errors.len()).then(|| self.quantile(0.95))
    }

    /// Returns the 99th percentile under the same condition.
    pub(crate) fn p99(&self) -> Option<f64> {
        (self.times.len() > self.errors.len()).then(|| self.quantile(0.99))
    }

    /// Returns the smallest time that at least this share of the rounds did not exceed.
    fn quantile(&self, share: f64) -> f64 {
        let mut sorted = self.times.clone();
        sorted.sort_by(f64::total_cmp);
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted[rank.clamp(1, sorted.len()) - 1]
    }
}

/// Returns the median: the middle one, or the mean of the two middle ones.
pub(crate) fn middle(figures: &mut [f64]) -> Option<f64> {
    figures.sort_by(f64::total_cmp);
    let half = figures.len() / 2;
    match figures.len() {
        0 => None,
        length if length.is_multiple_of(2) => Some(f64::midpoint(figures[half - 1], figures[half])),
        _ => Some(figures[half]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_middle_of_an_even_number_is_the_mean_of_two() {
        assert_eq!(middle(&mut []), None);
        assert_eq!(middle(&mut [3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(middle(&mut [4.0, 1.0]), Some(2.5));
    }

    fn rounds(times: &[f64], errors: usize) -> Rounds {
        Rounds { times: times.to_vec(), errors: vec!["no".into(); errors] }
    }

    #[test]
    fn percentiles_use_the_nearest_rank() {
        let hundred: Vec<f64> = (1..=100).rev().map(f64::from).collect();
        assert_eq!(rounds(&hundred, 0).median(), Some(50.0));
        assert_eq!(rounds(&hundred, 0).p95(), Some(95.0));
        assert_eq!(rounds(&hundred, 0).p99(), Some(99.0));
        assert_eq!(rounds(&[3.0], 0).median(), Some(3.0));
        assert_eq!(rounds(&[3.0, 1.0, 2.0], 0).median(), Some(2.0));
        assert_eq!(rounds(&[3.0, 1.0, 2.0], 0).p95(), Some(3.0));
    }

    #[test]
    fn a_client_that_mostly_fails_has_no_median() {
        assert_eq!(rounds(&[1.0], 1).median(), None);
        assert_eq!(rounds(&[], 0).median(), None);
        assert_eq!(rounds(&[1.0, 2.0], 1).median(), Some(1.0));
    }
}
