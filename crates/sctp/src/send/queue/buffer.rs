//! The accounting of the send buffer.

use core::num::NonZeroU32;

use crate::send::byte_tally::ByteTally;

/// The minimum share of the send buffer per message: there are no more messages than shares of this
/// many bytes, so that tiny messages cannot fill the memory.
const MIN_SHARE: usize = 16;

/// The number of messages that are accepted regardless of the buffer size.
const MIN_MESSAGES: usize = 64;

/// What an association may use of its buffers while many share the memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BufferAllowance {
    /// Bytes of each buffer.
    pub(crate) bytes: usize,
    /// Whether a larger message may be sent if nothing else is in the send buffer. Otherwise it
    /// waits.
    pub(crate) admits_lone: bool,
}

impl BufferAllowance {
    /// The whole buffers.
    pub(crate) const UNLIMITED: Self = Self { bytes: usize::MAX, admits_lone: true };
}

/// Bytes of user data, from being queued to being non-renegably acknowledged or abandoned.
#[derive(Debug)]
pub(super) struct SendBuffer {
    limit: usize,
    /// The part of it that may currently be used.
    allowance: u32,
    /// Whether a message larger than that is accepted if it is alone.
    admits_lone: bool,
    max_messages: u32,
    /// Bytes in it, sent or not.
    queued: ByteTally,
    /// Those of them that are not yet in a chunk.
    unsent: ByteTally,
    /// The length of the message that was refused for lack of room.
    refused: Option<NonZeroU32>,
}

/// Returns how many messages fit in a send buffer of `limit` bytes.
fn max_messages_for(limit: usize) -> u32 {
    let max = (limit / MIN_SHARE).max(MIN_MESSAGES);
    u32::try_from(max).unwrap_or(u32::MAX)
}

impl SendBuffer {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            allowance: u32::MAX,
            admits_lone: true,
            max_messages: max_messages_for(limit),
            queued: ByteTally::default(),
            unsent: ByteTally::default(),
            refused: None,
        }
    }

    /// Changes its size; data in it is kept.
    pub(super) fn resize(&mut self, limit: usize) {
        self.limit = limit.max(1);
        self.max_messages = max_messages_for(limit);
    }

    /// Limits its use; data in it is kept.
    pub(super) fn set_allowance(&mut self, allowance: BufferAllowance) {
        self.allowance = u32::try_from(allowance.bytes).unwrap_or(u32::MAX);
        self.admits_lone = allowance.admits_lone;
    }

    /// Returns how much of it may currently be used.
    pub(super) fn usable(&self) -> usize {
        self.limit.min(self.allowance as usize)
    }

    pub(super) fn limit(&self) -> usize {
        self.limit
    }

    #[inline]
    pub(super) fn queued(&self) -> usize {
        self.queued.get()
    }

    #[inline]
    pub(super) fn unsent(&self) -> usize {
        self.unsent.get()
    }

    #[cfg(test)]
    pub(super) fn max_messages(&self) -> usize {
        self.max_messages as usize
    }

    /// Returns whether there is room for a message of this length next to `messages` others.
    pub(super) fn has_room(&self, length: usize, messages: usize) -> bool {
        let fits = self.queued() + length <= self.usable();
        let is_alone = self.admits_lone && self.queued() == 0 && length <= self.limit;
        (fits || is_alone) && messages < self.max_messages as usize
    }

    /// Records that the user waits for room for a message of this length.
    pub(super) fn wait_for_room(&mut self, length: usize) {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        let length = NonZeroU32::new(length).unwrap_or(NonZeroU32::MIN);
        self.refused = Some(self.refused.map_or(length, |other| other.min(length)));
    }

    /// Returns whether the user waits for room.
    pub(super) fn has_waiting_user(&self) -> bool {
        self.refused.is_some()
    }

    /// Returns whether there is now room that the user waits for. True once.
    pub(super) fn take_room(&mut self, messages: usize) -> bool {
        let has_room = |length: NonZeroU32| self.has_room(length.get() as usize, messages);
        let has_room_now = self.refused.is_some_and(has_room);
        if has_room_now {
            self.refused = None;
        }
        has_room_now
    }

    /// Cancels the wait for room.
    pub(super) fn cancel_wait(&mut self) {
        self.refused = None;
    }

    #[inline]
    pub(super) fn on_enqueued(&mut self, bytes: usize) {
        self.queued.add(bytes);
        self.unsent.add(bytes);
    }

    /// Records bytes that went into a chunk.
    #[inline]
    pub(super) fn on_chunked(&mut self, bytes: usize) {
        self.unsent.subtract(bytes);
    }

    /// Records bytes that will never be in a chunk.
    pub(super) fn on_dropped(&mut self, bytes: usize) {
        self.queued.subtract(bytes);
        self.unsent.subtract(bytes);
    }

    /// Records bytes of chunks that are non-renegably acknowledged, or abandoned.
    #[inline]
    pub(super) fn on_released(&mut self, bytes: usize) {
        self.queued.subtract(bytes);
    }
}
