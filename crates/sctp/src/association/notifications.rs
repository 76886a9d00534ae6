//! What the user is to be told, in order.

use alloc::collections::VecDeque;

use crate::event::Event;

/// The most notifications that wait for the user; of what is beyond, nothing is heard.
const MAX_EVENTS: usize = 1024;

/// Notifications. As a rule there is one at a time, with each packet of a running transfer, so that
/// one has its place without memory of its own.
#[derive(Debug, Default)]
pub(super) struct Notifications {
    first: Option<Event>,
    /// Empty while there is no first one.
    others: VecDeque<Event>,
}

impl Notifications {
    pub(super) const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Adds one that is left out if too many wait.
    pub(super) fn push(&mut self, event: Event) {
        if self.others.len() + 1 < MAX_EVENTS {
            self.push_always(event);
        }
    }

    /// Adds one however many wait.
    pub(super) fn push_always(&mut self, event: Event) {
        if self.first.is_none() {
            self.first = Some(event);
        } else {
            self.others.push_back(event);
        }
    }

    pub(super) fn pop(&mut self) -> Option<Event> {
        let next = self.others.pop_front();
        if next.is_none() && self.others.capacity() > 0 {
            // Most associations have much to say only at their beginning and end.
            self.others = VecDeque::new();
        }
        core::mem::replace(&mut self.first, next)
    }
}
