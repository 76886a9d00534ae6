//! Controlled delay (RFC 8289): packets are dropped from the head if the delay has been too long
//! for too long.

use super::config::CoDelConfig;
use crate::time::{EpochNanos, nanos};

/// With fewer bytes than this behind a packet the queue counts as short, whatever the delay
/// (RFC 8289 §5.4: one packet of the link's MTU). The largest packet seen counts if it is larger.
const SHORT_QUEUE: usize = 1500;

/// The packet at the head of the queue.
#[derive(Debug)]
pub(super) struct QueueHead {
    /// How long it has been queued.
    pub(super) sojourn: EpochNanos,
    /// Bytes queued behind it.
    pub(super) bytes_behind: usize,
}

/// The state of the controller (RFC 8289 §5.3).
#[derive(Clone, Debug)]
pub(super) struct CoDel {
    limit: usize,
    target: EpochNanos,
    interval: EpochNanos,
    ecn: bool,
    largest: usize,
    /// When the delay will have been above the target for an interval.
    first_above: Option<EpochNanos>,
    dropping: bool,
    drop_next: EpochNanos,
    /// Drops in this drop phase, and in the previous one.
    count: u64,
    last_count: u64,
}

impl CoDel {
    pub(super) const fn new(config: &CoDelConfig) -> Self {
        Self {
            limit: config.limit,
            target: nanos(config.target),
            interval: nanos(config.interval),
            ecn: config.ecn,
            largest: SHORT_QUEUE,
            first_above: None,
            dropping: false,
            drop_next: 0,
            count: 0,
            last_count: 0,
        }
    }

    pub(super) const fn limit(&self) -> usize {
        self.limit
    }

    pub(super) const fn ecn(&self) -> bool {
        self.ecn
    }

    /// Returns whether the packet that leaves the queue is to be dropped or marked. After a drop,
    /// call it again for the next packet.
    pub(super) fn should_drop(&mut self, now: EpochNanos, head: &QueueHead, length: usize) -> bool {
        self.largest = self.largest.max(length);
        let too_long = self.is_above(now, head);
        if !too_long {
            self.dropping = false;
            return false;
        }
        if self.dropping {
            let due = now >= self.drop_next;
            if due {
                self.count += 1;
                self.schedule(self.drop_next);
            }
            return due;
        }
        // §5.6: start dropping; soon after the last drop phase, at the rate that it had reached.
        self.dropping = true;
        let since = self.count.saturating_sub(self.last_count);
        let recent = now.saturating_sub(self.drop_next) < self.interval.saturating_mul(16);
        self.count = if recent && since > 1 { since } else { 1 };
        self.last_count = self.count;
        self.schedule(now);
        true
    }

    /// The next drop comes after interval / sqrt(count) (§5.5).
    const fn schedule(&mut self, from: EpochNanos) {
        let step = (self.interval as u128 * self.interval as u128 / self.count as u128).isqrt();
        self.drop_next = from.saturating_add(step as u64);
    }

    /// Returns whether the delay has been above the target for an interval (§5.4).
    fn is_above(&mut self, now: EpochNanos, head: &QueueHead) -> bool {
        if head.sojourn < self.target || head.bytes_behind <= self.largest {
            self.first_above = None;
            return false;
        }
        match self.first_above {
            None => {
                self.first_above = Some(now.saturating_add(self.interval));
                false
            }
            Some(time) => now >= time,
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;
    use core::time::Duration;

    use super::*;

    const MILLISECOND: EpochNanos = 1_000_000;

    /// Milliseconds at which a packet is dropped, if one packet leaves per millisecond after
    /// having waited this long.
    fn drops(sojourn: EpochNanos, bytes_behind: usize, milliseconds: u64) -> Vec<u64> {
        let mut codel = CoDel::new(&CoDelConfig::default());
        let mut drops = Vec::new();
        for now in 0..milliseconds {
            let head = QueueHead { sojourn: sojourn * MILLISECOND, bytes_behind };
            while codel.should_drop(now * MILLISECOND, &head, 1500) {
                drops.push(now);
            }
        }
        drops
    }

    #[test]
    fn drops_become_more_frequent_while_the_delay_persists() {
        // 100, then 100 + 100, + 100 / sqrt(2), + 100 / sqrt(3), + 100 / 2, rounded up.
        assert_eq!(drops(20, 30_000, 400), [100, 200, 271, 329, 379]);
    }

    #[test]
    fn a_short_delay_or_a_short_queue_drops_nothing() {
        assert_eq!(drops(4, 30_000, 1000), [0; 0]);
        assert_eq!(drops(20, 1500, 1000), [0; 0]);
    }

    #[test]
    fn a_second_drop_phase_resumes_the_rate_of_the_first() {
        let mut codel = CoDel::new(&CoDelConfig::default());
        let mut at = |now: u64, sojourn: u64| {
            let head = QueueHead { sojourn: sojourn * MILLISECOND, bytes_behind: 30_000 };
            codel.should_drop(now * MILLISECOND, &head, 1500)
        };
        let first: Vec<_> = (0..400).filter(|now| at(*now, 20)).collect();
        assert_eq!(first.len(), 5);
        assert!(!at(400, 1));
        let second: Vec<_> = (401..640).filter(|now| at(*now, 20)).collect();
        // Four more than the first: the next one comes after 100 / sqrt(4).
        assert_eq!(second[..2], [501, 551]);
        assert_eq!(CoDelConfig::default().target, Duration::from_millis(5));
    }
}
