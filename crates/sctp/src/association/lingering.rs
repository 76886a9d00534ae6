//! A deadline for data that delays the shutdown (RFC 9260 §9.2 sets none before the SHUTDOWN, and a
//! peer with a window of zero may acknowledge probes forever, §6.1 A).

use alloc::boxed::Box;
use core::time::Duration;

use super::Association;
use super::state::AssociationPhase;
use crate::event::LossReason;

/// The peer must accept this fraction of the data that was queued at the start of the shutdown
/// within each [`shutdown_stall`](crate::config::AssociationConfig::shutdown_stall), and so all of
/// it within this many times that.
const SHUTDOWN_PARTS: usize = 32;

/// The progress that the peer has to make before the association can shut down.
#[derive(Clone, Copy, Debug)]
pub(super) struct LingeringProgress {
    /// When the peer must have accepted another part.
    due: Duration,
    /// The bytes that may remain by then.
    at_most: usize,
    /// The bytes of a part.
    part: usize,
}

impl Association {
    /// Starts the deadline, unless it has been started.
    pub(super) fn linger(&mut self, now: Duration) {
        let Some(stall) = self.config.shutdown_stall else { return };
        let queued = self.sender.queued_bytes();
        let part = queued.div_ceil(SHUTDOWN_PARTS);
        let at_most = queued - part;
        self.lingering.get_or_insert_with(|| {
            Box::new(LingeringProgress { due: now.saturating_add(stall), at_most, part })
        });
    }

    /// Returns the current deadline.
    pub(super) fn lingering_timeout(&self) -> Option<Duration> {
        let waits = matches!(
            self.state,
            AssociationPhase::ShutdownPending | AssociationPhase::ShutdownReceived
        );
        self.lingering.as_ref().filter(|_| waits).map(|lingering| lingering.due)
    }

    /// Aborts the association if the peer has not accepted enough data in time.
    pub(super) fn handle_lingering_timer(&mut self, now: Duration) {
        if self.lingering_timeout().is_none_or(|due| due > now) {
            return;
        }
        let queued = self.sender.queued_bytes();
        let Some(lingering) = &mut self.lingering else { return };
        if queued > lingering.at_most {
            return self.abort_for(LossReason::Stalled);
        }
        lingering.at_most = queued.saturating_sub(lingering.part);
        lingering.due = now.saturating_add(self.config.shutdown_stall.unwrap_or_default());
    }
}
