//! The state of the streams that have been sent on.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::messages::{MessageId, NONE};
use crate::identifier::StreamId;
use crate::scheduler::StreamSlot;
use crate::send::byte_tally::ByteTally;
use crate::serial::{Mid, Ssn};

/// The number of streams per page of the index.
const PAGE: usize = 64;

/// An empty entry of a page; stream numbers end one before 65,535, so no slot has it.
const EMPTY: u16 = u16::MAX;

/// One stream.
#[derive(Debug)]
pub(in crate::send) struct OutboundStream {
    pub(in crate::send) id: StreamId,
    /// The SSN of the next ordered message.
    pub(super) next_ssn: Ssn,
    /// The MID of the next ordered message.
    pub(super) next_mid: Mid,
    /// The MID of the next unordered message.
    pub(super) next_unordered_mid: Mid,
    /// The first message with unsent data.
    pub(in crate::send) head: MessageId,
    /// The last message with unsent data.
    pub(super) tail: MessageId,
    /// Returns the bytes that are not yet in chunks.
    unsent: ByteTally,
    /// Returns the bytes that are in chunks and not yet non-renegably acknowledged.
    unacknowledged: ByteTally,
    /// Whether no new message may start, as a reset is under way (RFC 6525 §5.1.2).
    pub(in crate::send) paused: bool,
}

impl OutboundStream {
    fn new(id: StreamId) -> Self {
        Self {
            id,
            next_ssn: Ssn(0),
            next_mid: Mid(0),
            next_unordered_mid: Mid(0),
            head: NONE,
            tail: NONE,
            unsent: ByteTally::default(),
            unacknowledged: ByteTally::default(),
            paused: false,
        }
    }

    /// Returns the bytes that are not yet in chunks.
    pub(in crate::send) fn unsent(&self) -> usize {
        self.unsent.get()
    }

    /// Returns the bytes that are in chunks and not yet non-renegably acknowledged.
    pub(in crate::send) fn unacknowledged(&self) -> usize {
        self.unacknowledged.get()
    }

    /// Returns the bytes in the send buffer.
    pub(in crate::send) fn queued(&self) -> usize {
        self.unsent() + self.unacknowledged()
    }

    #[inline]
    pub(super) fn on_enqueued(&mut self, bytes: usize) {
        self.unsent.add(bytes);
    }

    /// Records bytes that went into a chunk.
    #[inline]
    pub(super) fn on_chunked(&mut self, bytes: usize) {
        self.unsent.subtract(bytes);
        self.unacknowledged.add(bytes);
    }

    /// Records bytes that will never be in a chunk.
    pub(super) fn on_dropped(&mut self, bytes: usize) {
        self.unsent.subtract(bytes);
    }

    /// Records bytes of chunks that are non-renegably acknowledged, or abandoned.
    #[inline]
    pub(super) fn on_released(&mut self, bytes: usize) {
        self.unacknowledged.subtract(bytes);
    }

    /// Restarts the numbers.
    fn renumber(&mut self) {
        self.next_ssn = Ssn(0);
        self.next_mid = Mid(0);
        self.next_unordered_mid = Mid(0);
    }
}

/// The streams in the order of their first use, and an index with pages only for the streams in
/// use.
#[derive(Debug, Default)]
pub(in crate::send) struct OutboundStreams {
    slots: Vec<OutboundStream>,
    /// Whether streams start paused when they are first used.
    all_paused: bool,
    /// Unused streams that start paused although not all do.
    paused_unused: BTreeSet<StreamId>,
    pages: Vec<Option<Box<[u16; PAGE]>>>,
}

impl OutboundStreams {
    /// Returns the slot of a stream, if it has ever been used.
    #[inline]
    pub(in crate::send) fn find(&self, id: StreamId) -> Option<StreamSlot> {
        let (page, entry) = (usize::from(id.0) / PAGE, usize::from(id.0) % PAGE);
        let slot = *self.pages.get(page)?.as_deref()?.get(entry)?;
        (slot != EMPTY).then_some(StreamSlot(slot))
    }

    /// Returns the slot of a stream, and whether it is new; `None` for a number that no stream can
    /// have.
    #[inline]
    pub(super) fn find_or_add(&mut self, id: StreamId) -> Option<(StreamSlot, bool)> {
        if let Some(slot) = self.find(id) {
            return Some((slot, false));
        }
        self.add(id).map(|slot| (slot, true))
    }

    fn add(&mut self, id: StreamId) -> Option<StreamSlot> {
        if id.0 == u16::MAX {
            return None;
        }
        let (page, entry) = (usize::from(id.0) / PAGE, usize::from(id.0) % PAGE);
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        let slot = self.slots.len() as u16;
        let page = self.pages.get_mut(page)?.get_or_insert_with(|| Box::new([EMPTY; PAGE]));
        *page.get_mut(entry)? = slot;
        if self.slots.is_empty() {
            self.slots.reserve_exact(1);
        }
        let paused = self.paused_unused.remove(&id) || self.all_paused;
        self.slots.push(OutboundStream { paused, ..OutboundStream::new(id) });
        Some(StreamSlot(slot))
    }

    /// Pauses a stream, whether it has been used or not.
    pub(super) fn pause(&mut self, id: StreamId) {
        match self.find(id).and_then(|slot| self.get_mut(slot)) {
            Some(stream) => stream.paused = true,
            None => {
                self.paused_unused.insert(id);
            }
        }
    }

    /// Pauses all streams.
    pub(super) fn pause_all(&mut self) {
        self.all_paused = true;
        self.slots.iter_mut().for_each(|stream| stream.paused = true);
    }

    /// Resumes a stream.
    pub(super) fn resume(&mut self, id: StreamId) {
        self.paused_unused.remove(&id);
        if let Some(stream) = self.find(id).and_then(|slot| self.get_mut(slot)) {
            stream.paused = false;
        }
    }

    /// Resumes all streams.
    pub(super) fn resume_all(&mut self) {
        self.all_paused = false;
        self.paused_unused.clear();
        self.slots.iter_mut().for_each(|stream| stream.paused = false);
    }

    /// Restarts the numbers of a stream.
    pub(super) fn renumber(&mut self, id: StreamId) {
        if let Some(stream) = self.find(id).and_then(|slot| self.get_mut(slot)) {
            stream.renumber();
        }
    }

    /// Restarts the numbers of all streams.
    pub(super) fn renumber_all(&mut self) {
        self.slots.iter_mut().for_each(OutboundStream::renumber);
    }

    #[inline]
    pub(super) fn get(&self, slot: StreamSlot) -> Option<&OutboundStream> {
        self.slots.get(slot.index())
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: StreamSlot) -> Option<&mut OutboundStream> {
        self.slots.get_mut(slot.index())
    }

    /// Returns the number of streams that have been used.
    pub(in crate::send) fn len(&self) -> usize {
        self.slots.len()
    }

    /// Returns all streams with their slots.
    pub(in crate::send) fn slots(&self) -> impl Iterator<Item = (StreamSlot, &OutboundStream)> {
        self.slots.iter().enumerate().map(|(at, stream)| (StreamSlot(at as u16), stream))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &OutboundStream> {
        self.slots.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::OutboundStreams;
    use crate::identifier::StreamId;
    use crate::scheduler::StreamSlot;

    #[test]
    fn slots_follow_the_order_of_use() {
        let mut streams = OutboundStreams::default();
        assert_eq!(streams.find(StreamId(65_534)), None);
        for (id, slot) in [(65_534, 0), (0, 1), (63, 2), (64, 3)] {
            assert_eq!(streams.find_or_add(StreamId(id)), Some((StreamSlot(slot), true)));
        }
        assert_eq!(streams.find_or_add(StreamId(0)), Some((StreamSlot(1), false)));
        assert_eq!(streams.find(StreamId(1)), None);
        assert_eq!(streams.find_or_add(StreamId(u16::MAX)), None);
    }

    #[test]
    fn all_streams_can_be_in_use() {
        let mut streams = OutboundStreams::default();
        for id in 0..u16::MAX {
            assert_eq!(streams.find_or_add(StreamId(id)), Some((StreamSlot(id), true)));
        }
        assert_eq!(streams.find(StreamId(40_000)), Some(StreamSlot(40_000)));
    }

    #[test]
    fn an_unused_stream_costs_nothing() {
        let mut streams = OutboundStreams::default();
        streams.find_or_add(StreamId(65_534));
        let pages = streams.pages.iter().flatten().count();
        assert_eq!((streams.slots.len(), pages), (1, 1));
    }
}
