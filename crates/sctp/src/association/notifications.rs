//! Queued events for the user, in order.

use alloc::collections::VecDeque;

use crate::event::Event;

/// The maximum number of notifications that wait for the user; further ones are dropped.
const MAX_EVENTS: usize = 1024;

/// Queued events. Usually there is one at a time, with each packet of a running transfer, so the
/// first one is stored without an allocation.
#[derive(Debug, Default)]
pub(super) struct NotificationQueue {
    first: Option<Event>,
    /// Empty while `first` is `None`.
    others: VecDeque<Event>,
}

impl NotificationQueue {
    pub(super) const fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    /// Adds an event, unless too many are queued.
    pub(super) fn push(&mut self, event: Event) {
        if self.others.len() + 1 < MAX_EVENTS {
            self.push_always(event);
        }
    }

    /// Adds an event even if too many are queued.
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
            // Most associations have many events only at their beginning and end.
            self.others = VecDeque::new();
        }
        core::mem::replace(&mut self.first, next)
    }
}
