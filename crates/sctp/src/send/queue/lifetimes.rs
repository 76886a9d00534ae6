//! Messages whose lifetime ends before anything of them was sent (RFC 3758 §4.1). Those that were
//! started are abandoned when they would be retransmitted.

use alloc::vec::Vec;
use core::time::Duration;

use super::SendQueue;
use super::messages::{AbandonLimit, MessageId, QueuedMessage};
use crate::send::byte_tally::ItemCount;

/// The stored messages with a lifetime.
#[derive(Debug, Default)]
pub(super) struct MessageLifetimes {
    count: ItemCount,
    /// The earliest end of the lifetime of an unsent message, or earlier.
    next: Option<Duration>,
}

impl MessageLifetimes {
    /// Records a queued message that expires at `deadline`.
    pub(super) fn add(&mut self, deadline: Duration) {
        let others = self.next.filter(|_| self.count.get() > 0);
        self.next = Some(others.map_or(deadline, |next| next.min(deadline)));
        self.count.add_one();
    }

    /// Records that such a message is complete.
    pub(super) fn remove(&mut self) {
        self.count.take_one();
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count.get()
    }
}

impl SendQueue {
    /// Returns the earliest end of the lifetime of a queued message, which may have been sent
    /// meanwhile.
    pub(in crate::send) fn next_deadline(&self) -> Option<Duration> {
        self.lifetimes.next.filter(|_| self.lifetimes.count() > 0 && self.unsent() > 0)
    }

    /// Returns whether the lifetime of a queued message may have expired.
    #[inline]
    pub(in crate::send) fn has_expired(&self, now: Duration) -> bool {
        self.lifetimes.count() > 0 && self.lifetimes.next.is_some_and(|next| next <= now)
    }

    /// Returns the queued messages whose lifetime has expired, for the caller to abandon and then
    /// to call [`Self::find_next_deadline`].
    pub(in crate::send) fn expired_messages(&self, now: Duration) -> Vec<MessageId> {
        let is_expired_message =
            |message: &QueuedMessage| deadline_of(message).is_some_and(|at| at <= now);
        let expired = self.messages.iter().filter(|(_, message)| is_expired_message(message));
        expired.map(|(id, _)| id).collect()
    }

    /// Updates the earliest deadline.
    pub(in crate::send) fn find_next_deadline(&mut self) {
        self.lifetimes.next =
            self.messages.iter().filter_map(|(_, message)| deadline_of(message)).min();
    }

    /// Returns whether the lifetime of a message has expired.
    #[inline]
    pub(in crate::send) fn is_expired(&self, id: MessageId, now: Duration) -> bool {
        self.lifetimes.count() > 0
            && self.messages.get(id).is_some_and(
                |message| matches!(message.limit, AbandonLimit::Deadline(deadline) if deadline <= now),
            )
    }
}

/// Returns when a message expires, if nothing of it was sent yet.
fn deadline_of(message: &QueuedMessage) -> Option<Duration> {
    match message.limit {
        AbandonLimit::Deadline(deadline) if message.sent == 0 && !message.abandoned => {
            Some(deadline)
        }
        _ => None,
    }
}
