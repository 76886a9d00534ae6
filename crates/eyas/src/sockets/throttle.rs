//! How often the same is reported.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// The least time between two reports of the same.
const INTERVAL: Duration = Duration::from_secs(10);

/// Limits how often something that happens again and again is reported: at most once in ten seconds. One for each
/// kind of notice.
#[derive(Debug, Default)]
pub struct Throttle {
    reported: Mutex<Option<Instant>>,
}

impl Throttle {
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
        let throttle = Throttle::default();
        assert!(throttle.permits());
        for _ in 0..9 {
            tokio::time::advance(Duration::from_secs(1)).await;
            assert!(!throttle.permits(), "what was held back puts nothing off");
        }
        tokio::time::advance(Duration::from_secs(1)).await;
        assert!(throttle.permits());
        assert!(!throttle.permits());
    }
}
