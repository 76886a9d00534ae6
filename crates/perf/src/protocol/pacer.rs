//! Paces a sender.

use std::time::Duration;

/// How far a sender that was held up may catch up at once: the rest is not sent later, so that a pause is not followed by a
/// burst.
const MAX_DEBT: Duration = Duration::from_millis(100);

/// Says when the next message is due at a constant rate.
#[derive(Clone, Copy, Debug)]
pub struct MessagePacer {
    /// Bits per second.
    rate: f64,
    due: Duration,
}

impl MessagePacer {
    /// Creates a pacer for this rate in bits per second, which is not 0; the first message is due now.
    pub fn new(rate: f64, now: Duration) -> Self {
        Self { rate: rate.max(f64::MIN_POSITIVE), due: now }
    }

    /// Returns when a message of this many bytes is due, and schedules the one after it.
    pub fn schedule(&mut self, now: Duration, bytes: usize) -> Duration {
        let due = self.due.max(now.saturating_sub(MAX_DEBT));
        let length = Duration::try_from_secs_f64(bytes as f64 * 8.0 / self.rate);
        self.due = due.saturating_add(length.unwrap_or(Duration::MAX));
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_due_at_the_rate() {
        let millis = Duration::from_millis;
        // 1000 bytes each ms.
        let mut pacer = MessagePacer::new(8e6, millis(10));
        assert_eq!(pacer.schedule(millis(10), 1_000), millis(10));
        assert_eq!(pacer.schedule(millis(10), 2_000), millis(11));
        assert_eq!(pacer.schedule(millis(15), 1_000), millis(13));
        // After a pause of a second, a tenth of it is made up for.
        assert_eq!(pacer.schedule(millis(1_014), 1_000), millis(914));
        assert_eq!(pacer.schedule(millis(1_014), 1_000), millis(915));
    }

    #[test]
    fn an_absurd_rate_is_never_due_again() {
        let mut pacer = MessagePacer::new(0.0, Duration::ZERO);
        pacer.schedule(Duration::ZERO, 1);
        assert_eq!(pacer.schedule(Duration::from_secs(1), 1), Duration::MAX);
    }
}
