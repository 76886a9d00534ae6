//! Messages that are given up (RFC 3758 §3.5, RFC 7496 §3, RFC 8260 §2.3).

use alloc::vec::Vec;
use core::time::Duration;

use super::Sender;
use super::fill::number_is_used;
use super::messages::{Limit, MessageId, QueuedMessage};
use super::outstanding::{ChunkState, SentChunk};
use crate::event::Event;
use crate::identifier::PathId;
use crate::message::Reliability;
use crate::path::Paths;
use crate::scheduler::StreamSlot;
use crate::serial::{Mid, Ssn, Tsn};
use crate::wire::{ForwardTsnChunk, IForwardTsnChunk, PacketWriter, SkippedMid, SkippedSsn};

/// The least time after which a FORWARD-TSN is repeated without its timer.
const LEAST_PATIENCE: Duration = Duration::from_millis(10);

/// The last message that is skipped on a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Skipped {
    stream: StreamSlot,
    unordered: bool,
    number: u32,
}

impl Sender {
    /// Gives a message up: what is under way of it is no longer waited for, what is not yet sent
    /// never is.
    pub(super) fn abandon(&mut self, id: MessageId, paths: &mut Paths) {
        let Some(message) = self.messages.get_mut(id) else { return };
        if core::mem::replace(&mut message.abandoned, true) {
            return;
        }
        let (slot, context) = (message.stream, message.context);
        let (ppid, unordered) = (message.ppid, message.unordered);
        let (sent, unsent) = (message.sent > 0, message.unsent());
        let data = core::mem::take(&mut message.data);
        let chunks = if sent { Some((message.first_tsn, message.last_tsn)) } else { None };
        if let Some((first, last)) = chunks {
            self.abandon_chunks(id, first, last, paths);
        }
        self.queued = self.queued.saturating_sub(unsent);
        self.unsent = self.unsent.saturating_sub(unsent);
        let Some(stream) = self.streams.get_mut(slot) else { return };
        stream.unsent = stream.unsent.saturating_sub(unsent);
        let (stream_id, stream_head) = (stream.id, stream.head);
        let stream = stream_id;
        let failed = Event::SendFailed { stream, context, ppid, unordered, sent, data };
        self.events.push_back(failed);
        if sent && unsent > 0 {
            self.end_early(slot, id);
        }
        if stream_head == id {
            let is_over = !sent;
            self.leave_queue(slot, id, 0);
            if is_over {
                self.let_go(id);
            }
        }
        self.advance_peer_ack_point();
    }

    /// The chunks of a message are given up.
    fn abandon_chunks(&mut self, id: MessageId, first: Tsn, last: Tsn, paths: &mut Paths) {
        let base = self.outstanding.first();
        let mut tsn = if first.is_before(base) { base } else { first };
        while tsn.is_at_or_before(last) {
            let at = tsn;
            tsn = tsn.next();
            let Some(chunk) = self.outstanding.get_mut(at) else { return };
            if chunk.message != id || chunk.state == ChunkState::Abandoned {
                continue;
            }
            let before = *chunk;
            chunk.state = ChunkState::Abandoned;
            chunk.released = true;
            self.stop_waiting(&before, paths);
            if !before.released
                && let Some(slot) = self.messages.get(id).map(|message| message.stream)
            {
                self.release(slot, before.length.into());
                self.dequeue_from(before.flight, before.length.into());
            }
        }
    }

    /// A chunk that is given up is neither under way nor to be sent again.
    fn stop_waiting(&mut self, chunk: &SentChunk, paths: &mut Paths) {
        let Some(flight) = self.flights.get_mut(usize::from(chunk.flight)) else { return };
        match chunk.state {
            ChunkState::InFlight => {
                self.in_flight = self.in_flight.saturating_sub(chunk.length.into());
                if let Some(path) = flight.path.and_then(|id| paths.get_mut(id)) {
                    path.on_chunk_forgotten(chunk.packet, chunk.length.into());
                }
            }
            ChunkState::Lost => flight.remove_again(),
            ChunkState::Acknowledged | ChunkState::Abandoned => {}
        }
    }

    /// A message of which a part was sent ends without its rest. The part may have been
    /// acknowledged whole, so one more TSN is used, which is never sent: with it the peer can be
    /// told to drop the part.
    fn end_early(&mut self, slot: StreamSlot, id: MessageId) {
        let tsn = self.outstanding.next();
        let Some(message) = self.messages.get_mut(id) else { return };
        let offset = message.sent;
        message.chunks += 1;
        message.last_tsn = tsn;
        let unordered = message.unordered;
        self.outstanding.push(SentChunk {
            message: id,
            offset,
            fragment: 0,
            packet: crate::congestion::PacketNumber(0),
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
        if let Some(stream) = self.streams.get_mut(slot) {
            number_is_used(stream, self.terms.interleaving, unordered);
        }
    }

    /// Gives up what may be given up so that a message finds room: what has outlived its lifetime,
    /// then what has a lower priority than the new message, lowest first (RFC 7496 §3.2).
    pub(super) fn make_room(
        &mut self,
        now: Duration,
        reliability: Reliability,
        length: usize,
        paths: &mut Paths,
    ) {
        self.drop_overdue(now, paths);
        let Reliability::Priority(priority) = reliability else { return };
        while self.prioritised > 0 && !self.is_writable(length) {
            let lower = |limit| match limit {
                Limit::Priority(other) if other > priority => Some(other),
                _ => None,
            };
            let lowest = self.messages.iter().filter(|(_, message)| self.may_abandon(message));
            let lowest = lowest.filter_map(|(id, message)| Some((lower(message.limit)?, id)));
            let Some((_, id)) = lowest.max_by_key(|(priority, _)| *priority) else { return };
            self.abandon(id, paths);
        }
    }

    /// Whether a message can still be given up: the peer has to be told if it saw some of it.
    fn may_abandon(&self, message: &QueuedMessage) -> bool {
        !message.abandoned && (message.sent == 0 || self.terms.partial_reliability)
    }

    /// The cumulative TSN advanced.
    pub(super) fn note_advance(&mut self, cumulative: Tsn) {
        if cumulative.is_after(self.advanced_peer_ack_point) {
            self.advanced_peer_ack_point = cumulative;
        }
        self.forward_tsn_due &= self.must_forward();
        self.advance_peer_ack_point();
    }

    /// Moves the point over chunks that were given up (RFC 3758 §3.5, C2).
    fn advance_peer_ack_point(&mut self) {
        let before = self.advanced_peer_ack_point;
        let given_up = |chunk: &SentChunk| chunk.state == ChunkState::Abandoned;
        while self.outstanding.get(self.advanced_peer_ack_point.next()).is_some_and(given_up) {
            self.advanced_peer_ack_point = self.advanced_peer_ack_point.next();
        }
        self.forward_tsn_due |= self.advanced_peer_ack_point != before;
    }

    /// Whether the peer has yet to hear of something that was given up.
    pub(super) fn must_forward(&self) -> bool {
        self.advanced_peer_ack_point.is_after(self.cumulative_tsn_acked())
    }

    /// Whether a FORWARD-TSN or I-FORWARD-TSN is to be sent.
    #[must_use]
    pub fn forward_tsn_due(&self) -> bool {
        self.forward_tsn_due
    }

    /// The peer still acknowledges less than it was told to skip. Once it must have heard of that, it
    /// is told again (RFC 3758 §3.5, C3), as T3 backs off with each loss.
    pub(super) fn repeat_forward_tsn(&mut self, now: Duration, paths: &Paths) {
        let Some((path, at)) = self.forwarded.filter(|_| self.must_forward()) else { return };
        let round_trip = paths.get(path).and_then(|path| path.rto.smoothed()).unwrap_or_default();
        // What varies gets a quarter, and nobody is told twice within one tick of a coarse clock.
        let patience = (round_trip + round_trip / 4).max(LEAST_PATIENCE);
        self.forward_tsn_due |= now >= at.saturating_add(patience);
    }

    /// Puts a FORWARD-TSN or I-FORWARD-TSN into a packet for a path; says whether it fitted. T3
    /// watches over it (RFC 3758 §3.5, C5).
    pub fn write_forward_tsn(
        &mut self,
        now: Duration,
        path: PathId,
        paths: &mut Paths,
        packet: &mut PacketWriter<'_>,
    ) -> bool {
        let room = packet.room();
        let interleaving = self.terms.interleaving;
        let most = if interleaving {
            IForwardTsnChunk::streams_in(room)
        } else {
            ForwardTsnChunk::streams_in(room)
        };
        let (point, skipped) = self.skipped(most);
        let fits = point.is_after(self.cumulative_tsn_acked())
            && if interleaving {
                let entries: Vec<SkippedMid> =
                    skipped.iter().filter_map(|entry| self.skipped_mid(entry)).collect();
                packet.put(&IForwardTsnChunk::new(point, &entries))
            } else {
                let entries: Vec<SkippedSsn> =
                    skipped.iter().filter_map(|entry| self.skipped_ssn(entry)).collect();
                packet.put(&ForwardTsnChunk::new(point, &entries))
            };
        if !fits {
            return false;
        }
        // What did not fit the list is told once the peer has gone as far as this (RFC 3758 §3.5, C4).
        self.advanced_peer_ack_point = point;
        self.forward_tsn_due = false;
        self.forwarded = Some((path, now));
        // A flight, so that the path's timer is looked after though no data is on it.
        let _ = self.flight_of(path);
        if let Some(path) = paths.get_mut(path)
            && path.t3.is_none()
        {
            path.t3 = Some(now.saturating_add(path.rto.current()));
        }
        true
    }

    /// How far the peer can be told to go with a list of at most so many streams, and the list.
    fn skipped(&self, most: usize) -> (Tsn, Vec<Skipped>) {
        let mut list: Vec<Skipped> = Vec::new();
        let mut point = self.cumulative_tsn_acked();
        while point.is_before(self.advanced_peer_ack_point) {
            let Some(chunk) = self.outstanding.get(point.next()) else { break };
            let Some(message) = self.messages.get(chunk.message) else { break };
            let entry = Skipped {
                stream: message.stream,
                unordered: message.unordered,
                number: message.number,
            };
            let known = list.iter().rposition(|known| {
                known.stream == entry.stream && known.unordered == entry.unordered
            });
            match known {
                // Numbers of a stream rise with the TSNs.
                Some(at) => list[at] = entry,
                // Without interleaving, unordered messages have no number to skip.
                None if entry.unordered && !self.terms.interleaving => {}
                None if list.len() >= most => break,
                None => list.push(entry),
            }
            point = point.next();
        }
        (point, list)
    }

    fn skipped_ssn(&self, entry: &Skipped) -> Option<SkippedSsn> {
        let stream = self.streams.get(entry.stream)?.id;
        Some(SkippedSsn { stream, ssn: Ssn(entry.number as u16) })
    }

    fn skipped_mid(&self, entry: &Skipped) -> Option<SkippedMid> {
        let stream = self.streams.get(entry.stream)?.id;
        Some(SkippedMid { stream, unordered: entry.unordered, mid: Mid(entry.number) })
    }
}
