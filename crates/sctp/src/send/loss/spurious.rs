//! What was believed lost and had arrived: the peer got it twice, and says so, or acknowledges it
//! before it was sent again. If that goes for all that a recovery was about, there was no loss.

use core::time::Duration;

use super::super::outstanding::{Flight, Outstanding};
use crate::path::Paths;
use crate::serial::Tsn;
use crate::wire::SackChunk;

impl Flight {
    /// So many chunks up to `tsn` were not lost after all. Says whether that was the last of those
    /// that the recovery is about.
    pub(in crate::send) fn clear_suspect(&mut self, tsn: Tsn, count: u32) -> bool {
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

impl Outstanding {
    /// Takes in what the peer reports as received twice.
    pub(in crate::send) fn note_duplicates(
        &mut self,
        now: Duration,
        sack: &SackChunk,
        paths: &mut Paths,
    ) {
        for duplicate in sack.duplicates() {
            for flight in self.flights_mut() {
                flight.probe.note_duplicate(duplicate);
                if flight.clear_suspect(duplicate, 1)
                    && let Some(path) = flight.path.and_then(|id| paths.get_mut(id))
                {
                    path.congestion.on_spurious(now);
                }
            }
        }
    }
}
