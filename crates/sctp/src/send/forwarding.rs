//! How far the peer is told to skip what was given up (RFC 3758 §3.5).

use alloc::vec::Vec;
use core::time::Duration;

use super::outstanding::{ChunkState, Outstanding, SentChunk};
use super::queue::SendQueue;
use crate::identifier::{PathId, StreamId};
use crate::path::Paths;
use crate::serial::Tsn;

/// The least time after which a FORWARD-TSN is repeated without its timer.
const LEAST_PATIENCE: Duration = Duration::from_millis(10);

/// The point that the peer is told to go to, and when it was told.
#[derive(Debug)]
pub(super) struct Forwarding {
    /// All up to here is acknowledged or given up (`Advanced.Peer.Ack.Point`).
    point: Tsn,
    /// Whether a FORWARD-TSN is to be sent.
    is_due: bool,
    /// When the last one was sent, and on which path.
    last: Option<(PathId, Duration)>,
}

/// The last message that is skipped on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Skipped {
    pub(super) stream: StreamId,
    pub(super) unordered: bool,
    pub(super) number: u32,
}

impl Forwarding {
    pub(super) fn new(initial: Tsn) -> Self {
        Self { point: initial.previous(), is_due: false, last: None }
    }

    /// TSNs start anew.
    pub(super) fn restart(&mut self, initial: Tsn) {
        (self.point, self.is_due) = (initial.previous(), false);
    }

    /// Whether a FORWARD-TSN is to be sent.
    pub(super) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Whether the peer has yet to hear of something that was given up.
    pub(super) fn is_ahead(&self, outstanding: &Outstanding) -> bool {
        self.point.is_after(outstanding.cumulative())
    }

    /// What told the peer of it, or watched over that, is gone: it is told again, if there is something
    /// to tell.
    pub(super) fn make_due(&mut self, outstanding: &Outstanding) {
        self.is_due |= self.is_ahead(outstanding);
    }

    /// The cumulative TSN advanced.
    pub(super) fn note_advance(&mut self, outstanding: &Outstanding) {
        let cumulative = outstanding.cumulative();
        if cumulative.is_after(self.point) {
            self.point = cumulative;
        }
        self.is_due &= self.is_ahead(outstanding);
        self.advance(outstanding);
    }

    /// Moves the point over chunks that were given up (RFC 3758 §3.5, C2).
    pub(super) fn advance(&mut self, outstanding: &Outstanding) {
        let before = self.point;
        let given_up = |chunk: &SentChunk| chunk.state == ChunkState::Abandoned;
        while outstanding.get(self.point.next()).is_some_and(given_up) {
            self.point = self.point.next();
        }
        self.is_due |= self.point != before;
    }

    /// The peer still acknowledges less than it was told to skip. Once it must have heard of that, it
    /// is told again (RFC 3758 §3.5, C3), as T3 backs off with each loss.
    pub(super) fn repeat(&mut self, now: Duration, outstanding: &Outstanding, paths: &Paths) {
        let Some((path, at)) = self.last.filter(|_| self.is_ahead(outstanding)) else { return };
        let round_trip = paths.get(path).and_then(|path| path.rto.smoothed()).unwrap_or_default();
        // What varies gets a quarter, and nobody is told twice within one tick of a coarse clock.
        let patience = (round_trip + round_trip / 4).max(LEAST_PATIENCE);
        self.is_due |= now >= at.saturating_add(patience);
    }

    /// The peer is told to go to `point`: what did not fit the list is told once it has gone as far as
    /// that (RFC 3758 §3.5, C4).
    pub(super) fn note_sent(&mut self, point: Tsn, path: PathId, now: Duration) {
        *self = Self { point, is_due: false, last: Some((path, now)) };
    }

    /// How far the peer can be told to go with a list of at most so many streams, and the list.
    pub(super) fn skipped(
        &self,
        most: usize,
        interleaving: bool,
        outstanding: &Outstanding,
        queue: &SendQueue,
    ) -> (Tsn, Vec<Skipped>) {
        let mut list: Vec<Skipped> = Vec::new();
        let mut point = outstanding.cumulative();
        while point.is_before(self.point) {
            let Some(chunk) = outstanding.get(point.next()) else { break };
            let Some(message) = queue.message(chunk.message) else { break };
            let Some(stream) = queue.stream(message.stream) else { break };
            let (stream, unordered) = (stream.id, message.unordered);
            let entry = Skipped { stream, unordered, number: message.number };
            let known = list
                .iter()
                .rposition(|known| known.stream == stream && known.unordered == unordered);
            match known {
                // Numbers of a stream rise with the TSNs.
                Some(at) => list[at] = entry,
                // Without interleaving, unordered messages have no number to skip.
                None if unordered && !interleaving => {}
                None if list.len() >= most => break,
                None => list.push(entry),
            }
            point = point.next();
        }
        (point, list)
    }
}
