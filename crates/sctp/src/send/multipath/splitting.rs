//! Buffer splitting (Dreibholz et al., GLOBECOM 2010).

use super::super::outstanding::{OutstandingData, PathFlight};
use super::ConcurrentTransfer;
use crate::config::BufferSplitting;
use crate::identifier::PathId;
use crate::path::{AssociationPaths, PathState};

impl ConcurrentTransfer {
    /// Returns whether a path may take more of the send buffer of `send_buffer` bytes, and of the
    /// peer's window, of which `free` bytes are left. A path without data may always send a packet,
    /// or a small buffer would block everything.
    pub(super) fn has_share(
        &self,
        path: PathId,
        paths: &AssociationPaths,
        outstanding: &OutstandingData,
        send_buffer: usize,
        free: usize,
    ) -> bool {
        let Some(path_entry) = paths.get(path) else { return false };
        let active = paths.iter().filter(|path| path.state() == PathState::Active).count().max(1);
        let taken = |splitting| match splitting {
            BufferSplitting::None => None,
            BufferSplitting::Queued => {
                Some(outstanding.flight_on(path).map_or(0, PathFlight::queued))
            }
            BufferSplitting::Outstanding => Some(path_entry.outstanding()),
        };
        let packet = path_entry.mtu() + path_entry.overhead();
        let at_sender = taken(self.choices.sender_splitting)
            .is_none_or(|taken| taken == 0 || taken + packet <= send_buffer / active);
        let in_flight = outstanding.in_flight();
        let window = free + in_flight;
        let at_receiver = taken(self.choices.receiver_splitting)
            .is_none_or(|taken| taken == 0 || in_flight == 0 || taken <= window / active);
        at_sender && at_receiver
    }
}
