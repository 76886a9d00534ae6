//! What was sent and is not yet cumulatively acknowledged: the chunks by TSN, and of each path what is
//! under way on it and what is to be sent on it again.
//!
//! | file | job |
//! | --- | --- |
//! | `chunks` | the chunks by TSN |
//! | `flight` | one path |
//! | `transitions` | what becomes of a chunk, and of the sums with it |
//! | `sums` | the sums counted again |
//!
//! A chunk's state, its path and whether it is still in the send buffer change in `transitions` and
//! nowhere else, each together with the sums that it is a part of.

use alloc::vec::Vec;
use core::ops::Range;

use super::tally::Tally;
use crate::config::Cuc;
use crate::identifier::PathId;
use crate::path::MAX_PATHS;
use crate::serial::Tsn;

mod chunks;
mod flight;
#[cfg(any(test, debug_assertions))]
mod sums;
mod transitions;

pub(super) use chunks::{ChunkState, Chunks, SentChunk};
pub(super) use flight::{Flight, Recovery, Run, Seen, in_run};

/// Outstanding data.
#[derive(Debug)]
pub(super) struct Outstanding {
    chunks: Chunks,
    /// One for each path that was ever sent on; chunks refer to them by index.
    flights: Vec<Flight>,
    /// Bytes under way on all paths.
    in_flight: Tally,
    /// How it is told what a path waits for, where several paths are used at once.
    cuc: Option<Cuc>,
}

impl Outstanding {
    /// Nothing so far. `cuc`: if several paths are used at once.
    pub(super) fn new(initial: Tsn, cuc: Option<Cuc>) -> Self {
        Self { chunks: Chunks::new(initial), flights: Vec::new(), in_flight: Tally::default(), cuc }
    }

    /// The first TSN that is not cumulatively acknowledged.
    #[inline]
    pub(super) fn first(&self) -> Tsn {
        self.chunks.first()
    }

    /// The last TSN that is cumulatively acknowledged.
    #[inline]
    pub(super) fn cumulative(&self) -> Tsn {
        self.chunks.first().previous()
    }

    /// The TSN that the next new chunk gets.
    #[inline]
    pub(super) fn next(&self) -> Tsn {
        self.chunks.next()
    }

    /// The last TSN that was used.
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

    /// Bytes under way on all paths.
    #[inline]
    pub(super) fn in_flight(&self) -> usize {
        self.in_flight.get()
    }

    /// How it is told what a path waits for, where several paths are used at once.
    #[inline]
    pub(super) fn cuc(&self) -> Option<Cuc> {
        self.cuc
    }

    /// The numbers of all flights.
    pub(super) fn numbers(&self) -> Range<u8> {
        0..self.flights.len() as u8
    }

    #[inline]
    pub(super) fn flights(&self) -> &[Flight] {
        &self.flights
    }

    #[inline]
    pub(super) fn flights_mut(&mut self) -> &mut [Flight] {
        &mut self.flights
    }

    #[inline]
    pub(super) fn flight(&self, number: u8) -> &Flight {
        &self.flights[usize::from(number)]
    }

    #[inline]
    pub(super) fn flight_mut(&mut self, number: u8) -> &mut Flight {
        &mut self.flights[usize::from(number)]
    }

    /// A flight, and the chunks that it speaks of.
    #[inline]
    pub(super) fn flight_and_chunks(&mut self, number: u8) -> (&mut Flight, &Chunks) {
        (&mut self.flights[usize::from(number)], &self.chunks)
    }

    /// The flight of a path, if something was ever sent on it.
    #[inline]
    pub(super) fn flight_on(&self, path: PathId) -> Option<&Flight> {
        self.flights.iter().find(|flight| flight.path == Some(path))
    }

    /// The path that a flight is on.
    pub(super) fn path_of(&self, number: u8) -> Option<PathId> {
        self.flights.get(usize::from(number))?.path
    }

    /// The number of the flight of a path, if it has one.
    pub(super) fn number_on(&self, path: PathId) -> Option<u8> {
        let known = self.flights.iter().position(|flight| flight.path == Some(path))?;
        u8::try_from(known).ok()
    }

    /// The same; one is made if there is none. At most [`MAX_PATHS`] paths at a time have one.
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
        // Most associations have one path, and many associations are idle: no room is made for more.
        self.flights.reserve_exact(1);
        self.flights.push(Flight::new(path));
        u8::try_from(self.flights.len() - 1).ok()
    }

    /// The chunk that is to be sent again first on a path.
    pub(super) fn first_again(&mut self, number: u8) -> Option<Tsn> {
        self.flights[usize::from(number)].first_again(number, &self.chunks)
    }

    /// Takes the oldest run off a path.
    pub(super) fn take_oldest_run(&mut self, number: u8) -> Option<Run> {
        let flight = &mut self.flights[usize::from(number)];
        let run = flight.oldest(number, &self.chunks)?;
        flight.drop_oldest();
        Some(run)
    }

    /// The path of a flight is gone, and nothing waits on it any more.
    pub(super) fn leave_path(&mut self, number: u8) {
        let flight = &mut self.flights[usize::from(number)];
        debug_assert_eq!(flight.waiting(), 0, "chunks wait on a path that is gone");
        flight.clear();
        flight.path = None;
    }

    /// Forgets all that was sent; TSNs go on with `initial`.
    pub(super) fn restart(&mut self, initial: Tsn) {
        self.flights.iter_mut().for_each(Flight::restart);
        self.chunks = Chunks::new(initial);
        self.in_flight = Tally::default();
    }

    /// TSNs start anew. Says whether nothing was outstanding, without which they cannot.
    pub(super) fn renumber(&mut self, initial: Tsn) -> bool {
        if !self.chunks.is_empty() {
            return false;
        }
        self.chunks = Chunks::new(initial);
        true
    }

    /// Gives memory back, if nothing is outstanding.
    pub(super) fn shrink(&mut self) {
        self.chunks.shrink();
        self.flights.iter_mut().for_each(Flight::shrink);
    }
}
