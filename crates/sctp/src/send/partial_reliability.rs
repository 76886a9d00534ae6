//! Messages that are given up (RFC 3758 §3.5, RFC 7496 §3, RFC 8260 §2.3).

use alloc::vec::Vec;
use core::time::Duration;

use super::Sender;
use super::forwarding::Skipped;
use super::outstanding::ChunkState;
use super::queue::{Limit, MessageId, QueuedMessage};
use crate::identifier::PathId;
use crate::message::Reliability;
use crate::path::Paths;
use crate::serial::{Mid, Ssn, Tsn};
use crate::wire::{ForwardTsnChunk, IForwardTsnChunk, PacketWriter, SkippedMid, SkippedSsn};

impl Sender {
    /// Gives a message up: what is under way of it is no longer waited for, what is not yet sent
    /// never is.
    pub(super) fn abandon(&mut self, id: MessageId, paths: &mut Paths) {
        let Some(given_up) = self.queue.give_up(id) else { return };
        if let Some((first, last)) = given_up.sent {
            self.abandon_chunks(id, first, last, paths);
        }
        if given_up.is_cut_short {
            // The part that was sent may have been acknowledged whole, so one more TSN is used, which
            // is never sent: with it the peer can be told to drop the part.
            let tsn = self.outstanding.next();
            if let Some(offset) = self.queue.end_early(given_up.slot, id, tsn) {
                self.outstanding.skip(id, offset);
            }
        }
        self.queue.leave_if_first(given_up.slot, id, given_up.sent.is_some());
        self.forwarding.advance(&self.outstanding);
    }

    /// The chunks of a message are given up.
    fn abandon_chunks(&mut self, id: MessageId, first: Tsn, last: Tsn, paths: &mut Paths) {
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

    /// Gives up the waiting messages whose lifetime is over.
    pub(super) fn drop_overdue(&mut self, now: Duration, paths: &mut Paths) {
        let Some(over) = self.queue.overdue(now) else { return };
        for id in over {
            self.abandon(id, paths);
        }
        self.queue.find_next_deadline();
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
        while self.queue.has_priorities() && !self.is_writable(length) {
            let lower = |limit| match limit {
                Limit::Priority(other) if other > priority => Some(other),
                _ => None,
            };
            let lowest = self.queue.messages().filter(|(_, message)| self.may_abandon(message));
            let lowest = lowest.filter_map(|(id, message)| Some((lower(message.limit)?, id)));
            let Some((_, id)) = lowest.max_by_key(|(priority, _)| *priority) else { return };
            self.abandon(id, paths);
        }
    }

    /// Whether a message can still be given up: the peer has to be told if it saw some of it.
    fn may_abandon(&self, message: &QueuedMessage) -> bool {
        !message.abandoned && (message.sent == 0 || self.terms.partial_reliability)
    }

    /// Whether the peer has yet to hear of something that was given up.
    pub(super) fn must_forward(&self) -> bool {
        self.forwarding.is_ahead(&self.outstanding)
    }

    /// Whether a FORWARD-TSN or I-FORWARD-TSN is to be sent.
    #[must_use]
    pub fn forward_tsn_due(&self) -> bool {
        self.forwarding.is_due()
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
        let (point, skipped) =
            self.forwarding.skipped(most, interleaving, &self.outstanding, &self.queue);
        let fits = point.is_after(self.cumulative_tsn_acked())
            && if interleaving {
                let entries: Vec<SkippedMid> = skipped.iter().map(Skipped::as_mid).collect();
                packet.put(&IForwardTsnChunk::new(point, &entries))
            } else {
                let entries: Vec<SkippedSsn> = skipped.iter().map(Skipped::as_ssn).collect();
                packet.put(&ForwardTsnChunk::new(point, &entries))
            };
        if !fits {
            return false;
        }
        self.forwarding.note_sent(point, path, now);
        // A flight, so that the path's timer is looked after though no data is on it.
        let _ = self.outstanding.number_for(path);
        if let Some(path) = paths.get_mut(path)
            && path.t3.is_none()
        {
            path.t3 = Some(now.saturating_add(path.rto.current()));
        }
        true
    }
}

impl Skipped {
    fn as_ssn(&self) -> SkippedSsn {
        SkippedSsn { stream: self.stream, ssn: Ssn(self.number as u16) }
    }

    fn as_mid(&self) -> SkippedMid {
        SkippedMid { stream: self.stream, unordered: self.unordered, mid: Mid(self.number) }
    }
}
