//! The messages that were handed in and are not yet through, each in one place until then.
//!
//! A chunk names its message and where in it its data lies, so nothing is copied and no reference
//! is counted for a chunk; the message's bytes are let go in one piece.

use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

use crate::identifier::{PathId, Ppid};
use crate::message::{Reliability, SendInfo};
use crate::scheduler::StreamSlot;
use crate::serial::Tsn;

/// Where a message is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct MessageId(pub(super) u32);

/// No message: the end of a list.
pub(super) const NONE: MessageId = MessageId(u32::MAX);

/// When a message is given up (RFC 3758 §4.1, RFC 7496 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Limit {
    Never,
    Deadline(Duration),
    Retransmissions(u16),
    Priority(u32),
}

impl Limit {
    fn new(reliability: Reliability, now: Duration) -> Self {
        match reliability {
            Reliability::Reliable => Self::Never,
            Reliability::Lifetime(lifetime) => Self::Deadline(deadline(now, lifetime)),
            Reliability::Retransmissions(most) => Self::Retransmissions(most),
            Reliability::Priority(priority) => Self::Priority(priority),
        }
    }
}

/// When a lifetime that begins now ends: never at once, so that what may go now goes.
pub(super) fn deadline(now: Duration, lifetime: Duration) -> Duration {
    now.saturating_add(lifetime.max(Duration::from_nanos(1)))
}

/// One message.
#[derive(Debug)]
pub(super) struct QueuedMessage {
    pub(super) data: Bytes,
    /// When it is given up.
    pub(super) limit: Limit,
    /// The next one of its stream that is unsent, or the next free place.
    pub(super) next: MessageId,
    pub(super) ppid: Ppid,
    pub(super) context: u32,
    /// Its SSN or MID, once its first chunk was sent.
    pub(super) number: u32,
    /// Bytes that were put into chunks.
    pub(super) sent: u32,
    /// Its chunks that are not yet cumulatively acknowledged.
    pub(super) chunks: u32,
    /// The fragment sequence number of its next chunk (RFC 8260 §2.1).
    pub(super) next_fragment: u32,
    /// The TSN of its first chunk, once sent.
    pub(super) first_tsn: Tsn,
    /// The TSN of its latest chunk, once sent.
    pub(super) last_tsn: Tsn,
    pub(super) stream: StreamSlot,
    /// The path its sender wished for.
    pub(super) path: Option<PathId>,
    pub(super) unordered: bool,
    pub(super) immediate: bool,
    pub(super) abandoned: bool,
    /// Whether there is no message in this place.
    free: bool,
}

impl QueuedMessage {
    pub(super) fn new(stream: StreamSlot, info: &SendInfo, data: Bytes, now: Duration) -> Self {
        Self {
            data,
            limit: Limit::new(info.reliability, now),
            next: NONE,
            ppid: info.ppid,
            context: info.context,
            number: 0,
            sent: 0,
            chunks: 0,
            next_fragment: 0,
            first_tsn: Tsn(0),
            last_tsn: Tsn(0),
            stream,
            path: info.path,
            unordered: info.unordered,
            immediate: info.sack_immediately,
            abandoned: false,
            free: false,
        }
    }

    /// Bytes not yet put into chunks.
    #[inline]
    pub(super) fn unsent(&self) -> usize {
        self.data.len().saturating_sub(self.sent as usize)
    }

    /// Whether a part of it, but not all, was put into chunks.
    pub(super) fn is_begun(&self) -> bool {
        self.sent > 0 && self.unsent() > 0
    }
}

/// All messages of an association. Places are used again, the one freed last first.
#[derive(Debug)]
pub(super) struct Messages {
    places: Vec<QueuedMessage>,
    free: MessageId,
    count: usize,
}

impl Messages {
    pub(super) fn new() -> Self {
        Self { places: Vec::new(), free: NONE, count: 0 }
    }

    /// Messages that are kept.
    pub(super) fn len(&self) -> usize {
        self.count
    }

    #[inline]
    pub(super) fn insert(&mut self, message: QueuedMessage) -> MessageId {
        self.count += 1;
        let id = self.free;
        if let Some(place) = self.places.get_mut(id.0 as usize) {
            self.free = place.next;
            *place = message;
            return id;
        }
        self.places.push(message);
        MessageId((self.places.len() - 1) as u32)
    }

    #[inline]
    pub(super) fn get(&self, id: MessageId) -> Option<&QueuedMessage> {
        self.places.get(id.0 as usize)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: MessageId) -> Option<&mut QueuedMessage> {
        self.places.get_mut(id.0 as usize)
    }

    /// All that are kept, in no order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (MessageId, &QueuedMessage)> {
        let places = self.places.iter().enumerate().filter(|(_, message)| !message.free);
        places.map(|(at, message)| (MessageId(at as u32), message))
    }

    /// Lets go of a message.
    #[inline]
    pub(super) fn remove(&mut self, id: MessageId) {
        if let Some(place) = self.places.get_mut(id.0 as usize) {
            place.data = Bytes::new();
            place.free = true;
            place.next = self.free;
            self.free = id;
            self.count = self.count.saturating_sub(1);
        }
    }

    /// Gives memory back, if nothing is kept.
    pub(super) fn shrink(&mut self) {
        if self.count == 0 {
            *self = Self::new();
        }
    }
}
