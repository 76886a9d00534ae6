//! What is kept for a stream once something was sent on it, and for no other.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::messages::{MessageId, NONE};
use crate::identifier::StreamId;
use crate::scheduler::StreamSlot;
use crate::send::tally::Tally;
use crate::serial::{Mid, Ssn};

/// Streams of one page of the index.
const PAGE: usize = 64;

/// A place in a page that no stream has; stream numbers end one before 65,535, so no slot has it.
const EMPTY: u16 = u16::MAX;

/// One stream.
#[derive(Debug)]
pub(in crate::send) struct Stream {
    pub(in crate::send) id: StreamId,
    /// Of the next ordered message in a DATA chunk.
    pub(super) next_ssn: Ssn,
    /// Of the next ordered message in an I-DATA chunk.
    pub(super) next_mid: Mid,
    /// Of the next unordered message in an I-DATA chunk.
    pub(super) next_unordered_mid: Mid,
    /// The first message that has something unsent.
    pub(in crate::send) head: MessageId,
    /// The last one.
    pub(super) tail: MessageId,
    /// Bytes not yet put into chunks.
    unsent: Tally,
    /// Bytes put into chunks and not yet acknowledged for good.
    unacknowledged: Tally,
    /// Nothing new may begin: a reset is under way (RFC 6525 §5.1.2).
    pub(in crate::send) paused: bool,
}

impl Stream {
    fn new(id: StreamId) -> Self {
        Self {
            id,
            next_ssn: Ssn(0),
            next_mid: Mid(0),
            next_unordered_mid: Mid(0),
            head: NONE,
            tail: NONE,
            unsent: Tally::default(),
            unacknowledged: Tally::default(),
            paused: false,
        }
    }

    /// Bytes not yet put into chunks.
    pub(in crate::send) fn unsent(&self) -> usize {
        self.unsent.get()
    }

    /// Bytes put into chunks and not yet acknowledged for good.
    pub(in crate::send) fn unacknowledged(&self) -> usize {
        self.unacknowledged.get()
    }

    /// Bytes in the send buffer.
    pub(in crate::send) fn queued(&self) -> usize {
        self.unsent() + self.unacknowledged()
    }

    #[inline]
    pub(super) fn on_handed_in(&mut self, bytes: usize) {
        self.unsent.add(bytes);
    }

    /// So many bytes went into a chunk.
    #[inline]
    pub(super) fn on_cut(&mut self, bytes: usize) {
        self.unsent.take(bytes);
        self.unacknowledged.add(bytes);
    }

    /// So many bytes are never put into chunks.
    pub(super) fn on_dropped(&mut self, bytes: usize) {
        self.unsent.take(bytes);
    }

    /// So many bytes that were in chunks are acknowledged for good, or given up.
    #[inline]
    pub(super) fn on_released(&mut self, bytes: usize) {
        self.unacknowledged.take(bytes);
    }

    /// Numbers start anew.
    fn renumber(&mut self) {
        self.next_ssn = Ssn(0);
        self.next_mid = Mid(0);
        self.next_unordered_mid = Mid(0);
    }
}

/// The streams in the order of their first use, and an index that has pages only where there are
/// streams in use.
#[derive(Debug, Default)]
pub(in crate::send) struct Streams {
    slots: Vec<Stream>,
    /// Whether streams that are used for the first time begin paused.
    all_paused: bool,
    /// Those that do though not all do.
    paused_unused: BTreeSet<StreamId>,
    pages: Vec<Option<Box<[u16; PAGE]>>>,
}

impl Streams {
    /// The slot of a stream, if it was ever used.
    #[inline]
    pub(in crate::send) fn find(&self, id: StreamId) -> Option<StreamSlot> {
        let (page, place) = (usize::from(id.0) / PAGE, usize::from(id.0) % PAGE);
        let slot = *self.pages.get(page)?.as_deref()?.get(place)?;
        (slot != EMPTY).then_some(StreamSlot(slot))
    }

    /// The slot of a stream; says also whether it is a new one. `None` for a number that no stream
    /// can have.
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
        let (page, place) = (usize::from(id.0) / PAGE, usize::from(id.0) % PAGE);
        if self.pages.len() <= page {
            self.pages.resize_with(page + 1, || None);
        }
        let slot = self.slots.len() as u16;
        let page = self.pages.get_mut(page)?.get_or_insert_with(|| Box::new([EMPTY; PAGE]));
        *page.get_mut(place)? = slot;
        if self.slots.is_empty() {
            self.slots.reserve_exact(1);
        }
        let paused = self.paused_unused.remove(&id) || self.all_paused;
        self.slots.push(Stream { paused, ..Stream::new(id) });
        Some(StreamSlot(slot))
    }

    /// Nothing new may begin on a stream, whether it was used so far or not.
    pub(super) fn pause(&mut self, id: StreamId) {
        match self.find(id).and_then(|slot| self.get_mut(slot)) {
            Some(stream) => stream.paused = true,
            None => {
                self.paused_unused.insert(id);
            }
        }
    }

    /// Nothing new may begin on any stream.
    pub(super) fn pause_all(&mut self) {
        self.all_paused = true;
        self.slots.iter_mut().for_each(|stream| stream.paused = true);
    }

    /// A stream goes on.
    pub(super) fn resume(&mut self, id: StreamId) {
        self.paused_unused.remove(&id);
        if let Some(stream) = self.find(id).and_then(|slot| self.get_mut(slot)) {
            stream.paused = false;
        }
    }

    /// All streams go on.
    pub(super) fn resume_all(&mut self) {
        self.all_paused = false;
        self.paused_unused.clear();
        self.slots.iter_mut().for_each(|stream| stream.paused = false);
    }

    /// The numbers of a stream start anew.
    pub(super) fn renumber(&mut self, id: StreamId) {
        if let Some(stream) = self.find(id).and_then(|slot| self.get_mut(slot)) {
            stream.renumber();
        }
    }

    /// The numbers of all streams start anew.
    pub(super) fn renumber_all(&mut self) {
        self.slots.iter_mut().for_each(Stream::renumber);
    }

    #[inline]
    pub(super) fn get(&self, slot: StreamSlot) -> Option<&Stream> {
        self.slots.get(slot.index())
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: StreamSlot) -> Option<&mut Stream> {
        self.slots.get_mut(slot.index())
    }

    /// How many were ever used.
    pub(in crate::send) fn len(&self) -> usize {
        self.slots.len()
    }

    /// All with their slots.
    pub(in crate::send) fn slots(&self) -> impl Iterator<Item = (StreamSlot, &Stream)> {
        self.slots.iter().enumerate().map(|(at, stream)| (StreamSlot(at as u16), stream))
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Stream> {
        self.slots.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::Streams;
    use crate::identifier::StreamId;
    use crate::scheduler::StreamSlot;

    #[test]
    fn slots_follow_the_order_of_use() {
        let mut streams = Streams::default();
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
        let mut streams = Streams::default();
        for id in 0..u16::MAX {
            assert_eq!(streams.find_or_add(StreamId(id)), Some((StreamSlot(id), true)));
        }
        assert_eq!(streams.find(StreamId(40_000)), Some(StreamSlot(40_000)));
    }

    #[test]
    fn an_unused_stream_costs_nothing() {
        let mut streams = Streams::default();
        streams.find_or_add(StreamId(65_534));
        let pages = streams.pages.iter().flatten().count();
        assert_eq!((streams.slots.len(), pages), (1, 1));
    }
}
