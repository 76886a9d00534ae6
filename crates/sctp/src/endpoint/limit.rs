//! How often something may be answered that anybody can send (RFC 9260 §8.4, §10).

use core::time::Duration;

/// So many a second, and no saving up beyond one second.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimit {
    per_second: u32,
    /// Billionths of one permit.
    saved: u64,
    filled: Duration,
}

/// Parts that one permit is counted in, so that time in nanoseconds times the rate is exact.
const PERMIT: u64 = 1_000_000_000;

impl RateLimit {
    pub(crate) fn new(per_second: u32, now: Duration) -> Self {
        Self { per_second, saved: u64::from(per_second) * PERMIT, filled: now }
    }

    /// Takes one permit, if there is one.
    pub(crate) fn allows(&mut self, now: Duration) -> bool {
        let passed = now.saturating_sub(self.filled).min(Duration::from_secs(1)).as_nanos();
        self.filled = self.filled.max(now);
        let full = u64::from(self.per_second) * PERMIT;
        // At most a second's worth: fits 64 bits.
        let gained = u64::try_from(passed * u128::from(self.per_second)).unwrap_or(full);
        self.saved = self.saved.saturating_add(gained).min(full);
        if self.saved < PERMIT {
            return false;
        }
        self.saved -= PERMIT;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::RateLimit;
    use core::time::Duration;

    #[test]
    fn no_more_than_so_many_a_second() {
        let mut limit = RateLimit::new(10, Duration::ZERO);
        let allowed = |limit: &mut RateLimit, from: u64, to: u64| {
            (from..to).filter(|ms| limit.allows(Duration::from_millis(*ms))).count()
        };
        assert_eq!(allowed(&mut limit, 0, 1), 1);
        assert_eq!(allowed(&mut limit, 1, 1000), 18, "the first ten are saved up");
        assert_eq!(allowed(&mut limit, 1000, 2000), 10);
        assert_eq!(allowed(&mut limit, 100_000, 100_001), 1);
    }

    #[test]
    fn a_limit_of_none_allows_none() {
        assert!(!RateLimit::new(0, Duration::ZERO).allows(Duration::from_secs(9)));
    }
}
