//! The peer came back without a memory (RFC 9260 §5.2.4.1), or both sides start their TSNs anew
//! (RFC 6525 §5.1.4); and the end of an association.

use alloc::vec::Vec;
use core::time::Duration;

use super::outstanding::ChunkState;
use super::peer_window::PeerWindow;
use super::queue::{MessageId, QueuedMessage};
use super::retransmission::Meaning;
use super::{Sender, Terms};
use crate::path::Paths;
use crate::serial::Tsn;

impl Sender {
    /// The peer took nothing of what was sent with the COOKIE ECHO, for its cookie was stale
    /// (RFC 9260 §5.2.6): all of it is sent again once the peer is met again.
    pub fn take_all_back(&mut self, now: Duration, paths: &mut Paths) {
        for number in self.outstanding.numbers() {
            let Some(id) = self.outstanding.path_of(number) else { continue };
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
            let stream = sender.queue.stream(message.stream);
            message.sent > 0 || stream.is_none_or(|stream| stream.id.0 >= outbound)
        });
        self.forget_chunks(terms.initial_tsn, paths);
        self.queue.set_interleaving(terms.interleaving);
        self.terms = terms;
        self.peer_window = PeerWindow::new(terms.peer_window);
        self.forwarding.restart(terms.initial_tsn);
        self.congestion_echoed = None;
        self.reset_streams(&[]);
        self.note_room();
        self.check();
    }

    /// TSNs start anew with `next`, and all streams with them (RFC 6525 §5.1.4). Only while nothing
    /// is outstanding; says whether that was so.
    pub fn reset_tsns(&mut self, next: Tsn) -> bool {
        if !self.outstanding.renumber(next) {
            return false;
        }
        self.reported.clear();
        self.forwarding.restart(next);
        self.congestion_echoed = None;
        self.reset_streams(&[]);
        true
    }

    /// The association has ended: all that was not acknowledged has failed.
    pub fn fail_all(&mut self, paths: &mut Paths) {
        self.fail(paths, |_, _| true);
        self.forget_chunks(self.next_tsn(), paths);
        self.queue.end();
        self.check();
    }

    /// Gives up the messages that are `lost`, with an event for each.
    fn fail(&mut self, paths: &mut Paths, lost: impl Fn(&Self, &QueuedMessage) -> bool) {
        let lost: Vec<MessageId> = self
            .queue
            .messages()
            .filter(|(_, message)| lost(self, message))
            .map(|(id, _)| id)
            .collect();
        for id in lost {
            let Some(message) = self.queue.message(id) else { continue };
            if message.abandoned || !self.is_acknowledged(message, id) {
                self.abandon(id, paths);
            }
            if self.queue.message(id).is_some_and(|message| message.sent > 0) {
                self.queue.let_go(id);
            }
        }
    }

    /// Whether all of a message has arrived for good, though the cumulative TSN is not there yet.
    fn is_acknowledged(&self, message: &QueuedMessage, id: MessageId) -> bool {
        if message.sent == 0 || message.unsent() > 0 {
            return false;
        }
        let count = message.last_tsn.distance_from(message.first_tsn);
        (0..=count).all(|offset| {
            let chunk = self.outstanding.get(message.first_tsn.plus(offset));
            // A peer may deny even what it said that it would keep: then it is under way again.
            chunk.is_none_or(|chunk| {
                chunk.message != id || (chunk.released && chunk.state == ChunkState::Acknowledged)
            })
        })
    }

    /// Forgets what was under way; TSNs go on with `initial`.
    fn forget_chunks(&mut self, initial: Tsn, paths: &mut Paths) {
        self.reported.clear();
        for flight in self.outstanding.flights() {
            if let Some(path) = flight.path.and_then(|id| paths.get_mut(id)) {
                path.t3 = None;
                path.revoke_grants();
            }
        }
        self.outstanding.restart(initial);
    }
}
