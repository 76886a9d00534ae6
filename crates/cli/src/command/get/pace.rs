//! The rate of `--limit-rate`.

use std::time::{Duration, Instant};

/// Spreads what is received over time. What is not read is not sent by the server, once the buffers in between are full.
#[derive(Clone, Copy, Debug)]
pub(super) struct TransferPace {
    bytes_per_second: u64,
    began: Instant,
    taken: u64,
}

impl TransferPace {
    pub(super) const fn new(bytes_per_second: u64, now: Instant) -> Self {
        Self { bytes_per_second, began: now, taken: 0 }
    }

    /// Takes so many bytes, and returns when the next may be taken.
    pub(super) fn count(&mut self, bytes: usize) -> Instant {
        self.taken += bytes as u64;
        let seconds = self.taken as f64 / self.bytes_per_second as f64;
        self.began + Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX / 4)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_much_time_passes_as_the_rate_demands() {
        let began = Instant::now();
        let mut pace = TransferPace::new(1000, began);
        assert_eq!(pace.count(500), began + Duration::from_millis(500));
        assert_eq!(pace.count(1500), began + Duration::from_secs(2));
    }
}
