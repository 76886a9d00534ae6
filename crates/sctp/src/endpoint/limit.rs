//! Rate limits for answers to packets that anyone can send (RFC 9260 §8.4, §10).

use alloc::vec::Vec;
use core::{net::IpAddr, time::Duration};

use super::random::RandomBytes;

/// The number of per-source limits: with more sources, some share one by chance.
const SOURCES: usize = 256;

/// A rate limit per second, with a burst of at most one second's worth.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RateLimit {
    per_second: u32,
    /// Saved permits, in billionths.
    saved: u64,
    filled: Duration,
}

/// The unit of permits, so that time in nanoseconds times the rate is exact.
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

    /// Refunds a permit that turned out to be for a genuine peer.
    fn refund(&mut self) {
        self.saved = self.saved.saturating_add(PERMIT).min(u64::from(self.per_second) * PERMIT);
    }
}

/// A separate limit for each source: an IPv4 address, or the /64 of an IPv6 address, within which a
/// host can have any number of addresses. Outsiders cannot tell which sources share one of the
/// [`SOURCES`] limits.
#[derive(Debug)]
pub(crate) struct SourceLimits {
    per_second: u32,
    key: [u64; 2],
    /// Empty until first needed: most endpoints only connect.
    limits: Vec<RateLimit>,
}

impl SourceLimits {
    pub(crate) fn new(per_second: u32, random: &mut RandomBytes) -> Self {
        let mut next = || u64::from(random.next_u32()) << 32 | u64::from(random.next_u32());
        Self { per_second, key: [next(), next()], limits: Vec::new() }
    }

    /// Takes one permit for a source, if there is one.
    pub(crate) fn allows(&mut self, now: Duration, source: IpAddr) -> bool {
        if self.limits.is_empty() {
            self.limits = alloc::vec![RateLimit::new(self.per_second, now); SOURCES];
        }
        let index = self.index(source);
        self.limits.get_mut(index).is_some_and(|limit| limit.allows(now))
    }

    /// Refunds a permit of a source.
    pub(crate) fn refund(&mut self, source: IpAddr) {
        let index = self.index(source);
        if let Some(limit) = self.limits.get_mut(index) {
            limit.refund();
        }
    }

    fn index(&self, source: IpAddr) -> usize {
        // The finaliser of splitmix64, twice, with the key before each.
        let mix = |number: u64| {
            let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            number ^ (number >> 31)
        };
        let mixed =
            self.key.iter().fold(network(source), |number, key| mix(number.wrapping_add(*key)));
        mixed as usize % SOURCES
    }
}

/// Returns what identifies a source.
pub(super) fn network(source: IpAddr) -> u64 {
    match source.to_canonical() {
        IpAddr::V4(v4) => u64::from(v4.to_bits()),
        IpAddr::V6(v6) => (v6.to_bits() >> 64) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::{RateLimit, SOURCES, SourceLimits};
    use crate::endpoint::random::RandomBytes;
    use core::net::IpAddr;
    use core::time::Duration;

    #[test]
    fn the_rate_is_limited() {
        let mut limit = RateLimit::new(10, Duration::ZERO);
        let allowed = |limit: &mut RateLimit, from: u64, to: u64| {
            (from..to).filter(|ms| limit.allows(Duration::from_millis(*ms))).count()
        };
        assert_eq!(allowed(&mut limit, 0, 1), 1);
        assert_eq!(allowed(&mut limit, 1, 1000), 18, "the first ten are accumulated");
        assert_eq!(allowed(&mut limit, 1000, 2000), 10);
        assert_eq!(allowed(&mut limit, 100_000, 100_001), 1);
    }

    fn source(n: u32) -> IpAddr {
        n.to_be_bytes().into()
    }

    #[test]
    fn one_source_does_not_use_up_what_others_have() {
        let mut limits = SourceLimits::new(5, &mut RandomBytes::new([1; 32]));
        let now = Duration::from_secs(9);
        let allowed = (0..100).filter(|_| limits.allows(now, source(7))).count();
        assert_eq!(allowed, 5);
        let others = (100..150).filter(|n| limits.allows(now, source(*n))).count();
        assert!(others > 45, "{others} of 50 others");
        limits.refund(source(7));
        assert!(limits.allows(now, source(7)) && !limits.allows(now, source(7)));
    }

    #[test]
    fn a_host_with_many_addresses_is_one_source() {
        let mut limits = SourceLimits::new(5, &mut RandomBytes::new([1; 32]));
        let ipv6 = |n: u64| IpAddr::from((0x2001_0db8_u128 << 96 | u128::from(n)).to_be_bytes());
        let allowed = (0..100).filter(|n| limits.allows(Duration::ZERO, ipv6(*n))).count();
        assert_eq!(allowed, 5);
    }

    #[test]
    fn all_sources_together_are_limited_too() {
        let mut limits = SourceLimits::new(2, &mut RandomBytes::new([1; 32]));
        let allowed = (0..100_000).filter(|n| limits.allows(Duration::ZERO, source(*n))).count();
        assert_eq!(allowed, 2 * SOURCES);
    }

    #[test]
    fn a_limit_of_none_allows_none() {
        assert!(!RateLimit::new(0, Duration::ZERO).allows(Duration::from_secs(9)));
    }
}
