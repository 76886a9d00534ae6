//! Random early detection (Floyd and Jacobson 1993), gentle (Floyd 2000), with marks (RFC 3168).

use super::bit_error::power;
use super::config::RedConfig;
use crate::random::RandomStream;
use crate::time::EpochNanos;

/// What to do with an arriving packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RedVerdict {
    Admit,
    Mark,
    Drop,
}

/// The average length of a queue and what follows from it.
#[derive(Clone, Debug)]
pub(super) struct RedAverage {
    config: RedConfig,
    average: f64,
    /// Packets since the last drop or mark, while the average is above the minimum.
    count: Option<u64>,
    /// Since when the queue has been empty.
    idle_since: Option<EpochNanos>,
    random: RandomStream,
}

impl RedAverage {
    pub(super) const fn new(config: RedConfig, random: RandomStream) -> Self {
        Self { config, average: 0.0, count: None, idle_since: Some(0), random }
    }

    pub(super) const fn limit(&self) -> usize {
        self.config.limit
    }

    /// Decides about a packet that arrives while `length` others are queued.
    pub(super) fn arrive(
        &mut self,
        now: EpochNanos,
        length: usize,
        transmission: EpochNanos,
        ecn_capable: bool,
    ) -> RedVerdict {
        self.update(now, length, transmission);
        let probability = self.probability();
        if probability <= 0.0 {
            self.count = None;
            return RedVerdict::Admit;
        }
        let count = self.count.map_or(0, |count| count + 1);
        self.count = Some(count);
        // Drops are spread evenly: after n packets without one, the n-th is 1 / (1 - n p) as likely.
        let spread = 1.0 - count as f64 * probability;
        let chance = if spread > probability { probability / spread } else { 1.0 };
        if !self.random.chance(chance) {
            return RedVerdict::Admit;
        }
        self.count = Some(0);
        if self.config.ecn && ecn_capable && self.average < self.config.maximum {
            return RedVerdict::Mark;
        }
        if length == 0 {
            // It stays empty. Otherwise the average of an empty queue would hardly fall, and every
            // arriving packet would be dropped for minutes.
            self.on_empty(now);
        }
        RedVerdict::Drop
    }

    /// Records that the queue is empty from now on.
    pub(super) const fn on_empty(&mut self, now: EpochNanos) {
        self.idle_since = Some(now);
    }

    fn update(&mut self, now: EpochNanos, length: usize, transmission: EpochNanos) {
        let weight = self.config.weight;
        if let Some(since) = self.idle_since.take().filter(|_| length == 0) {
            // The number of packets that could have passed while the queue was empty.
            let passed = now.saturating_sub(since).checked_div(transmission).unwrap_or(1);
            self.average *= power(1.0 - weight, passed);
        }
        self.average += weight * (length as f64 - self.average);
    }

    fn probability(&self) -> f64 {
        let RedConfig { minimum, maximum, probability, .. } = self.config;
        if self.average < minimum {
            return 0.0;
        }
        if self.average < maximum {
            return probability * (self.average - minimum) / (maximum - minimum);
        }
        let beyond = (self.average - maximum) / maximum;
        (probability + (1.0 - probability) * beyond).min(1.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A queue that stays at this length for this many packets: how many are admitted, marked and
    /// dropped in the second half.
    fn steady(length: usize, ecn_capable: bool) -> [u32; 3] {
        let config = RedConfig { weight: 0.02, ..RedConfig::default() };
        let mut red = RedAverage::new(config, RandomStream::new(1, 0));
        let mut seen = [0; 3];
        for packet in 0..20_000_u32 {
            let verdict = red.arrive(u64::from(packet), length, 1, ecn_capable);
            if packet >= 10_000 {
                seen[verdict as usize] += 1;
            }
        }
        seen
    }

    #[test]
    fn the_share_of_drops_grows_with_the_average() {
        assert_eq!(steady(4, false), [10_000, 0, 0]);
        let [_, marked, at_ten] = steady(10, false);
        assert_eq!(marked, 0);
        // 0.05 at the middle; spreading the drops evenly doubles that (Floyd and Jacobson §7).
        assert!((800..1100).contains(&at_ten), "{at_ten}");
        assert!(steady(20, false)[2] > 3_000);
        assert_eq!(steady(30, false)[2], 10_000);
    }

    #[test]
    fn ecn_capable_packets_are_marked_up_to_a_limit() {
        let [_, marked, dropped] = steady(10, true);
        assert!(marked > 700 && dropped == 0);
        let [_, marked, dropped] = steady(20, true);
        assert!(marked == 0 && dropped > 3_000);
    }

    #[test]
    fn an_empty_queue_lets_the_average_fall() {
        let mut red = RedAverage::new(RedConfig::default(), RandomStream::new(1, 0));
        red.average = 12.0;
        red.on_empty(1_000);
        assert_eq!(red.arrive(3_501_000, 0, 1_000, false), RedVerdict::Admit);
        assert!(red.average < 0.02, "{}", red.average);
    }

    #[test]
    fn a_packet_that_is_dropped_leaves_an_empty_queue_empty() {
        let mut red = RedAverage::new(RedConfig::default(), RandomStream::new(1, 0));
        red.average = 40.0;
        red.on_empty(1_000);
        assert_eq!(red.arrive(1_000, 0, 1_000, false), RedVerdict::Drop);
        // Time for 3,500 packets to pass.
        assert_eq!(red.arrive(3_501_000, 0, 1_000, false), RedVerdict::Admit);
        assert!(red.average < 0.05, "{}", red.average);
    }
}
