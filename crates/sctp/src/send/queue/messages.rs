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
use crate::send::tally::Count;
use crate::serial::Tsn;

/// Where a message is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::send) struct MessageId(pub(in crate::send) u32);

/// No message: the end of a list.
pub(super) const NONE: MessageId = MessageId(u32::MAX);

/// When a message is given up (RFC 3758 §4.1, RFC 7496 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::send) enum Limit {
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
pub(in crate::send) struct QueuedMessage {
    pub(in crate::send) data: Bytes,
    /// When it is given up.
    pub(in crate::send) limit: Limit,
    /// The next one of its stream that is unsent, or the next free place.
    pub(super) next: MessageId,
    pub(in crate::send) ppid: Ppid,
    pub(super) context: u32,
    /// Its SSN or MID, once its first chunk was sent.
    pub(in crate::send) number: u32,
    /// Bytes that were put into chunks.
    pub(in crate::send) sent: u32,
    /// Its chunks that are not yet cumulatively acknowledged.
    chunks: Count,
    /// The fragment sequence number of its next chunk (RFC 8260 §2.1).
    pub(in crate::send) next_fragment: u32,
    /// The TSN of its first chunk, once sent.
    pub(in crate::send) first_tsn: Tsn,
    /// The TSN of its latest chunk, once sent.
    pub(in crate::send) last_tsn: Tsn,
    pub(in crate::send) stream: StreamSlot,
    /// The path its sender wished for.
    pub(in crate::send) path: Option<PathId>,
    pub(in crate::send) unordered: bool,
    pub(in crate::send) immediate: bool,
    pub(in crate::send) abandoned: bool,
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
            chunks: Count::default(),
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
    pub(in crate::send) fn unsent(&self) -> usize {
        self.data.len().saturating_sub(self.sent as usize)
    }

    /// One chunk more, with this TSN.
    #[inline]
    pub(super) fn add_chunk(&mut self, tsn: Tsn) {
        self.last_tsn = tsn;
        self.chunks.add_one();
    }

    /// One of its chunks is cumulatively acknowledged. Says whether it was the last one.
    #[inline]
    pub(super) fn take_chunk(&mut self) -> bool {
        self.chunks.take_one();
        self.chunks.get() == 0 && (self.unsent() == 0 || self.abandoned)
    }

    /// Whether a part of it, but not all, was put into chunks.
    pub(in crate::send) fn is_begun(&self) -> bool {
        self.sent > 0 && self.unsent() > 0
    }
}

/// All messages of an association. Places are used again, the one freed last first.
#[derive(Debug)]
pub(super) struct Messages {
    places: Vec<QueuedMessage>,
    free: MessageId,
    count: Count,
}

impl Messages {
    pub(super) fn new() -> Self {
        Self { places: Vec::new(), free: NONE, count: Count::default() }
    }

    /// Messages that are kept.
    pub(super) fn len(&self) -> usize {
        self.count.get()
    }

    #[inline]
    pub(super) fn insert(&mut self, message: QueuedMessage) -> MessageId {
        self.count.add_one();
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
    pub(in crate::send) fn iter(&self) -> impl Iterator<Item = (MessageId, &QueuedMessage)> {
        let places = self.places.iter().enumerate().filter(|(_, message)| !message.free);
        places.map(|(at, message)| (MessageId(at as u32), message))
    }

    /// Lets go of a message.
    #[inline]
    pub(super) fn remove(&mut self, id: MessageId) {
        if let Some(place) = self.places.get_mut(id.0 as usize) {
            debug_assert!(!place.free, "a message is let go twice");
            place.data = Bytes::new();
            place.free = true;
            place.next = self.free;
            self.free = id;
            self.count.take_one();
        }
    }

    /// Gives memory back, if nothing is kept.
    pub(super) fn shrink(&mut self) {
        if self.count.get() == 0 {
            *self = Self::new();
        }
    }
}
