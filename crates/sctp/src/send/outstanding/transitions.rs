//! What becomes of a chunk: sent, acknowledged, lost, sent again, taken back, given up. The sums that
//! it is a part of change with it.

use core::time::Duration;

use super::{ChunkState, Outstanding, SentChunk};
use crate::congestion::PacketNumber;
use crate::identifier::PathId;
use crate::path::Paths;
use crate::send::queue::MessageId;
use crate::serial::Tsn;

impl Outstanding {
    /// A new chunk is sent.
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

    /// A chunk that waited on a path, the one that [`Self::first_again`] gave, is sent in this packet.
    #[inline]
    pub(in crate::send) fn send_waiting(
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
        flight.take_again();
        flight.on_sent(packet, now, tsn);
        self.note_lowest(number, tsn, true);
    }

    /// One more TSN is used up, though nothing is ever sent with it: the end of a message that is given
    /// up half sent.
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
            taken_back: false,
            moved: false,
        });
    }

    /// Takes the chunk of the first TSN, which is cumulatively acknowledged; gives it as it was.
    #[inline]
    pub(in crate::send) fn pop(&mut self) -> Option<SentChunk> {
        let chunk = self.chunks.pop()?;
        self.stop_waiting(&chunk);
        if !chunk.released {
            self.dequeue_from(chunk.flight, chunk.length.into());
        }
        Some(chunk)
    }

    /// A gap block acknowledges a chunk. Gives it as it was.
    #[inline]
    pub(in crate::send) fn acknowledge(&mut self, tsn: Tsn) -> Option<SentChunk> {
        let chunk = self.chunks.get_mut(tsn)?;
        let before = *chunk;
        if before.state != ChunkState::Abandoned {
            chunk.state = ChunkState::Acknowledged;
            self.stop_waiting(&before);
        }
        Some(before)
    }

    /// The peer cannot drop a chunk any more: it leaves the send buffer. Gives it as it was.
    pub(in crate::send) fn release(&mut self, tsn: Tsn) -> Option<SentChunk> {
        let chunk = self.chunks.get_mut(tsn)?;
        let before = *chunk;
        chunk.released = true;
        if !before.released {
            self.dequeue_from(before.flight, before.length.into());
        }
        Some(before)
    }

    /// A chunk of a message is given up, if it is one of its. Gives it as it was.
    pub(in crate::send) fn abandon(&mut self, tsn: Tsn, message: MessageId) -> Option<SentChunk> {
        let chunk = self.chunks.get_mut(tsn)?;
        if chunk.message != message || chunk.state == ChunkState::Abandoned {
            return None;
        }
        let before = *chunk;
        chunk.state = ChunkState::Abandoned;
        chunk.released = true;
        self.stop_waiting(&before);
        if !before.released {
            self.dequeue_from(before.flight, before.length.into());
        }
        Some(before)
    }

    /// A chunk that is under way is to be sent again, on path `to`. Gives it as it was, and the path
    /// that it was on.
    pub(in crate::send) fn lose(
        &mut self,
        tsn: Tsn,
        to: PathId,
    ) -> Option<(SentChunk, Option<PathId>)> {
        let chunk = self.chunks.get_mut(tsn).filter(|it| it.state == ChunkState::InFlight)?;
        let before = *chunk;
        chunk.state = ChunkState::Lost;
        chunk.missing = 0;
        self.in_flight.take(before.length.into());
        let path = self.path_of(before.flight);
        self.send_again(tsn, to);
        Some((before, path))
    }

    /// The first chunk that waits on a path waits on path `to` instead. Says whether that was another
    /// one.
    pub(in crate::send) fn move_waiting(&mut self, number: u8, to: PathId) -> bool {
        let Some(tsn) = self.first_again(number) else { return false };
        self.flights[usize::from(number)].take_again();
        self.send_again(tsn, to);
        self.chunks.get(tsn).is_some_and(|chunk| chunk.flight != number)
    }

    /// The peer dropped a chunk that it had reported: it counts as under way again, with one report
    /// that it is missing, and T3 watches over it (RFC 9260 §6.2.1 D iii).
    pub(in crate::send) fn take_back(&mut self, now: Duration, tsn: Tsn, paths: &mut Paths) {
        let most = self.most_remembered();
        let Some(chunk) = self.chunks.get_mut(tsn) else { return };
        if chunk.state != ChunkState::Acknowledged {
            return;
        }
        chunk.missing = 1;
        chunk.taken_back = true;
        let (number, length) = (chunk.flight, usize::from(chunk.length));
        let flight = self.flights.get_mut(usize::from(number));
        let path = flight.as_ref().and_then(|flight| flight.path);
        let path = path.and_then(|id| paths.get_mut(id));
        let (Some(flight), Some(path)) = (flight, path) else {
            // The path is gone: nothing watches over it any more.
            chunk.state = ChunkState::Lost;
            let to = paths.primary();
            return self.send_again(tsn, to);
        };
        // Reports are compared with the packets that were sent after it: none so far.
        let packet = path.take_back(length);
        chunk.state = ChunkState::InFlight;
        chunk.packet = packet;
        self.in_flight.add(length);
        if path.t3.is_none() {
            path.t3 = Some(now.saturating_add(path.rto.current()));
            flight.timed = Some(packet);
        }
        flight.on_taken_back(packet, now, tsn);
        flight.compact(number, &self.chunks, most);
        self.note_lowest(number, tsn, true);
    }

    /// So many missing reports more for a chunk (RFC 9260 §7.2.4). From `enough` on it counts as lost on
    /// their account, once and for all, and is given.
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

    /// A chunk is neither under way nor to be sent again.
    #[inline]
    fn stop_waiting(&mut self, before: &SentChunk) {
        match before.state {
            ChunkState::InFlight => self.in_flight.take(before.length.into()),
            ChunkState::Lost => {
                if let Some(flight) = self.flights.get_mut(usize::from(before.flight)) {
                    flight.remove_again();
                }
            }
            ChunkState::Acknowledged | ChunkState::Abandoned => {}
        }
    }

    /// Puts a chunk that waits to be sent again on a path.
    fn send_again(&mut self, tsn: Tsn, to: PathId) {
        let target = self.number_for(to).unwrap_or_default();
        let most = self.most_remembered();
        let Some(chunk) = self.chunks.get_mut(tsn) else { return };
        let from = core::mem::replace(&mut chunk.flight, target);
        chunk.moved |= from != target;
        let moved = if chunk.released { 0 } else { usize::from(chunk.length) };
        self.dequeue_from(from, moved);
        self.enqueue_on(target, moved);
        if let Some(flight) = self.flights.get_mut(usize::from(target)) {
            flight.add_again(tsn);
            flight.compact(target, &self.chunks, most);
        }
    }

    /// Entries of a flight from which on those that are over are looked for.
    fn most_remembered(&self) -> usize {
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
