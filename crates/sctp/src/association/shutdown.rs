//! The timers of graceful termination (RFC 9260 §9.2): T2-shutdown and T5-shutdown-guard.

use core::time::Duration;

use super::retransmission_timer::RetransmissionTimer;
use crate::config::AssociationConfig;
use crate::identifier::PathId;
use crate::path::AssociationPaths;

/// The duration of T5-shutdown-guard, in multiples of `RTO.Max` (RFC 9260 §9.2).
const GUARD: u32 = 5;

/// Waiting for the answer to a SHUTDOWN or SHUTDOWN ACK.
#[derive(Debug)]
pub(crate) struct ShutdownTimers {
    /// T2-shutdown.
    t2: RetransmissionTimer,
    /// When to give up regardless of what the peer sends (T5-shutdown-guard).
    guard: Duration,
}

/// What to do when a timer has expired.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ShutdownTimeout {
    /// Repeat the chunk on this path.
    Retransmit(PathId),
    /// Give up: the peer is unreachable.
    GiveUp,
    /// Abort: the peer takes too long.
    Abort,
}

impl ShutdownTimers {
    /// Starts the timers; the chunk goes over [`Self::path`].
    pub(super) fn start(
        now: Duration,
        paths: &mut AssociationPaths,
        config: &AssociationConfig,
    ) -> Self {
        // No more heartbeats: T2 alone checks whether the peer is still there (§8.3).
        paths.stop();
        let path = paths.default_path();
        let timeout = paths.timeout_of(path, config);
        let guard = now.saturating_add(config.rto_max.saturating_mul(GUARD));
        Self { t2: RetransmissionTimer::new(now, timeout, path), guard }
    }

    /// Returns the path of the last transmission.
    pub(super) const fn path(&self) -> PathId {
        self.t2.path
    }

    pub(super) fn due(&self) -> Duration {
        self.t2.due.min(self.guard)
    }

    /// Restarts T2-shutdown, as the chunk is sent again for another reason.
    pub(super) fn restart(&mut self, now: Duration) {
        self.t2.due = now.saturating_add(self.t2.timeout);
    }

    /// Handles the expiry of either timer.
    pub(super) fn handle_timeout(
        &mut self,
        now: Duration,
        paths: &mut AssociationPaths,
        config: &AssociationConfig,
    ) -> ShutdownTimeout {
        if now >= self.guard {
            return ShutdownTimeout::Abort;
        }
        let last = self.t2.path;
        paths.on_error(last, config);
        if paths.is_peer_unreachable(config) {
            return ShutdownTimeout::GiveUp;
        }
        let path = paths.for_retransmission(last);
        self.t2.retransmitted(now, path, config.rto_max);
        ShutdownTimeout::Retransmit(path)
    }
}
