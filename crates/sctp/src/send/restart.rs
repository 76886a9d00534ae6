//! The peer came back without a memory (RFC 9260 §5.2.4.1), or both sides start their TSNs anew
//! (RFC 6525 §5.1.4); and the end of an association.

use alloc::vec::Vec;
use core::time::Duration;

use super::messages::MessageId;
use super::outstanding::Outstanding;
use super::peer_window::PeerWindow;
use super::retransmission::Meaning;
use super::{Sender, Terms};
use crate::config::SchedulerKind;
use crate::path::Paths;
use crate::scheduler;

impl Sender {
    /// The peer took nothing of what was sent with the COOKIE ECHO, for its cookie was stale
    /// (RFC 9260 §5.2.6): all of it is sent again once the peer is met again.
    pub fn take_all_back(&mut self, now: Duration, paths: &mut Paths) {
        for number in 0..self.flights.len() as u8 {
            let Some(id) = self.flights[usize::from(number)].path else { continue };
            self.lose_flight(number, id, Meaning::Nothing, now, paths);
        }
        self.unheard = true;
    }

    /// Whether chunks that the peer took nothing of fit these terms as they are.
    fn may_go_on(&self, terms: &Terms) -> bool {
        terms.initial_tsn == self.terms.initial_tsn
            && terms.interleaving == self.terms.interleaving
            && terms.outbound >= self.terms.outbound
    }

    /// Starts anew on these terms: what was begun is lost and told as failed, what was not begun
    /// is kept, and so is what the peer took nothing of. Messages on streams that there are no more
    /// fail, too.
    pub fn restart(&mut self, terms: Terms, paths: &mut Paths) {
        let outbound = terms.outbound;
        if core::mem::take(&mut self.unheard) && self.may_go_on(&terms) {
            self.terms = terms;
            self.peer_window = PeerWindow::new(terms.peer_window);
            return self.note_room();
        }
        self.fail(paths, |sender, message| {
            message.sent > 0
                || sender.streams.get(message.stream).is_none_or(|stream| stream.id.0 >= outbound)
        });
        self.forget_chunks(paths);
        if terms.interleaving != self.terms.interleaving {
            self.reschedule(terms.interleaving);
        }
        self.terms = terms;
        self.outstanding = Outstanding::new(terms.initial_tsn);
        self.peer_window = PeerWindow::new(terms.peer_window);
        self.advanced_peer_ack_point = terms.initial_tsn.previous();
        self.forward_tsn_due = false;
        self.congestion_echoed = None;
        self.reset_streams(&[]);
        self.note_room();
    }

    /// TSNs start anew with `next`, and all streams with them (RFC 6525 §5.1.4). Only while nothing
    /// is outstanding; says whether that was so.
    pub fn reset_tsns(&mut self, next: crate::serial::Tsn) -> bool {
        if !self.outstanding.is_empty() {
            return false;
        }
        self.outstanding = Outstanding::new(next);
        self.reported.clear();
        self.advanced_peer_ack_point = next.previous();
        self.forward_tsn_due = false;
        self.congestion_echoed = None;
        self.reset_streams(&[]);
        true
    }

    /// The association has ended: all that was not acknowledged has failed.
    pub fn fail_all(&mut self, paths: &mut Paths) {
        self.fail(paths, |_, _| true);
        self.forget_chunks(paths);
        self.outstanding = Outstanding::new(self.next_tsn());
        self.busy = false;
        self.refused = None;
    }

    /// Gives up the messages that are `lost`, with an event for each.
    fn fail(
        &mut self,
        paths: &mut Paths,
        lost: impl Fn(&Self, &super::messages::QueuedMessage) -> bool,
    ) {
        let lost: Vec<MessageId> = self
            .messages
            .iter()
            .filter(|(_, message)| lost(self, message))
            .map(|(id, _)| id)
            .collect();
        for id in lost {
            let Some(message) = self.messages.get(id) else { continue };
            if message.abandoned || !self.is_acknowledged(id) {
                self.abandon(id, paths);
            }
            if self.messages.get(id).is_some_and(|message| message.sent > 0) {
                self.let_go(id);
            }
        }
    }

    /// Whether all of a message has arrived for good, though the cumulative TSN is not there yet.
    fn is_acknowledged(&self, id: MessageId) -> bool {
        let Some(message) = self.messages.get(id) else { return false };
        if message.sent == 0 || message.unsent() > 0 {
            return false;
        }
        let count = message.last_tsn.distance_from(message.first_tsn);
        (0..=count).all(|offset| {
            let chunk = self.outstanding.get(message.first_tsn.plus(offset));
            chunk.is_none_or(|chunk| chunk.message != id || chunk.released)
        })
    }

    /// A scheduler that is asked after each chunk, or after each message, instead of the other way.
    fn reschedule(&mut self, by_chunk: bool) {
        if self.scheduler_kind == SchedulerKind::Fcfs {
            return;
        }
        self.rebuild_scheduler(by_chunk);
    }

    /// A scheduler that knows what waits, and nothing of what was sent.
    pub(super) fn rebuild_scheduler(&mut self, by_chunk: bool) {
        self.scheduler = scheduler::new(self.scheduler_kind, by_chunk);
        for (slot, stream) in self.streams.slots() {
            let value = self.stream_values.binary_search_by_key(&stream.id, |(id, _)| *id);
            if let Ok(at) = value {
                self.scheduler.set_value(slot, self.stream_values[at].1);
            }
            let mut next = stream.head;
            while let Some(message) = self.messages.get(next) {
                self.scheduler.on_queued(slot);
                next = message.next;
            }
        }
    }

    /// Forgets what was under way.
    fn forget_chunks(&mut self, paths: &mut Paths) {
        self.reported.clear();
        self.in_flight = 0;
        for flight in &mut self.flights {
            if let Some(path) = flight.path.and_then(|id| paths.get_mut(id)) {
                path.t3 = None;
                path.revoke_grants();
            }
            flight.clear();
            flight.queued = 0;
        }
    }
}
