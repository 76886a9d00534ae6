//! Data that was sent and is not yet cumulatively acknowledged: the chunks by TSN, and for each
//! path what is in flight and what has to be retransmitted.
//!
//! | file | purpose |
//! | --- | --- |
//! | `chunks` | the chunks by TSN |
//! | `flight` | the state of one path |
//! | `transitions` | state changes of chunks, with the sums |
//! | `sums` | the sums recomputed |
//!
//! A chunk's state, its path and whether it is still in the send buffer only change in
//! `transitions`, each together with the sums that it is part of.

use alloc::vec::Vec;
use core::ops::Range;

use super::byte_tally::ByteTally;
use crate::config::CucVersion;
use crate::identifier::PathId;
use crate::path::MAX_PATHS;
use crate::serial::Tsn;

mod chunks;
mod flight;
#[cfg(any(test, debug_assertions))]
mod sums;
mod transitions;

pub(super) use chunks::{ChunkState, OutstandingChunks, SentChunk};
pub(super) use flight::{PacketRun, PathFlight, RecoveryPeriod, SackFindings, in_run};

/// Outstanding data.
#[derive(Debug)]
pub(super) struct OutstandingData {
    chunks: OutstandingChunks,
    /// One for each path that has ever been sent on; chunks refer to them by index.
    flights: Vec<PathFlight>,
    /// Bytes in flight on all paths.
    in_flight: ByteTally,
    /// The congestion window update algorithm, if several paths are used at once.
    cuc: Option<CucVersion>,
}

impl OutstandingData {
    /// Creates the state. `cuc` is set if several paths are used at once.
    pub(super) fn new(initial: Tsn, cuc: Option<CucVersion>) -> Self {
        Self {
            chunks: OutstandingChunks::new(initial),
            flights: Vec::new(),
            in_flight: ByteTally::default(),
            cuc,
        }
    }

    /// Returns the first TSN that is not cumulatively acknowledged.
    #[inline]
    pub(super) fn first(&self) -> Tsn {
        self.chunks.first()
    }

    /// Returns the last TSN that is cumulatively acknowledged.
    #[inline]
    pub(super) fn cumulative(&self) -> Tsn {
        self.chunks.first().previous()
    }

    /// Returns the TSN of the next new chunk.
    #[inline]
    pub(super) fn next(&self) -> Tsn {
        self.chunks.next()
    }

    /// Returns the last assigned TSN.
    #[inline]
    pub(super) fn last(&self) -> Tsn {
        self.chunks.next().previous()
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.chunks.is_empty()
    }

    #[inline]
    pub(super) fn get(&self, tsn: Tsn) -> Option<&SentChunk> {
        self.chunks.get(tsn)
    }

    /// Bytes in flight on all paths.
    #[inline]
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.get()
    }

    /// The congestion window update algorithm, if several paths are used at once.
    #[inline]
    pub(super) fn cuc(&self) -> Option<CucVersion> {
        self.cuc
    }

    /// Returns the indices of all flights.
    pub(super) fn numbers(&self) -> Range<u8> {
        0..self.flights.len() as u8
    }

    #[inline]
    pub(super) fn flights(&self) -> &[PathFlight] {
        &self.flights
    }

    #[inline]
    pub(super) fn flights_mut(&mut self) -> &mut [PathFlight] {
        &mut self.flights
    }

    #[inline]
    pub(super) fn flight(&self, number: u8) -> &PathFlight {
        &self.flights[usize::from(number)]
    }

    #[inline]
    pub(super) fn flight_mut(&mut self, number: u8) -> &mut PathFlight {
        &mut self.flights[usize::from(number)]
    }

    /// Returns a flight, and the chunks that it refers to.
    #[inline]
    pub(super) fn flight_and_chunks(
        &mut self,
        number: u8,
    ) -> (&mut PathFlight, &OutstandingChunks) {
        (&mut self.flights[usize::from(number)], &self.chunks)
    }

    /// Returns the flight of a path, if it has ever been sent on.
    #[inline]
    pub(super) fn flight_on(&self, path: PathId) -> Option<&PathFlight> {
        self.flights.iter().find(|flight| flight.path == Some(path))
    }

    /// Returns the path of a flight.
    pub(super) fn path_of(&self, number: u8) -> Option<PathId> {
        self.flights.get(usize::from(number))?.path
    }

    /// Returns the index of a path's flight, if it has one.
    #[inline]
    pub(super) fn number_on(&self, path: PathId) -> Option<u8> {
        let known = self.flights.iter().position(|flight| flight.path == Some(path))?;
        u8::try_from(known).ok()
    }

    /// Returns the index of a path's flight, creating one if necessary. At most [`MAX_PATHS`] paths
    /// have one at a time.
    #[inline]
    pub(super) fn number_for(&mut self, path: PathId) -> Option<u8> {
        if let Some(known) = self.number_on(path) {
            return Some(known);
        }
        if let Some(free) = self.flights.iter().position(|flight| flight.path.is_none()) {
            self.flights[free].reuse(path);
            return u8::try_from(free).ok();
        }
        if self.flights.len() >= MAX_PATHS {
            return None;
        }
        // Most associations have one path, and many are idle: no spare capacity.
        self.flights.reserve_exact(1);
        self.flights.push(PathFlight::new(path));
        u8::try_from(self.flights.len() - 1).ok()
    }

    /// Returns the chunk to be retransmitted first on a path.
    pub(super) fn first_retransmission(&mut self, number: u8) -> Option<Tsn> {
        self.flights[usize::from(number)].first_retransmission(number, &self.chunks)
    }

    /// Removes the oldest run of a path.
    pub(super) fn take_oldest_run(&mut self, number: u8) -> Option<PacketRun> {
        let flight = &mut self.flights[usize::from(number)];
        let run = flight.oldest(number, &self.chunks)?;
        flight.drop_oldest();
        Some(run)
    }

    /// Detaches a flight from its path, which was removed.
    pub(super) fn detach_path(&mut self, number: u8) {
        let flight = &mut self.flights[usize::from(number)];
        debug_assert_eq!(
            flight.pending_retransmissions(),
            0,
            "chunks are queued on a removed path"
        );
        flight.clear();
        flight.path = None;
    }

    /// Forgets everything sent; TSNs continue with `initial`.
    pub(super) fn restart(&mut self, initial: Tsn) {
        self.flights.iter_mut().for_each(PathFlight::restart);
        self.chunks = OutstandingChunks::new(initial);
        self.in_flight = ByteTally::default();
    }

    /// Restarts the TSNs. Returns false if data is outstanding, which prevents it.
    pub(super) fn renumber(&mut self, initial: Tsn) -> bool {
        if !self.chunks.is_empty() {
            return false;
        }
        self.chunks = OutstandingChunks::new(initial);
        true
    }

    /// Frees memory, if nothing is outstanding.
    pub(super) fn shrink(&mut self) {
        self.chunks.shrink();
        self.flights.iter_mut().for_each(PathFlight::shrink);
    }
}
