//! How long acknowledgements wait on their way back, behind data that the peer sends at the same
//! time.
//!
//! Such a wait makes round trips longer, but is no queue of ours. If our flight were limited by
//! a round trip without it ([`super::flight_cap`]), less would be delivered in the longer one, the
//! estimated rate would fall, and the limit with it: the path would become ever emptier.
//!
//! A round-trip time does not tell where it was spent. But a flight that is too small for its round
//! trip delivers less than the path did before; one that is limited by a queue of its own does not.
//! So while the peer sends, too, and a full flight delivers less than the path can, the flight
//! grows towards what fills the current round trip, and back as soon as it suffices.

use core::time::Duration;

use super::Path;
use crate::congestion::nanoseconds;

/// The fraction of the estimated rate (numerator and denominator) below which a flight is too
/// small: rates of single round trips vary.
const SUFFICES: (u128, u128) = (14, 16);

/// The wait becomes shorter by this fraction in each round trip.
const SHORTER_BY: u64 = 8;

/// The longest wait that is allowed for, besides the time without queues, in nanoseconds: the rate
/// may have fallen for another reason, and then the flight fills a queue.
const LONGEST: u64 = 20_000_000;

/// How long after its last full packet the peer counts as sending, in nanoseconds.
const SENDS_FOR: u64 = 1_000_000_000;

/// The estimate of what acknowledgements wait. Times are in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReturnWait {
    wait: u64,
    /// When the peer's last full packet arrived.
    received: Option<Duration>,
    /// When the current round trip began, 0 for none, and the bytes delivered by then.
    began: u64,
    delivered: u64,
    /// Whether the flight was full in it.
    was_full: bool,
}

impl ReturnWait {
    /// Ends a round trip of `rtt` on a path that can deliver `rate` bytes per second, and takes
    /// `shortest` without queues.
    fn on_round_trip(&mut self, now: u64, delivered: u64, rate: u64, rtt: u64, shortest: u64) {
        let time = u128::from(now.saturating_sub(self.began).max(1));
        let bytes = u128::from(delivered.saturating_sub(self.delivered));
        let current = bytes * 1_000_000_000 / time;
        if self.began == 0 || current * SUFFICES.1 >= u128::from(rate) * SUFFICES.0 {
            self.wait -= self.wait / SHORTER_BY;
        } else if self.was_full {
            let longest = rtt.saturating_sub(shortest).min(shortest.saturating_add(LONGEST));
            self.wait += longest.saturating_sub(self.wait) / 2;
        }
        (self.began, self.delivered, self.was_full) = (now, delivered, false);
    }
}

impl Path {
    /// Returns how long acknowledgements wait on their way back, in nanoseconds.
    pub(super) fn return_wait(&self) -> u64 {
        self.return_wait.as_ref().map_or(0, |estimate| estimate.wait)
    }

    /// Records the arrival of a packet of `bytes` with data.
    pub fn on_data_received(&mut self, now: Duration, bytes: usize) {
        // Bulk fills packets.
        if self.cap.is_some() && bytes >= self.mtu() / 2 {
            self.return_wait.get_or_insert_default().received = Some(now);
        }
    }

    /// Returns whether the peer sends data on the path.
    pub(super) fn peer_sends(&self, now: Duration) -> bool {
        let received = self.return_wait.as_ref().and_then(|estimate| estimate.received);
        received.is_some_and(|at| nanoseconds(now.saturating_sub(at)) <= SENDS_FOR)
    }

    /// Records whether the flight is as large as its cap, before a SACK is processed.
    pub(super) fn note_full_flight(&mut self) {
        if self.return_wait.is_none() {
            return;
        }
        let is_full = self.flight_cap().is_some_and(|cap| self.outstanding + self.mtu() > cap);
        if let Some(estimate) = &mut self.return_wait {
            estimate.was_full |= is_full;
        }
    }

    /// Updates the estimate after a SACK. `peer_sends`: on any path.
    pub(super) fn update_return_wait(&mut self, now: Duration, peer_sends: bool) {
        if !peer_sends {
            if let Some(estimate) = &mut self.return_wait {
                (estimate.wait, estimate.began) = (0, 0);
            }
            return;
        }
        let (Some(_), Some(rate), Some(rtt), Some(shortest)) =
            (self.cap, self.delivery_rate(), self.rto.smoothed(), self.usual_response_time())
        else {
            return;
        };
        let (now, rtt) = (nanoseconds(now), nanoseconds(rtt));
        let delivered = self.rates.delivered();
        let estimate = self.return_wait.get_or_insert_default();
        if now.saturating_sub(estimate.began) >= rtt {
            estimate.on_round_trip(now, delivered, rate, rtt, nanoseconds(shortest));
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    const MILLISECOND: u64 = 1_000_000;

    /// Round trips of 40 ms, in each of which these bytes are delivered; 1,000,000 bytes per second
    /// are possible. A round trip without queues takes 30 ms.
    fn wait_after(delivered: &[u64], is_full: bool) -> u64 {
        let mut wait = ReturnWait::default();
        let (mut now, mut sum) = (0, 0);
        for bytes in delivered {
            now += 40 * MILLISECOND;
            sum += bytes;
            wait.was_full = is_full;
            wait.on_round_trip(now, sum, 1_000_000, 40 * MILLISECOND, 30 * MILLISECOND);
        }
        wait.wait
    }

    #[test]
    fn a_full_flight_that_delivers_too_little_fills_the_current_round_trip() {
        assert_eq!(wait_after(&[40_000; 8], true), 0, "it suffices");
        assert_eq!(wait_after(&[30_000; 8], false), 0, "there was nothing to send");
        let wait = wait_after(&[30_000; 16], true);
        assert!((9 * MILLISECOND..=10 * MILLISECOND).contains(&wait), "{wait}");
    }

    #[test]
    fn the_wait_is_forgotten_once_the_flight_suffices() {
        let delivered: Vec<u64> = [30_000; 16].into_iter().chain([40_000; 64]).collect();
        assert!(wait_after(&delivered, true) < MILLISECOND);
    }

    #[test]
    fn a_queue_is_bounded_that_no_peer_causes() {
        let mut wait = ReturnWait::default();
        for round in 1..100 {
            wait.was_full = true;
            let now = round * 1000 * MILLISECOND;
            wait.on_round_trip(now, 0, 1_000_000, 1000 * MILLISECOND, 30 * MILLISECOND);
        }
        assert!(wait.wait <= 50 * MILLISECOND, "{}", wait.wait);
    }
}
