//! Spurious retransmissions: the peer reports a duplicate, or acknowledges a chunk before it was
//! retransmitted. If that holds for all chunks of a recovery, there was no loss.

use core::time::Duration;

use super::super::outstanding::{OutstandingData, PathFlight};
use crate::path::AssociationPaths;
use crate::serial::Tsn;
use crate::wire::SackChunk;

impl PathFlight {
    /// Clears `count` suspects up to `tsn` that were not lost after all. Returns whether they were
    /// the last ones of the recovery.
    pub(in crate::send) fn clear_suspects(&mut self, tsn: Tsn, count: u32) -> bool {
        let Some(recovery) = &mut self.recovery else { return false };
        if recovery.suspects == 0 || tsn.is_after(recovery.exit) {
            return false;
        }
        recovery.suspects = recovery.suspects.saturating_sub(count);
        if recovery.suspects > 0 {
            return false;
        }
        self.recovery = None;
        self.rack.on_spurious();
        true
    }
}

impl OutstandingData {
    /// Processes the duplicates that the peer reports.
    pub(in crate::send) fn note_duplicates(
        &mut self,
        now: Duration,
        sack: &SackChunk,
        paths: &mut AssociationPaths,
    ) {
        for duplicate in sack.duplicates() {
            for flight in self.flights_mut() {
                flight.probe.note_duplicate(duplicate);
                if flight.clear_suspects(duplicate, 1)
                    && let Some(path) = flight.path.and_then(|id| paths.get_mut(id))
                {
                    path.congestion.on_spurious(now);
                }
            }
        }
    }
}
