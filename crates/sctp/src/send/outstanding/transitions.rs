//! The state changes of a chunk: sent, acknowledged, lost, retransmitted, reneged, abandoned. The
//! sums that it is part of change with it.

use core::time::Duration;

use super::{ChunkState, OutstandingData, SentChunk};
use crate::congestion::PacketNumber;
use crate::identifier::PathId;
use crate::path::AssociationPaths;
use crate::send::queue::MessageId;
use crate::serial::Tsn;

impl OutstandingData {
    /// Records a new chunk that is sent.
    #[inline]
    pub(in crate::send) fn send(&mut self, now: Duration, chunk: SentChunk) {
        debug_assert_eq!(chunk.state, ChunkState::InFlight);
        let (tsn, length) = (self.chunks.next(), usize::from(chunk.length));
        self.chunks.push(chunk);
        self.in_flight.add(length);
        self.flights[usize::from(chunk.flight)].on_sent(chunk.packet, now, tsn);
        self.enqueue_on(chunk.flight, length);
        self.note_lowest(chunk.flight, tsn, false);
    }

    /// Records the retransmission in this packet of the chunk that [`Self::first_retransmission`]
    /// returned.
    #[inline]
    pub(in crate::send) fn send_retransmission(
        &mut self,
        now: Duration,
        tsn: Tsn,
        number: u8,
        packet: PacketNumber,
    ) {
        let Some(chunk) = self.chunks.get_mut(tsn) else { return };
        debug_assert_eq!((chunk.state, chunk.flight), (ChunkState::Lost, number));
        chunk.state = ChunkState::InFlight;
        chunk.packet = packet;
        chunk.transmissions = chunk.transmissions.saturating_add(1);
        chunk.missing = 0;
        self.in_flight.add(chunk.length.into());
        let flight = &mut self.flights[usize::from(number)];
        flight.pop_retransmission();
        flight.on_sent(packet, now, tsn);
        self.note_lowest(number, tsn, true);
    }

    /// Uses up a TSN without sending it: the end of a message that is abandoned when partly sent.
    pub(in crate::send) fn skip(&mut self, message: MessageId, offset: u32) {
        self.chunks.push(SentChunk {
            message,
            offset,
            fragment: 0,
            packet: PacketNumber(0),
            length: 0,
            transmissions: 0,
            flight: 0,
            state: ChunkState::Abandoned,
            missing: 0,
            released: true,
            fast_retransmitted: false,
            reneged: false,
            moved: false,
        });
    }

    /// Removes the chunk with the first TSN, which is cumulatively acknowledged, and returns it.
    #[inline]
    pub(in crate::send) fn pop(&mut self) -> Option<SentChunk> {
        let chunk = self.chunks.pop()?;
        self.stop_tracking(&chunk);
        if !chunk.released {
            self.dequeue_from(chunk.flight, chunk.length.into());
        }
        Some(chunk)
    }

    /// Marks a chunk as acknowledged by a gap ack block. Returns its previous state.
    #[inline]
    pub(in crate::send) fn acknowledge(&mut self, tsn: Tsn) -> Option<SentChunk> {
        let chunk = self.chunks.get_mut(tsn)?;
        let before = *chunk;
        if before.state != ChunkState::Abandoned {
            chunk.state = ChunkState::Acknowledged;
            self.stop_tracking(&before);
        }
        Some(before)
    }

    /// Releases a non-renegable chunk from the send buffer. Returns its previous state.
    pub(in crate::send) fn release(&mut self, tsn: Tsn) -> Option<SentChunk> {
        let chunk = self.chunks.get_mut(tsn)?;
        let before = *chunk;
        chunk.released = true;
        if !before.released {
            self.dequeue_from(before.flight, before.length.into());
        }
        Some(before)
    }

    /// Abandons a chunk, if it belongs to the message. Returns its previous state.
    pub(in crate::send) fn abandon(&mut self, tsn: Tsn, message: MessageId) -> Option<SentChunk> {
        let chunk = self.chunks.get_mut(tsn)?;
        if chunk.message != message || chunk.state == ChunkState::Abandoned {
            return None;
        }
        let before = *chunk;
        chunk.state = ChunkState::Abandoned;
        chunk.released = true;
        self.stop_tracking(&before);
        if !before.released {
            self.dequeue_from(before.flight, before.length.into());
        }
        Some(before)
    }

    /// Marks a chunk in flight for retransmission on path `to`. Returns its previous state and
    /// path.
    pub(in crate::send) fn lose(
        &mut self,
        tsn: Tsn,
        to: PathId,
    ) -> Option<(SentChunk, Option<PathId>)> {
        let chunk = self.chunks.get_mut(tsn).filter(|it| it.state == ChunkState::InFlight)?;
        let before = *chunk;
        chunk.state = ChunkState::Lost;
        chunk.missing = 0;
        self.in_flight.subtract(before.length.into());
        let path = self.path_of(before.flight);
        self.queue_retransmission(tsn, to);
        Some((before, path))
    }

    /// Moves the first retransmission of a path to path `to`. Returns whether that is another path.
    pub(in crate::send) fn move_retransmission(&mut self, number: u8, to: PathId) -> bool {
        let Some(tsn) = self.first_retransmission(number) else { return false };
        self.flights[usize::from(number)].pop_retransmission();
        self.queue_retransmission(tsn, to);
        self.chunks.get(tsn).is_some_and(|chunk| chunk.flight != number)
    }

    /// Handles reneging on a chunk: it counts as in flight again, with one missing report, and T3
    /// covers it (RFC 9260 §6.2.1 D iii).
    pub(in crate::send) fn on_reneged(
        &mut self,
        now: Duration,
        tsn: Tsn,
        paths: &mut AssociationPaths,
    ) {
        let max = self.max_entries();
        let Some(chunk) = self.chunks.get_mut(tsn) else { return };
        if chunk.state != ChunkState::Acknowledged {
            return;
        }
        chunk.missing = 1;
        chunk.reneged = true;
        let (number, length) = (chunk.flight, usize::from(chunk.length));
        let flight = self.flights.get_mut(usize::from(number));
        let path = flight.as_ref().and_then(|flight| flight.path);
        let path = path.and_then(|id| paths.get_mut(id));
        let (Some(flight), Some(path)) = (flight, path) else {
            // The path has been removed: no timer covers the chunk.
            chunk.state = ChunkState::Lost;
            let to = paths.primary();
            return self.queue_retransmission(tsn, to);
        };
        // Missing reports only count for packets that were sent after it: none so far.
        let packet = path.on_reneged(length);
        chunk.state = ChunkState::InFlight;
        chunk.packet = packet;
        self.in_flight.add(length);
        if path.t3.is_none() {
            path.t3 = Some(now.saturating_add(path.rto.current()));
            flight.timed = Some(packet);
        }
        flight.on_reneged(packet, now, tsn);
        flight.compact(number, &self.chunks, max);
        self.note_lowest(number, tsn, true);
    }

    /// Adds missing reports for a chunk (RFC 9260 §7.2.4). Once it has `enough`, marks it as lost,
    /// once and for all, and returns it.
    pub(in crate::send) fn report_missing(
        &mut self,
        tsn: Tsn,
        reports: u8,
        enough: u8,
    ) -> Option<SentChunk> {
        let chunk = self.chunks.get_mut(tsn)?;
        chunk.missing = chunk.missing.saturating_add(reports);
        chunk.fast_retransmitted = chunk.missing >= enough;
        chunk.fast_retransmitted.then_some(*chunk)
    }

    /// Removes a chunk that is no longer in flight or to be retransmitted from the sums.
    #[inline]
    fn stop_tracking(&mut self, before: &SentChunk) {
        match before.state {
            ChunkState::InFlight => self.in_flight.subtract(before.length.into()),
            ChunkState::Lost => {
                if let Some(flight) = self.flights.get_mut(usize::from(before.flight)) {
                    flight.remove_retransmission();
                }
            }
            ChunkState::Acknowledged | ChunkState::Abandoned => {}
        }
    }

    /// Queues a retransmission on a path.
    fn queue_retransmission(&mut self, tsn: Tsn, to: PathId) {
        let target = self.number_for(to).unwrap_or_default();
        let max = self.max_entries();
        let Some(chunk) = self.chunks.get_mut(tsn) else { return };
        let from = core::mem::replace(&mut chunk.flight, target);
        chunk.moved |= from != target;
        let moved = if chunk.released { 0 } else { usize::from(chunk.length) };
        self.dequeue_from(from, moved);
        self.enqueue_on(target, moved);
        if let Some(flight) = self.flights.get_mut(usize::from(target)) {
            flight.add_retransmission(tsn);
            flight.compact(target, &self.chunks, max);
        }
    }

    /// Returns the number of entries of a flight above which obsolete ones are removed.
    fn max_entries(&self) -> usize {
        2 * self.chunks.len() + 64
    }

    #[inline]
    fn enqueue_on(&mut self, number: u8, bytes: usize) {
        if self.cuc.is_some()
            && let Some(flight) = self.flights.get_mut(usize::from(number))
        {
            flight.enqueue(bytes);
        }
    }

    #[inline]
    fn dequeue_from(&mut self, number: u8, bytes: usize) {
        if self.cuc.is_some()
            && let Some(flight) = self.flights.get_mut(usize::from(number))
        {
            flight.dequeue(bytes);
        }
    }
}
