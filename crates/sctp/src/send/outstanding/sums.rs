//! The sums of outstanding data, recomputed from the chunks.

use alloc::vec;
use alloc::vec::Vec;

use super::{ChunkState, OutstandingData, PathFlight};

impl OutstandingData {
    /// Returns the number of chunks, which is the cost of recomputing.
    pub(in crate::send) fn len(&self) -> usize {
        self.chunks.len()
    }

    /// Checks every sum. Returns the bytes that are still in the send buffer.
    pub(in crate::send) fn check_sums(&self) -> usize {
        let mut waiting = vec![0; self.flights.len()];
        let mut queued = vec![0; self.flights.len()];
        let (mut in_flight, mut unreleased) = (0, 0);
        for chunk in self.chunks.iter() {
            let (number, length) = (usize::from(chunk.flight), usize::from(chunk.length));
            match chunk.state {
                ChunkState::InFlight => in_flight += length,
                ChunkState::Lost => waiting[number] += 1,
                ChunkState::Acknowledged | ChunkState::Abandoned => {}
            }
            if !chunk.released {
                unreleased += length;
                queued[number] += length;
            }
        }
        assert_eq!(in_flight, self.in_flight.get(), "bytes in flight");
        let counted: Vec<usize> =
            self.flights.iter().map(PathFlight::pending_retransmissions).collect();
        assert_eq!(waiting, counted, "chunks to be retransmitted, by path");
        if self.cuc.is_some() {
            let counted: Vec<usize> = self.flights.iter().map(PathFlight::queued).collect();
            assert_eq!(queued, counted, "bytes in the send buffer, by path");
        }
        unreleased
    }
}
