//! A deadline for data that keeps an association from ending (RFC 9260 §9.2 sets none before the
//! SHUTDOWN, and a peer with a window of zero may acknowledge probes for ever, §6.1 A).

use alloc::boxed::Box;
use core::time::Duration;

use super::Association;
use super::state::State;
use crate::event::LossReason;

/// Of what waited when the end began, a peer takes at least one part in so many within
/// [`shutdown_stall`](crate::config::AssociationConfig::shutdown_stall), and so all of it within so many
/// times that.
const SHUTDOWN_PARTS: usize = 32;

/// What waits to be acknowledged before the association can end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lingering {
    /// When the peer must have taken a part.
    due: Duration,
    /// Bytes that may be left then.
    at_most: usize,
    /// Bytes of a part.
    part: usize,
}

impl Association {
    /// The end waits for data from now on, if it did not before.
    pub(super) fn linger(&mut self, now: Duration) {
        let Some(stall) = self.config.shutdown_stall else { return };
        let queued = self.sender.queued_bytes();
        let part = queued.div_ceil(SHUTDOWN_PARTS);
        let at_most = queued - part;
        self.lingering.get_or_insert_with(|| {
            Box::new(Lingering { due: now.saturating_add(stall), at_most, part })
        });
    }

    /// When the peer must have taken more.
    pub(super) fn lingering_timeout(&self) -> Option<Duration> {
        let waits = matches!(self.state, State::ShutdownPending | State::ShutdownReceived);
        self.lingering.as_ref().filter(|_| waits).map(|lingering| lingering.due)
    }

    /// Gives up on a peer that does not take what it is to have.
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
