//! Messages whose lifetime ends before anything of them was sent (RFC 3758 §4.1). Those that were
//! begun are given up when they would be sent again.

use alloc::vec::Vec;
use core::time::Duration;

use super::SendQueue;
use super::messages::{Limit, MessageId, QueuedMessage};
use crate::send::tally::Count;

/// The messages that are kept and have a lifetime.
#[derive(Debug, Default)]
pub(super) struct Lifetimes {
    count: Count,
    /// When the first one ends of which nothing was sent, at the earliest.
    next: Option<Duration>,
}

impl Lifetimes {
    /// A message was handed in that is of no use after `deadline`.
    pub(super) fn add(&mut self, deadline: Duration) {
        let others = self.next.filter(|_| self.count.get() > 0);
        self.next = Some(others.map_or(deadline, |next| next.min(deadline)));
        self.count.add_one();
    }

    /// Such a message is through.
    pub(super) fn remove(&mut self) {
        self.count.take_one();
    }

    #[inline]
    pub(super) fn count(&self) -> usize {
        self.count.get()
    }
}

impl SendQueue {
    /// When the lifetime of a waiting message ends, at the earliest: the message may have been sent
    /// meanwhile.
    pub(in crate::send) fn next_deadline(&self) -> Option<Duration> {
        self.lifetimes.next.filter(|_| self.lifetimes.count() > 0 && self.unsent() > 0)
    }

    /// The waiting messages whose lifetime is over, for the caller to give up and then to call
    /// [`Self::find_next_deadline`]; `None` while there cannot be any.
    pub(in crate::send) fn overdue(&self, now: Duration) -> Option<Vec<MessageId>> {
        if self.lifetimes.count() == 0 || self.lifetimes.next.is_none_or(|next| next > now) {
            return None;
        }
        let is_over = |message: &QueuedMessage| deadline_of(message).is_some_and(|at| at <= now);
        let over = self.messages.iter().filter(|(_, message)| is_over(message));
        Some(over.map(|(id, _)| id).collect())
    }

    /// Looks for the deadline that comes first.
    pub(in crate::send) fn find_next_deadline(&mut self) {
        self.lifetimes.next =
            self.messages.iter().filter_map(|(_, message)| deadline_of(message)).min();
    }

    /// Whether the lifetime of a message is over.
    #[inline]
    pub(in crate::send) fn is_expired(&self, id: MessageId, now: Duration) -> bool {
        self.lifetimes.count() > 0
            && self.messages.get(id).is_some_and(
                |message| matches!(message.limit, Limit::Deadline(deadline) if deadline <= now),
            )
    }
}

/// When a message is given up, if nothing of it was sent yet.
fn deadline_of(message: &QueuedMessage) -> Option<Duration> {
    match message.limit {
        Limit::Deadline(deadline) if message.sent == 0 && !message.abandoned => Some(deadline),
        _ => None,
    }
}
