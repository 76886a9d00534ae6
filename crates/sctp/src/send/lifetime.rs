//! Messages whose lifetime ends before anything of them was sent (RFC 3758 §4.1). Those that were
//! begun are given up when they would be sent again.

use alloc::vec::Vec;
use core::time::Duration;

use super::Sender;
use super::messages::{Limit, MessageId, QueuedMessage};
use crate::path::Paths;

impl Sender {
    /// A message was handed in that is of no use after `deadline`.
    pub(super) fn note_deadline(&mut self, deadline: Duration) {
        let others = self.next_deadline.filter(|_| self.timed > 0);
        self.next_deadline = Some(others.map_or(deadline, |next| next.min(deadline)));
        self.timed += 1;
    }

    /// When the lifetime of a waiting message ends, at the earliest: the message may have been sent
    /// meanwhile.
    pub(super) fn next_deadline(&self) -> Option<Duration> {
        self.next_deadline.filter(|_| self.timed > 0 && self.unsent > 0)
    }

    /// Gives up the waiting messages whose lifetime is over.
    pub(super) fn drop_overdue(&mut self, now: Duration, paths: &mut Paths) {
        if self.timed == 0 || self.next_deadline.is_none_or(|next| next > now) {
            return;
        }
        let over: Vec<MessageId> = self
            .messages
            .iter()
            .filter(|(_, message)| deadline_of(message).is_some_and(|deadline| deadline <= now))
            .map(|(id, _)| id)
            .collect();
        for id in over {
            self.abandon(id, paths);
        }
        self.next_deadline =
            self.messages.iter().filter_map(|(_, message)| deadline_of(message)).min();
    }
}

/// When a message is given up, if nothing of it was sent yet.
fn deadline_of(message: &QueuedMessage) -> Option<Duration> {
    match message.limit {
        Limit::Deadline(deadline) if message.sent == 0 && !message.abandoned => Some(deadline),
        _ => None,
    }
}
