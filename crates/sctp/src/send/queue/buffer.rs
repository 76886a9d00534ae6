//! The send buffer: how much of it is used, and by what.

use crate::send::tally::Tally;

/// What a message takes of the send buffer at least when messages are counted: there are no more
/// than the buffer has shares of this many bytes, so that tiny messages cannot fill the memory.
const LEAST_SHARE: usize = 16;

/// Messages that are taken whatever the size of the buffer.
const MIN_MESSAGES: usize = 64;

/// Bytes of user data, from being handed in to being acknowledged for good or given up.
#[derive(Debug)]
pub(super) struct SendBuffer {
    limit: usize,
    /// What of it may be used for now.
    allowance: u32,
    max_messages: u32,
    /// Bytes in it, sent or not.
    queued: Tally,
    /// Those of them that are in no chunk yet.
    unsent: Tally,
    /// The length of the message that was refused for want of room.
    refused: Option<u32>,
}

/// How many messages may wait in a send buffer of so many bytes.
fn most_messages(limit: usize) -> u32 {
    let most = (limit / LEAST_SHARE).max(MIN_MESSAGES);
    u32::try_from(most).unwrap_or(u32::MAX)
}

impl SendBuffer {
    pub(super) fn new(limit: usize) -> Self {
        Self {
            limit: limit.max(1),
            allowance: u32::MAX,
            max_messages: most_messages(limit),
            queued: Tally::default(),
            unsent: Tally::default(),
            refused: None,
        }
    }

    /// Changes its size. What is in it stays.
    pub(super) fn resize(&mut self, limit: usize) {
        self.limit = limit.max(1);
        self.max_messages = most_messages(limit);
    }

    /// How much of it may be used from now on. What is in it stays.
    pub(super) fn allow(&mut self, allowance: usize) {
        self.allowance = u32::try_from(allowance).unwrap_or(u32::MAX);
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

    /// Whether a message of this many bytes has room beside so many others.
    pub(super) fn has_room(&self, length: usize, messages: usize) -> bool {
        let fits = self.queued() + length <= self.limit.min(self.allowance as usize);
        // A message larger than the allowance goes alone.
        let is_alone = self.queued() == 0 && length <= self.limit;
        (fits || is_alone) && messages < self.max_messages as usize
    }

    /// Somebody waits until a message of this many bytes has room.
    pub(super) fn refuse(&mut self, length: usize) {
        let length = u32::try_from(length).unwrap_or(u32::MAX);
        self.refused = Some(self.refused.map_or(length, |other| other.min(length)));
    }

    /// Whether somebody waits for room.
    pub(super) fn is_waited_for(&self) -> bool {
        self.refused.is_some()
    }

    /// Whether there is room now that somebody waits for. True once.
    pub(super) fn take_room(&mut self, messages: usize) -> bool {
        let has_room = |length: u32| self.has_room(length as usize, messages);
        let is_there = self.refused.is_some_and(has_room);
        if is_there {
            self.refused = None;
        }
        is_there
    }

    /// Nobody waits any more.
    pub(super) fn forget_refused(&mut self) {
        self.refused = None;
    }

    #[inline]
    pub(super) fn on_handed_in(&mut self, bytes: usize) {
        self.queued.add(bytes);
        self.unsent.add(bytes);
    }

    /// So many bytes went into a chunk.
    #[inline]
    pub(super) fn on_cut(&mut self, bytes: usize) {
        self.unsent.take(bytes);
    }

    /// So many bytes are never put into chunks.
    pub(super) fn on_dropped(&mut self, bytes: usize) {
        self.queued.take(bytes);
        self.unsent.take(bytes);
    }

    /// So many bytes that were in chunks are acknowledged for good, or given up.
    #[inline]
    pub(super) fn on_released(&mut self, bytes: usize) {
        self.queued.take(bytes);
    }
}
