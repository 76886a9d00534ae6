//! The TSN up to which the peer must skip abandoned data (RFC 3758 §3.5).

use alloc::vec::Vec;
use core::time::Duration;

use super::outstanding::{ChunkState, OutstandingData, SentChunk};
use super::queue::SendQueue;
use crate::identifier::{PathId, StreamId};
use crate::path::AssociationPaths;
use crate::serial::Tsn;

/// The minimum time after which a FORWARD-TSN is repeated without its timer.
const MIN_REPEAT_INTERVAL: Duration = Duration::from_millis(10);

/// The advanced peer ack point, and when it was sent.
#[derive(Debug)]
pub(super) struct ForwardTsnState {
    /// All up to here is acknowledged or abandoned (`Advanced.Peer.Ack.Point`).
    point: Tsn,
    /// Whether a FORWARD-TSN has to be sent.
    is_due: bool,
    /// The path and the time of the last one.
    last: Option<(PathId, Duration)>,
}

/// The last message that is skipped on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SkippedMessage {
    pub(super) stream: StreamId,
    pub(super) unordered: bool,
    pub(super) number: u32,
}

impl ForwardTsnState {
    pub(super) fn new(initial: Tsn) -> Self {
        Self { point: initial.previous(), is_due: false, last: None }
    }

    /// Restarts the TSNs.
    pub(super) fn restart(&mut self, initial: Tsn) {
        (self.point, self.is_due) = (initial.previous(), false);
    }

    /// Returns whether a FORWARD-TSN has to be sent.
    pub(super) fn is_due(&self) -> bool {
        self.is_due
    }

    /// Returns the path of the last FORWARD-TSN.
    pub(super) fn sent_on(&self) -> Option<PathId> {
        self.last.map(|(path, _)| path)
    }

    /// Returns whether the peer has not yet skipped some abandoned data.
    pub(super) fn is_ahead(&self, outstanding: &OutstandingData) -> bool {
        self.point.is_after(outstanding.cumulative())
    }

    /// Sends another FORWARD-TSN if one is still needed, as the last one or its timer is gone.
    pub(super) fn make_due(&mut self, outstanding: &OutstandingData) {
        self.is_due |= self.is_ahead(outstanding);
    }

    /// Records that the cumulative TSN ack advanced.
    pub(super) fn note_advance(&mut self, outstanding: &OutstandingData) {
        let cumulative = outstanding.cumulative();
        if cumulative.is_after(self.point) {
            self.point = cumulative;
        }
        self.is_due &= self.is_ahead(outstanding);
        self.advance(outstanding);
    }

    /// Advances the point over abandoned chunks (RFC 3758 §3.5, C2).
    pub(super) fn advance(&mut self, outstanding: &OutstandingData) {
        let before = self.point;
        let abandoned = |chunk: &SentChunk| chunk.state == ChunkState::Abandoned;
        while outstanding.get(self.point.next()).is_some_and(abandoned) {
            self.point = self.point.next();
        }
        self.is_due |= self.point != before;
    }

    /// Repeats the FORWARD-TSN if the peer still acknowledges less although it must have received
    /// it (RFC 3758 §3.5, C3), as T3 backs off with each loss.
    pub(super) fn repeat(
        &mut self,
        now: Duration,
        outstanding: &OutstandingData,
        paths: &AssociationPaths,
    ) {
        let Some((path, at)) = self.last.filter(|_| self.is_ahead(outstanding)) else { return };
        let round_trip = paths.get(path).and_then(|path| path.rto.smoothed()).unwrap_or_default();
        // A quarter of margin for variation, and no repetition within one tick of a coarse clock.
        let interval = (round_trip + round_trip / 4).max(MIN_REPEAT_INTERVAL);
        self.is_due |= now >= at.saturating_add(interval);
    }

    /// Records a FORWARD-TSN to `point`: what did not fit the list follows once the peer has
    /// advanced that far (RFC 3758 §3.5, C4).
    pub(super) fn note_sent(&mut self, point: Tsn, path: PathId, now: Duration) {
        *self = Self { point, is_due: false, last: Some((path, now)) };
    }

    /// Returns the TSN that a FORWARD-TSN with at most `max_streams` streams can contain, and the
    /// list.
    pub(super) fn skipped(
        &self,
        max_streams: usize,
        interleaving: bool,
        outstanding: &OutstandingData,
        queue: &SendQueue,
    ) -> (Tsn, Vec<SkippedMessage>) {
        let mut list: Vec<SkippedMessage> = Vec::new();
        let mut point = outstanding.cumulative();
        while point.is_before(self.point) {
            let Some(chunk) = outstanding.get(point.next()) else { break };
            let Some(message) = queue.message(chunk.message) else { break };
            let Some(stream) = queue.stream(message.stream) else { break };
            let (stream, unordered) = (stream.id, message.unordered);
            let entry = SkippedMessage { stream, unordered, number: message.number };
            let known = list
                .iter()
                .rposition(|known| known.stream == stream && known.unordered == unordered);
            match known {
                // The numbers of a stream increase with the TSNs.
                Some(at) => list[at] = entry,
                // Without interleaving, unordered messages have no number to skip.
                None if unordered && !interleaving => {}
                None if list.len() >= max_streams => break,
                None => list.push(entry),
            }
            point = point.next();
        }
        (point, list)
    }
}
