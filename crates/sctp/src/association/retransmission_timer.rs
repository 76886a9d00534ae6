//! The timer of a chunk that is repeated until it is answered: T1-init, T1-cookie, T2-shutdown and
//! T4-RTO.

use core::time::Duration;

use crate::identifier::PathId;

/// A retransmission timer.
#[derive(Clone, Debug)]
pub(crate) struct RetransmissionTimer {
    /// When to retransmit.
    pub(crate) due: Duration,
    /// The last timeout.
    pub(crate) timeout: Duration,
    /// The number of retransmissions.
    pub(crate) retransmissions: u32,
    /// The path of the last transmission.
    pub(crate) path: PathId,
    /// The time of the first transmission.
    pub(crate) sent: Duration,
}

impl RetransmissionTimer {
    /// Starts the timer after the first transmission.
    pub(crate) fn new(now: Duration, timeout: Duration, path: PathId) -> Self {
        Self { due: now.saturating_add(timeout), timeout, retransmissions: 0, path, sent: now }
    }

    /// Restarts the timer after a retransmission on `path`: the timeout doubles up to `max` (RFC
    /// 9260 §6.3.3 E2).
    pub(crate) fn retransmitted(&mut self, now: Duration, path: PathId, max: Duration) {
        self.timeout = self.timeout.saturating_mul(2).min(max);
        self.due = now.saturating_add(self.timeout);
        self.retransmissions += 1;
        self.path = path;
    }

    /// Returns the round-trip time, if nothing was retransmitted (RFC 9260 §6.3.1 C5).
    pub(crate) fn round_trip(&self, now: Duration) -> Option<Duration> {
        (self.retransmissions == 0).then(|| now.saturating_sub(self.sent))
    }
}
