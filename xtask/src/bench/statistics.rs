//! Median and 95th percentile of the rounds of one client in one scenario.

use std::collections::BTreeMap;

/// The rounds of each client, by client and heading of the column.
pub(super) type Results = BTreeMap<(&'static str, &'static str), Rounds>;

/// The rounds of one client in one scenario.
#[derive(Clone, Debug, Default)]
pub(super) struct Rounds {
    /// The times of successful rounds, in milliseconds.
    pub(super) times: Vec<f64>,
    /// The errors of failed rounds.
    pub(super) errors: Vec<String>,
}

impl Rounds {
    /// Adds the result of one round.
    pub(super) fn add(&mut self, answer: Result<f64, String>) {
        match answer {
            Ok(time) => self.times.push(time),
            Err(error) => self.errors.push(error),
        }
    }

    /// Returns the median, if more than half of the rounds succeeded.
    pub(super) fn median(&self) -> Option<f64> {
        (self.times.len() > self.errors.len()).then(|| self.quantile(0.5))
    }

    /// Returns the 95th percentile under the same condition.
    pub(super) fn p95(&self) -> Option<f64> {
        (self.times.len() > self.errors.len()).then(|| self.quantile(0.95))
    }

    /// Returns the 99th percentile under the same condition.
    pub(super) fn p99(&self) -> Option<f64> {
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

#[cfg(test)]
mod tests {
    use super::*;

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
