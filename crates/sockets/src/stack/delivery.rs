//! What an association delivers to its program: messages and notifications, in the order of their
//! arrival.

use alloc::collections::VecDeque;
use bytes::Bytes;
use core::time::Duration;

use eyas_sctp::message::Message;

/// The maximum number of queued notifications; further ones are dropped, except that of the end.
const MAX_NOTIFICATIONS: usize = 256;

/// What the program is currently receiving, possibly in parts: the rest of it.
#[derive(Debug)]
pub(super) enum CurrentItem {
    Notification(Bytes),
    Message(Message, Bytes),
}

impl CurrentItem {
    pub(super) fn rest(&self) -> &Bytes {
        match self {
            Self::Notification(rest) | Self::Message(_, rest) => rest,
        }
    }
}

/// What an item leaves behind of which the program has read bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct ItemRest {
    /// Whether bytes of it are left.
    pub(super) is_open: bool,
    /// Whether it was a part of a message, of which another one follows.
    pub(super) has_more: bool,
}

/// Where a notification is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoticePlace {
    Last,
    /// Last, for a message that could not be sent at this time.
    LastAsFailure(Duration),
    /// It reports a change of the association: before those of messages that could not be sent at
    /// the same time, which are reported after the end. It is never dropped.
    BeforeFailures(Duration),
}

#[derive(Debug)]
struct QueuedNotification {
    bytes: Bytes,
    /// The number of messages that the program receives before it, because they arrived earlier.
    after: u64,
    /// When it was queued, if it reports a message that could not be sent.
    failed_at: Option<Duration>,
}

/// The items that an association still has to deliver, without the messages that are in the
/// endpoint. A notification is delivered after the messages that preceded it.
#[derive(Debug, Default)]
pub(super) struct DeliveryQueue {
    notices: VecDeque<QueuedNotification>,
    /// The number of messages, or parts of them, that have become current.
    taken: u64,
    current: Option<CurrentItem>,
    /// Messages taken from the endpoint in advance.
    ahead: VecDeque<Message>,
    /// The number of messages, parts of them and notifications that the program has received.
    delivered: u64,
    /// How many of those, plus the waiting ones, are accounted for in its socket's list of turns.
    scheduled: u64,
}

impl DeliveryQueue {
    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of items that the program has not received.
    pub(super) fn len(&self) -> usize {
        usize::from(self.current.is_some()) + self.ahead.len() + self.notices.len()
    }

    /// Returns whether it holds data, not only notifications.
    pub(super) fn has_data(&self) -> bool {
        matches!(self.current, Some(CurrentItem::Message(..))) || !self.ahead.is_empty()
    }

    /// Returns the bytes of queued notifications.
    pub(super) fn notification_bytes(&self) -> usize {
        self.notices.iter().map(|notice| notice.bytes.len()).sum()
    }

    pub(super) fn delivered(&self) -> u64 {
        self.delivered
    }

    pub(super) fn current(&self) -> Option<&CurrentItem> {
        self.current.as_ref()
    }

    /// Returns the message after the current item, if it was taken from the endpoint.
    pub(super) fn next_message(&self) -> Option<&Message> {
        self.ahead.front()
    }

    /// Drops everything.
    pub(super) fn clear(&mut self) {
        self.current = None;
        self.ahead.clear();
        self.notices.clear();
    }

    /// Returns whether a message of the endpoint, if there is one, comes next.
    pub(super) fn needs_message(&self) -> bool {
        self.current.is_none() && !self.is_notice_due() && self.ahead.is_empty()
    }

    /// Adds a message that was taken from the endpoint.
    pub(super) fn add_message(&mut self, message: Message) {
        self.ahead.push_back(message);
    }

    fn is_notice_due(&self) -> bool {
        self.notices.front().is_some_and(|notice| notice.after <= self.taken)
    }

    /// Makes what comes next current, unless something is, and returns whether there is anything.
    pub(super) fn fill_current(&mut self) -> bool {
        if self.current.is_some() {
            return true;
        }
        if !self.is_notice_due()
            && let Some(mut message) = self.ahead.pop_front()
        {
            self.taken += 1;
            let data = core::mem::take(&mut message.data).into_bytes();
            self.current = Some(CurrentItem::Message(message, data));
            return true;
        }
        self.current =
            self.notices.pop_front().map(|notice| CurrentItem::Notification(notice.bytes));
        self.current.is_some()
    }

    /// Removes bytes of the current item that the program has read, and returns what is left.
    pub(super) fn consume(&mut self, count: usize) -> Option<ItemRest> {
        let current = self.current.as_mut()?;
        let has_more = matches!(current, CurrentItem::Message(message, _) if !message.ends);
        let (CurrentItem::Notification(rest) | CurrentItem::Message(_, rest)) = current;
        *rest = rest.slice(count.min(rest.len())..);
        let is_open = !rest.is_empty();
        if !is_open {
            self.current = None;
            self.delivered += 1;
        }
        Some(ItemRest { is_open, has_more })
    }

    /// Accounts for what has arrived, including messages in the endpoint. If some of it is new,
    /// returns the number of items after which the turn of the association is over.
    pub(super) fn schedule(&mut self, in_endpoint: usize) -> Option<u64> {
        let arrived = self.delivered + (in_endpoint + self.len()) as u64;
        if arrived <= self.scheduled {
            return None;
        }
        self.scheduled = arrived;
        Some(arrived)
    }

    /// Forgets what was accounted for, because the association lost its turns.
    pub(super) fn unschedule(&mut self) {
        self.scheduled = self.delivered;
    }

    /// Queues a notification behind the messages that have arrived, of which `in_endpoint` are in
    /// the endpoint.
    pub(super) fn add_notification(&mut self, bytes: Bytes, in_endpoint: usize, at: NoticePlace) {
        let is_change = matches!(at, NoticePlace::BeforeFailures(_));
        if self.notices.len() >= MAX_NOTIFICATIONS && !is_change {
            return;
        }
        let after = self.taken + (in_endpoint + self.ahead.len()) as u64;
        let (failed_at, behind) = match at {
            NoticePlace::Last => (None, 0),
            NoticePlace::LastAsFailure(now) => (Some(now), 0),
            NoticePlace::BeforeFailures(now) => {
                let same = |other: &&QueuedNotification| other.failed_at == Some(now);
                (None, self.notices.iter().rev().take_while(same).count())
            }
        };
        let notice = QueuedNotification { bytes, after, failed_at };
        self.notices.insert(self.notices.len() - behind, notice);
    }

    /// Moves the notification queued last before all messages.
    pub(super) fn hasten_last_notification(&mut self) {
        if let Some(last) = self.notices.back_mut() {
            last.after = 0;
        }
    }
}
