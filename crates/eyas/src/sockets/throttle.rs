//! Limits how often the same condition is reported.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The minimum time between two reports.
const INTERVAL: Duration = Duration::from_secs(10);

/// Limits how often a recurring condition is reported: at most once in ten seconds. Use one for
/// each kind of report.
#[derive(Debug, Default)]
pub struct ReportThrottle {
    reported: Mutex<Option<Instant>>,
}

impl ReportThrottle {
    /// Returns whether to report it now. If so, it is not to be reported for the next ten seconds.
    pub fn permits(&self) -> bool {
        let mut reported = self.reported.lock().unwrap_or_else(PoisonError::into_inner);
        let is_due = reported.is_none_or(|at| at.elapsed() >= INTERVAL);
        if is_due {
            *reported = Some(Instant::now());
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn the_same_error_is_reported_once_in_ten_seconds() {
        let throttle = ReportThrottle::default();
        assert!(throttle.permits());
        for _ in 0..9 {
            tokio::time::advance(Duration::from_secs(1)).await;
            assert!(!throttle.permits(), "suppressed reports do not extend the interval");
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(throttle.permits());
        assert!(!throttle.permits());
    }
}
