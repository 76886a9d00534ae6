//! Abandoned messages (RFC 3758 §3.5, RFC 7496 §3, RFC 8260 §2.3).

use alloc::vec::Vec;
use core::time::Duration;

use super::AssociationSender;
use super::forwarding::SkippedMessage;
use super::outstanding::ChunkState;
use super::queue::{AbandonLimit, MessageId, QueuedMessage};
use crate::identifier::PathId;
use crate::message::MessageReliability;
use crate::path::AssociationPaths;
use crate::serial::{Mid, Ssn, Tsn};
use crate::wire::{ForwardTsnChunk, IForwardTsnChunk, PacketWriter, SkippedMid, SkippedSsn};

impl AssociationSender {
    /// Abandons a message: its chunks in flight are no longer waited for, the rest is never sent.
    pub(super) fn abandon(&mut self, id: MessageId, paths: &mut AssociationPaths) {
        let Some(abandoned) = self.queue.mark_abandoned(id) else { return };
        if let Some((first, last)) = abandoned.sent {
            self.abandon_chunks(id, first, last, paths);
        }
        if abandoned.is_partly_sent {
            // The part that was sent may have been acknowledged completely, so one more TSN is used
            // that is never sent: a FORWARD-TSN up to it makes the peer drop the part.
            let tsn = self.outstanding.next();
            if let Some(offset) = self.queue.end_early(abandoned.slot, id, tsn) {
                self.outstanding.skip(id, offset);
            }
        }
        self.queue.dequeue_if_first(abandoned.slot, id, abandoned.sent.is_some());
        self.forwarding.advance(&self.outstanding);
    }

    /// Abandons the chunks of a message.
    fn abandon_chunks(
        &mut self,
        id: MessageId,
        first: Tsn,
        last: Tsn,
        paths: &mut AssociationPaths,
    ) {
        let base = self.outstanding.first();
        let mut tsn = if first.is_before(base) { base } else { first };
        while tsn.is_at_or_before(last) {
            let at = tsn;
            tsn = tsn.next();
            let Some(before) = self.outstanding.abandon(at, id) else { continue };
            let path = self.outstanding.path_of(before.flight).and_then(|id| paths.get_mut(id));
            if let Some(path) = path.filter(|_| before.state == ChunkState::InFlight) {
                path.on_chunk_forgotten(before.packet, before.length.into());
            }
            if !before.released {
                self.queue.release(id, before.length.into());
            }
        }
    }

    /// Abandons queued messages whose lifetime has expired.
    #[inline]
    pub(super) fn abandon_expired(&mut self, now: Duration, paths: &mut AssociationPaths) {
        if self.queue.has_expired(now) {
            self.abandon_all_expired(now, paths);
        }
    }

    fn abandon_all_expired(&mut self, now: Duration, paths: &mut AssociationPaths) {
        let over = self.queue.expired_messages(now);
        for id in over {
            self.abandon(id, paths);
        }
        self.queue.find_next_deadline();
    }

    /// Abandons messages to make room for a new one: expired ones first, then those of a lower
    /// priority than the new one, lowest first (RFC 7496 §3.2).
    pub(super) fn make_room(
        &mut self,
        now: Duration,
        reliability: MessageReliability,
        length: usize,
        paths: &mut AssociationPaths,
    ) {
        self.abandon_expired(now, paths);
        let MessageReliability::Priority(priority) = reliability else { return };
        while self.queue.has_priorities() && !self.is_writable(length) {
            let lower = |limit| match limit {
                AbandonLimit::Priority(other) if other > priority => Some(other),
                _ => None,
            };
            let lowest = self.queue.messages().filter(|(_, message)| self.may_abandon(message));
            let lowest = lowest.filter_map(|(id, message)| Some((lower(message.limit)?, id)));
            let Some((_, id)) = lowest.max_by_key(|(priority, _)| *priority) else { return };
            self.abandon(id, paths);
        }
    }

    /// Returns whether a message can still be abandoned: if some of it was sent, the peer has to be
    /// notified.
    fn may_abandon(&self, message: &QueuedMessage) -> bool {
        !message.abandoned && (message.sent == 0 || self.terms.partial_reliability)
    }

    /// Returns whether the peer has not yet skipped some abandoned data.
    pub(super) fn must_forward(&self) -> bool {
        self.forwarding.is_ahead(&self.outstanding)
    }

    /// Returns whether a FORWARD-TSN or I-FORWARD-TSN has to be sent.
    #[must_use]
    pub fn forward_tsn_due(&self) -> bool {
        self.forwarding.is_due()
    }

    /// Writes a FORWARD-TSN or I-FORWARD-TSN to a packet for a path; returns whether it fits. T3
    /// covers it (RFC 3758 §3.5, C5).
    pub fn write_forward_tsn(
        &mut self,
        now: Duration,
        path: PathId,
        paths: &mut AssociationPaths,
        packet: &mut PacketWriter<'_>,
    ) -> bool {
        let room = packet.room();
        let interleaving = self.terms.interleaving;
        let max_streams = if interleaving {
            IForwardTsnChunk::streams_in(room)
        } else {
            ForwardTsnChunk::streams_in(room)
        };
        let (point, skipped) =
            self.forwarding.skipped(max_streams, interleaving, &self.outstanding, &self.queue);
        let fits = point.is_after(self.cumulative_tsn_acked())
            && if interleaving {
                let entries: Vec<SkippedMid> = skipped.iter().map(SkippedMessage::as_mid).collect();
                packet.append(&IForwardTsnChunk::new(point, &entries))
            } else {
                let entries: Vec<SkippedSsn> = skipped.iter().map(SkippedMessage::as_ssn).collect();
                packet.append(&ForwardTsnChunk::new(point, &entries))
            };
        if !fits {
            return false;
        }
        self.forwarding.note_sent(point, path, now);
        // Creates a flight, so that the path's timer is handled although no data is in flight.
        let _ = self.outstanding.number_for(path);
        if let Some(path) = paths.get_mut(path)
            && path.t3.is_none()
        {
            path.t3 = Some(now.saturating_add(path.rto.current()));
        }
        true
    }
}

impl SkippedMessage {
    fn as_ssn(&self) -> SkippedSsn {
        SkippedSsn { stream: self.stream, ssn: Ssn(self.number as u16) }
    }

    fn as_mid(&self) -> SkippedMid {
        SkippedMid { stream: self.stream, unordered: self.unordered, mid: Mid(self.number) }
    }
}
