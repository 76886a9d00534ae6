//! Buffer splitting (Dreibholz et al., GLOBECOM 2010).

use super::super::Sender;
use super::super::outstanding::Flight;
use crate::config::BufferSplitting;
use crate::identifier::PathId;
use crate::path::{PathState, Paths};

impl Sender {
    /// Whether a path may take more of the send buffer and of the peer's window. One that has
    /// nothing may always take a packet, or a small buffer would stop all.
    pub(super) fn has_share(&self, path: PathId, paths: &Paths) -> bool {
        let Some(concurrent) = &self.multipath else { return true };
        let Some(way) = paths.get(path) else { return false };
        let active = paths.iter().filter(|path| path.state() == PathState::Active).count().max(1);
        let taken = |splitting| match splitting {
            BufferSplitting::None => None,
            BufferSplitting::Queued => {
                Some(self.outstanding.flight_on(path).map_or(0, Flight::queued))
            }
            BufferSplitting::Outstanding => Some(way.outstanding()),
        };
        let packet = way.mtu() + way.overhead();
        let at_sender = taken(concurrent.choices.sender_splitting)
            .is_none_or(|taken| taken == 0 || taken + packet <= self.queue.limit() / active);
        let window = self.peer_window() + self.in_flight();
        let at_receiver = taken(concurrent.choices.receiver_splitting)
            .is_none_or(|taken| taken == 0 || self.in_flight() == 0 || taken <= window / active);
        at_sender && at_receiver
    }
}
