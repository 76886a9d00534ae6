//! A restart of the peer (RFC 9260 §5.2.4.1) or of the TSNs of both sides (RFC 6525 §5.1.4); and
//! the end of an association.

use alloc::vec::Vec;
use core::time::Duration;

use super::outstanding::ChunkState;
use super::peer_window::PeerWindow;
use super::queue::{MessageId, QueuedMessage};
use super::retransmission::RetransmitReason;
use super::{AssociationSender, SenderTerms};
use crate::path::AssociationPaths;
use crate::serial::Tsn;

impl AssociationSender {
    /// Requeues everything sent with the COOKIE ECHO, as the peer's cookie was stale and it
    /// processed none of it (RFC 9260 §5.2.6): all of it is sent again once the handshake
    /// completes.
    pub fn requeue_all(&mut self, now: Duration, paths: &mut AssociationPaths) {
        for number in self.outstanding.numbers() {
            let Some(id) = self.outstanding.path_of(number) else { continue };
            self.lose_flight(number, id, RetransmitReason::NotLost, now, paths);
        }
        self.never_acknowledged = true;
    }

    /// Returns whether chunks that the peer has not processed are still valid with these
    /// parameters.
    fn are_chunks_reusable(&self, terms: &SenderTerms) -> bool {
        terms.initial_tsn == self.terms.initial_tsn
            && terms.interleaving == self.terms.interleaving
            && terms.outbound >= self.terms.outbound
    }

    /// Restarts with these parameters. Messages that were partly sent fail, and so do those on
    /// streams that no longer exist; unsent messages are kept, and so are those that the peer has
    /// not processed.
    pub fn restart(&mut self, terms: SenderTerms, paths: &mut AssociationPaths) {
        let outbound = terms.outbound;
        if core::mem::take(&mut self.never_acknowledged) && self.are_chunks_reusable(&terms) {
            self.terms = terms;
            self.peer_window = PeerWindow::new(terms.peer_window);
            return self.notify_room();
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
        self.notify_room();
        self.check();
    }

    /// Restarts the TSNs with `next`, and all streams with them (RFC 6525 §5.1.4). Returns false if
    /// data is outstanding, which prevents it.
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

    /// Fails all messages that were not acknowledged, as the association has ended.
    pub fn fail_all(&mut self, paths: &mut AssociationPaths) {
        self.fail(paths, |_, _| true);
        self.forget_chunks(self.next_tsn(), paths);
        self.queue.end();
        self.check();
    }

    /// Abandons the messages that are `lost`, with an event for each.
    fn fail(&mut self, paths: &mut AssociationPaths, lost: impl Fn(&Self, &QueuedMessage) -> bool) {
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
                self.queue.remove_message(id);
            }
        }
    }

    /// Returns whether all of a message has been non-renegably acknowledged, although the
    /// cumulative TSN ack has not reached it.
    fn is_acknowledged(&self, message: &QueuedMessage, id: MessageId) -> bool {
        if message.sent == 0 || message.unsent() > 0 {
            return false;
        }
        let count = message.last_tsn.distance_from(message.first_tsn);
        (0..=count).all(|offset| {
            let chunk = self.outstanding.get(message.first_tsn.plus(offset));
            // A peer may renege even on data that it reported as non-renegable: then it is in
            // flight again.
            chunk.is_none_or(|chunk| {
                chunk.message != id || (chunk.released && chunk.state == ChunkState::Acknowledged)
            })
        })
    }

    /// Forgets the chunks in flight; TSNs continue with `initial`.
    fn forget_chunks(&mut self, initial: Tsn, paths: &mut AssociationPaths) {
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
