//! The queued messages, each in one slot until it is complete.
//!
//! A chunk refers to its message and to the offset of its data, so nothing is copied and no
//! reference count is needed per chunk; the message's bytes are freed in one piece.

use alloc::vec::Vec;
use bytes::Bytes;
use core::time::Duration;

use crate::identifier::{PathId, Ppid};
use crate::message::{MessageReliability, SendInfo};
use crate::scheduler::StreamSlot;
use crate::send::byte_tally::ItemCount;
use crate::serial::Tsn;

/// The slot of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::send) struct MessageId(pub(in crate::send) u32);

/// No message: the end of a list.
pub(super) const NONE: MessageId = MessageId(u32::MAX);

/// When a message is abandoned (RFC 3758 §4.1, RFC 7496 §3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::send) enum AbandonLimit {
    Never,
    Deadline(Duration),
    Retransmissions(u16),
    Priority(u32),
}

impl AbandonLimit {
    fn new(reliability: MessageReliability, now: Duration) -> Self {
        match reliability {
            MessageReliability::Reliable => Self::Never,
            MessageReliability::Lifetime(lifetime) => Self::Deadline(deadline(now, lifetime)),
            MessageReliability::Retransmissions(most) => Self::Retransmissions(most),
            MessageReliability::Priority(priority) => Self::Priority(priority),
        }
    }
}

/// Returns when a lifetime that starts now ends: never immediately, so that what can be sent now is
/// sent.
pub(super) fn deadline(now: Duration, lifetime: Duration) -> Duration {
    now.saturating_add(lifetime.max(Duration::from_nanos(1)))
}

/// One message.
#[derive(Debug)]
pub(in crate::send) struct QueuedMessage {
    pub(in crate::send) data: Bytes,
    /// When it is abandoned.
    pub(in crate::send) limit: AbandonLimit,
    /// The next unsent message of its stream, or the next free slot.
    pub(super) next: MessageId,
    pub(in crate::send) ppid: Ppid,
    pub(super) context: u32,
    /// Its SSN or MID, once its first chunk was sent.
    pub(in crate::send) number: u32,
    /// The bytes that are in chunks.
    pub(in crate::send) sent: u32,
    /// Its chunks that are not yet cumulatively acknowledged.
    chunks: ItemCount,
    /// The fragment sequence number of its next chunk (RFC 8260 §2.1).
    pub(in crate::send) next_fragment: u32,
    /// The TSN of its first chunk, once sent.
    pub(in crate::send) first_tsn: Tsn,
    /// The TSN of its latest chunk, once sent.
    pub(in crate::send) last_tsn: Tsn,
    pub(in crate::send) stream: StreamSlot,
    /// The path that the user requested.
    pub(in crate::send) path: Option<PathId>,
    pub(in crate::send) unordered: bool,
    pub(in crate::send) immediate: bool,
    pub(in crate::send) abandoned: bool,
    /// Whether the slot is free.
    is_free: bool,
}

impl QueuedMessage {
    pub(super) fn new(stream: StreamSlot, info: &SendInfo, data: Bytes, now: Duration) -> Self {
        Self {
            data,
            limit: AbandonLimit::new(info.reliability, now),
            next: NONE,
            ppid: info.ppid,
            context: info.context,
            number: 0,
            sent: 0,
            chunks: ItemCount::default(),
            next_fragment: 0,
            first_tsn: Tsn(0),
            last_tsn: Tsn(0),
            stream,
            path: info.path,
            unordered: info.unordered,
            immediate: info.sack_immediately,
            abandoned: false,
            is_free: false,
        }
    }

    /// Returns the bytes that are not yet in chunks.
    #[inline]
    pub(in crate::send) fn unsent(&self) -> usize {
        self.data.len().saturating_sub(self.sent as usize)
    }

    /// Adds a chunk with this TSN.
    #[inline]
    pub(super) fn add_chunk(&mut self, tsn: Tsn) {
        self.last_tsn = tsn;
        self.chunks.add_one();
    }

    /// Removes a cumulatively acknowledged chunk. Returns whether it was the last one.
    #[inline]
    pub(super) fn remove_chunk(&mut self) -> bool {
        self.chunks.take_one();
        self.chunks.get() == 0 && (self.unsent() == 0 || self.abandoned)
    }

    /// Returns whether a part of it, but not all, is in chunks.
    pub(in crate::send) fn is_started(&self) -> bool {
        self.sent > 0 && self.unsent() > 0
    }
}

/// All messages of an association. Slots are reused, the most recently freed one first.
#[derive(Debug)]
pub(super) struct QueuedMessages {
    slots: Vec<QueuedMessage>,
    first_free: MessageId,
    count: ItemCount,
}

impl QueuedMessages {
    pub(super) fn new() -> Self {
        Self { slots: Vec::new(), first_free: NONE, count: ItemCount::default() }
    }

    /// Returns the number of messages.
    pub(super) fn len(&self) -> usize {
        self.count.get()
    }

    #[inline]
    pub(super) fn insert(&mut self, message: QueuedMessage) -> MessageId {
        self.count.add_one();
        let id = self.first_free;
        if let Some(slot) = self.slots.get_mut(id.0 as usize) {
            self.first_free = slot.next;
            *slot = message;
            return id;
        }
        self.slots.push(message);
        MessageId((self.slots.len() - 1) as u32)
    }

    #[inline]
    pub(super) fn get(&self, id: MessageId) -> Option<&QueuedMessage> {
        self.slots.get(id.0 as usize)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, id: MessageId) -> Option<&mut QueuedMessage> {
        self.slots.get_mut(id.0 as usize)
    }

    /// Returns all messages, in no particular order.
    pub(in crate::send) fn iter(&self) -> impl Iterator<Item = (MessageId, &QueuedMessage)> {
        let slots = self.slots.iter().enumerate().filter(|(_, message)| !message.is_free);
        slots.map(|(at, message)| (MessageId(at as u32), message))
    }

    /// Removes a message, and returns when it would have been abandoned.
    #[inline]
    pub(super) fn remove(&mut self, id: MessageId) -> Option<AbandonLimit> {
        let slot = self.slots.get_mut(id.0 as usize)?;
        debug_assert!(!slot.is_free, "a message is removed twice");
        slot.data = Bytes::new();
        slot.is_free = true;
        slot.next = self.first_free;
        self.first_free = id;
        self.count.take_one();
        Some(slot.limit)
    }

    /// Begins again with the first slot, if there are no messages.
    pub(super) fn renumber(&mut self) {
        if self.count.get() == 0 {
            self.slots.clear();
            self.first_free = NONE;
        }
    }

    /// Frees memory, if there are no messages.
    pub(super) fn shrink(&mut self) {
        if self.slots.capacity() > 0 && self.count.get() == 0 {
            *self = Self::new();
        }
    }
}
