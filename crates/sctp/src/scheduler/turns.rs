//! Streams that take turns, in intrusive linked lists: joining, leaving and moving to the end take
//! constant time.

use alloc::vec::Vec;

use super::StreamSlot;

/// No stream: there are fewer slots than numbers.
const NONE: u16 = u16::MAX;

/// The neighbours of a stream in its list.
#[derive(Clone, Copy, Debug)]
struct StreamLink {
    previous: u16,
    next_slot: u16,
    queued: bool,
}

impl StreamLink {
    const UNLINKED: Self = Self { previous: NONE, next_slot: NONE, queued: false };
}

/// The links of all streams, by slot; each stream is in one list at most.
#[derive(Debug, Default)]
pub(super) struct StreamLinks(Vec<StreamLink>);

impl StreamLinks {
    /// Returns whether the stream waits for a turn.
    pub(super) fn has(&self, stream: StreamSlot) -> bool {
        self.0.get(stream.index()).is_some_and(|place| place.queued)
    }

    fn link(&mut self, slot: u16) -> Option<&mut StreamLink> {
        self.0.get_mut(usize::from(slot))
    }
}

/// A list of streams with something to send, the next one first.
#[derive(Debug)]
pub(super) struct LinkedQueue {
    first: u16,
    last: u16,
}

impl Default for LinkedQueue {
    fn default() -> Self {
        Self { first: NONE, last: NONE }
    }
}

impl LinkedQueue {
    /// Appends a stream, unless it is already queued.
    pub(super) fn join(&mut self, stream: StreamSlot, links: &mut StreamLinks) {
        if links.0.len() <= stream.index() {
            links.0.resize(stream.index() + 1, StreamLink::UNLINKED);
        }
        let previous = self.last;
        let Some(place) = links.link(stream.0).filter(|place| !place.queued) else { return };
        *place = StreamLink { previous, next_slot: NONE, queued: true };
        match links.link(previous) {
            Some(last) => last.next_slot = stream.0,
            None => self.first = stream.0,
        }
        self.last = stream.0;
    }

    /// Returns the first eligible stream.
    pub(super) fn first(
        &self,
        links: &StreamLinks,
        eligible: &mut dyn FnMut(StreamSlot) -> bool,
    ) -> Option<StreamSlot> {
        let mut slot = self.first;
        while let Some(place) = links.0.get(usize::from(slot)) {
            if eligible(StreamSlot(slot)) {
                return Some(StreamSlot(slot));
            }
            slot = place.next_slot;
        }
        None
    }

    /// Returns whether the list is empty.
    pub(super) fn is_empty(&self) -> bool {
        self.first == NONE
    }

    /// Moves a stream to the end after its turn.
    pub(super) fn rotate(&mut self, stream: StreamSlot, links: &mut StreamLinks) {
        if links.has(stream) {
            self.leave(stream, links);
            self.join(stream, links);
        }
    }

    /// Removes a stream that has nothing more to send.
    pub(super) fn leave(&mut self, stream: StreamSlot, links: &mut StreamLinks) {
        let Some(place) = links.link(stream.0).filter(|place| place.queued) else { return };
        let StreamLink { previous, next_slot, .. } =
            core::mem::replace(place, StreamLink::UNLINKED);
        match links.link(previous) {
            Some(other) => other.next_slot = next_slot,
            None => self.first = next_slot,
        }
        match links.link(next_slot) {
            Some(other) => other.previous = previous,
            None => self.last = previous,
        }
    }
}

/// One list of streams.
#[derive(Debug, Default)]
pub(super) struct StreamTurns {
    line: LinkedQueue,
    links: StreamLinks,
}

impl StreamTurns {
    /// Appends a stream, unless it is already queued.
    pub(super) fn join(&mut self, stream: StreamSlot) {
        self.line.join(stream, &mut self.links);
    }

    /// Returns the first eligible stream.
    pub(super) fn first(&self, eligible: &mut dyn FnMut(StreamSlot) -> bool) -> Option<StreamSlot> {
        self.line.first(&self.links, eligible)
    }

    /// Returns whether the stream waits for a turn.
    pub(super) fn has(&self, stream: StreamSlot) -> bool {
        self.links.has(stream)
    }

    /// Moves a stream to the end after its turn.
    pub(super) fn rotate(&mut self, stream: StreamSlot) {
        self.line.rotate(stream, &mut self.links);
    }

    /// Removes a stream that has nothing more to send.
    pub(super) fn leave(&mut self, stream: StreamSlot) {
        self.line.leave(stream, &mut self.links);
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::{LinkedQueue, StreamLinks};
    use crate::scheduler::StreamSlot;

    /// Returns the streams of a list in order.
    fn order(line: &LinkedQueue, links: &StreamLinks) -> Vec<u16> {
        let mut seen = Vec::new();
        line.first(links, &mut |stream| {
            seen.push(stream.0);
            false
        });
        seen
    }

    #[test]
    fn two_linked_queues_behave_like_two_lists() {
        let (mut links, mut lines) =
            (StreamLinks::default(), [LinkedQueue::default(), LinkedQueue::default()]);
        let mut lists = [Vec::new(), Vec::new()];
        let mut draw = 1_u32;
        for _ in 0..10_000 {
            draw = draw.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (stream, which) = ((draw >> 8) as u16 % 20, (draw >> 16) as usize % 2);
            let slot = StreamSlot(stream);
            let at = lists[which].iter().position(|other| *other == stream);
            match (draw >> 24 & 3, at) {
                (0, Some(at)) => {
                    lines[which].rotate(slot, &mut links);
                    lists[which].remove(at);
                    lists[which].push(stream);
                }
                (1, Some(at)) => {
                    lines[which].leave(slot, &mut links);
                    lists[which].remove(at);
                }
                _ => {
                    lines[which].join(slot, &mut links);
                    if !lists.iter().flatten().any(|other| *other == stream) {
                        lists[which].push(stream);
                    }
                }
            }
            for (line, list) in lines.iter().zip(&lists) {
                assert_eq!(order(line, &links), *list);
                assert_eq!(line.is_empty(), list.is_empty());
            }
            assert_eq!(links.has(slot), lists.iter().flatten().any(|other| *other == stream));
        }
    }
}
