//! Congestion window update for CMT (CUC, Iyengar et al. 2006 §3.2): the pseudo-cumulative TSNs of
//! a path.

use super::super::outstanding::{
    ChunkState, OutstandingChunks, OutstandingData, PathFlight, SentChunk, in_run,
};
use crate::config::CucVersion;
use crate::serial::Tsn;

/// The lowest outstanding TSNs of a path.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::send) struct LowestTsns {
    /// The lowest of those sent once; with CUC v1, of all.
    first: Option<Tsn>,
    /// The lowest of those retransmitted.
    retransmitted: Option<Tsn>,
}

impl LowestTsns {
    /// Returns whether an acknowledged chunk is the one that the path waited for.
    #[inline]
    fn is_reached(&self, tsn: Tsn) -> bool {
        self.first == Some(tsn) || self.retransmitted == Some(tsn)
    }
}

impl PathFlight {
    /// Returns the lowest TSN in flight or to be retransmitted on the path, as far as known.
    fn lowest(&mut self, number: u8, chunks: &OutstandingChunks) -> Option<Tsn> {
        let waiting = if self.pending_retransmissions() > 0 {
            self.first_retransmission(number, chunks)
        } else {
            None
        };
        let points = [self.lowest.first, self.lowest.retransmitted, waiting];
        points
            .into_iter()
            .flatten()
            .reduce(|one, other| if other.is_before(one) { other } else { one })
    }

    /// Returns the chunk that was sent first of those in flight that are `wanted`.
    fn find(
        &self,
        number: u8,
        chunks: &OutstandingChunks,
        wanted: impl Fn(&SentChunk) -> bool,
    ) -> Option<Tsn> {
        self.runs().find_map(|run| {
            (0..u32::from(run.count)).map(|offset| run.first.plus(offset)).find(|tsn| {
                let chunk = chunks.get(*tsn);
                chunk.is_some_and(|chunk| in_run(chunk, run, number) && wanted(chunk))
            })
        })
    }
}

impl OutstandingData {
    /// Records the acknowledgement of a chunk that was in flight or to be retransmitted: the window
    /// of its path may grow if the path waited for it.
    #[inline]
    pub(in crate::send) fn on_point_acknowledged(&mut self, tsn: Tsn, before: &SentChunk) {
        let waited = matches!(before.state, ChunkState::InFlight | ChunkState::Lost);
        if self.cuc().is_none() || !waited {
            return;
        }
        if let Some(flight) = self.flights_mut().get_mut(usize::from(before.flight)) {
            flight.seen.pseudo_cumulative |= flight.lowest.is_reached(tsn);
            flight.seen.lowest = Some(
                flight.seen.lowest.map_or(tsn, |low| if tsn.is_before(low) { tsn } else { low }),
            );
        }
    }

    /// Updates the TSN that each path waits for.
    pub(in crate::send) fn update_points(&mut self) {
        let Some(cuc) = self.cuc() else { return };
        let by_version_2 = cuc == CucVersion::V2;
        for number in self.numbers() {
            let (flight, chunks) = self.flight_and_chunks(number);
            // Drops obsolete entries.
            if flight.oldest(number, chunks).is_none() {
                flight.lowest.first = None;
                flight.lowest.retransmitted = None;
                continue;
            }
            let once = |chunk: &SentChunk| chunk.transmissions == 1 || !by_version_2;
            let holds = |tsn: Tsn, wanted: &dyn Fn(&SentChunk) -> bool| {
                chunks.get(tsn).is_some_and(|chunk| {
                    let is_kept = chunk.state == ChunkState::InFlight
                        || (!by_version_2 && chunk.state == ChunkState::Lost);
                    chunk.flight == number && is_kept && wanted(chunk)
                })
            };
            if !flight.lowest.first.is_some_and(|tsn| holds(tsn, &once)) {
                flight.lowest.first = flight.find(number, chunks, once);
            }
            let is_retransmission = |chunk: &SentChunk| chunk.transmissions > 1;
            if by_version_2
                && flight.lowest.retransmitted.is_some_and(|tsn| !holds(tsn, &is_retransmission))
            {
                flight.lowest.retransmitted = flight.find(number, chunks, is_retransmission);
            }
        }
    }

    /// Records a chunk sent on a path, which may be the one that the path waits for.
    #[inline]
    pub(in crate::send) fn note_lowest(&mut self, number: u8, tsn: Tsn, is_retransmission: bool) {
        let Some(cuc) = self.cuc() else { return };
        let is_retransmission = is_retransmission && cuc == CucVersion::V2;
        let Some(flight) = self.flights_mut().get_mut(usize::from(number)) else { return };
        let lowest = &mut flight.lowest;
        let point = if is_retransmission { &mut lowest.retransmitted } else { &mut lowest.first };
        if point.is_none_or(|known| tsn.is_before(known)) {
            *point = Some(tsn);
        }
    }

    /// Returns whether the pseudo-cumulative TSN of a path advanced; without CUC, the cumulative
    /// TSN ack decides.
    pub(in crate::send) fn has_advanced(&self, number: u8) -> bool {
        let seen = &self.flight(number).seen;
        match self.cuc() {
            Some(cuc) if cuc != CucVersion::None => seen.pseudo_cumulative,
            _ => seen.cumulative,
        }
    }

    /// Returns whether all data sent on a path up to `exit` has arrived: its recovery is over
    /// although the cumulative TSN ack waits for other paths.
    pub(in crate::send) fn is_recovered(&mut self, number: u8, exit: Tsn) -> bool {
        if self.cuc().is_none() {
            return false;
        }
        let (flight, chunks) = self.flight_and_chunks(number);
        flight.lowest(number, chunks).is_none_or(|lowest| lowest.is_after(exit))
    }
}
