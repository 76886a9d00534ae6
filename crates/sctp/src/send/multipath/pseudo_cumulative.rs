//! Congestion window update for CMT (CUC, Iyengar et al. 2006 §3.2): the pseudo-cumulative points
//! of a path.

use super::super::outstanding::{ChunkState, Chunks, Flight, Outstanding, SentChunk, in_run};
use crate::config::Cuc;
use crate::serial::Tsn;

/// The lowest TSNs that a path has outstanding.
#[derive(Clone, Copy, Debug, Default)]
pub(in crate::send) struct Lowest {
    /// Of those sent once; with CUC v1, of all.
    first: Option<Tsn>,
    /// Of those sent again.
    again: Option<Tsn>,
}

impl Lowest {
    /// Whether a chunk that was acknowledged is what the path waited for.
    #[inline]
    fn is_reached(&self, tsn: Tsn) -> bool {
        self.first == Some(tsn) || self.again == Some(tsn)
    }
}

impl Flight {
    /// The lowest TSN that is under way or waits on the path, as far as the points tell.
    fn lowest(&mut self, number: u8, chunks: &Chunks) -> Option<Tsn> {
        let waiting = if self.waiting() > 0 { self.first_again(number, chunks) } else { None };
        let points = [self.lowest.first, self.lowest.again, waiting];
        points
            .into_iter()
            .flatten()
            .reduce(|one, other| if other.is_before(one) { other } else { one })
    }

    /// The chunk sent first of those that are under way and that are `wanted`.
    fn find(
        &self,
        number: u8,
        chunks: &Chunks,
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

impl Outstanding {
    /// A chunk that was under way or waited was acknowledged: the window of its path may grow if the
    /// path waited for it.
    #[inline]
    pub(in crate::send) fn note_point(&mut self, tsn: Tsn, before: &SentChunk) {
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

    /// Finds what each path waits for now.
    pub(in crate::send) fn find_points(&mut self) {
        let Some(cuc) = self.cuc() else { return };
        let by_version_2 = cuc == Cuc::V2;
        for number in self.numbers() {
            let (flight, chunks) = self.flight_and_chunks(number);
            // Drops what is over.
            if flight.oldest(number, chunks).is_none() {
                flight.lowest.first = None;
                flight.lowest.again = None;
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
            let is_again = |chunk: &SentChunk| chunk.transmissions > 1;
            if by_version_2 && flight.lowest.again.is_some_and(|tsn| !holds(tsn, &is_again)) {
                flight.lowest.again = flight.find(number, chunks, is_again);
            }
        }
    }

    /// A chunk was sent on a path: it may be what the path waits for.
    #[inline]
    pub(in crate::send) fn note_lowest(&mut self, number: u8, tsn: Tsn, is_again: bool) {
        let Some(cuc) = self.cuc() else { return };
        let is_again = is_again && cuc == Cuc::V2;
        let Some(flight) = self.flights_mut().get_mut(usize::from(number)) else { return };
        let lowest = &mut flight.lowest;
        let point = if is_again { &mut lowest.again } else { &mut lowest.first };
        if point.is_none_or(|known| tsn.is_before(known)) {
            *point = Some(tsn);
        }
    }

    /// Whether the pseudo-cumulative point of a path advanced; the cumulative TSN says so where
    /// there are no such points.
    pub(in crate::send) fn has_advanced(&self, number: u8) -> bool {
        let seen = &self.flight(number).seen;
        match self.cuc() {
            Some(cuc) if cuc != Cuc::None => seen.pseudo_cumulative,
            _ => seen.cumulative,
        }
    }

    /// Whether all that was sent on a path up to `exit` has arrived: its recovery is over though
    /// the cumulative TSN waits for other paths.
    pub(in crate::send) fn is_recovered(&mut self, number: u8, exit: Tsn) -> bool {
        if self.cuc().is_none() {
            return false;
        }
        let (flight, chunks) = self.flight_and_chunks(number);
        flight.lowest(number, chunks).is_none_or(|lowest| lowest.is_after(exit))
    }
}
