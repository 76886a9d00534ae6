//! The order in which a sender serves the streams that have something to send (RFC 9218 §10).

use alloc::collections::{BTreeMap, BTreeSet};

use super::Priority;
use crate::stream::StreamId;

/// The streams that have something to send, by their priorities. The number of streams is bounded by
/// who adds them: those that QUIC allows.
///
/// More urgent streams go first. Of one urgency, streams that are not incremental are served whole, one
/// after the other in the order of their numbers; then incremental ones share the bandwidth by turns,
/// each for as much as the caller sends after a [`poll_next`](Self::poll_next).
///
/// ```
/// use eyas_h3::priority::{Priority, SendOrder};
/// use eyas_h3::stream::StreamId;
///
/// let mut order = SendOrder::default();
/// order.insert(StreamId(0), Priority { urgency: 3, incremental: true });
/// order.insert(StreamId(4), Priority { urgency: 3, incremental: true });
/// order.insert(StreamId(8), Priority { urgency: 1, incremental: false });
/// assert_eq!(order.poll_next(), Some(StreamId(8)));
/// assert_eq!(order.poll_next(), Some(StreamId(8)), "until it has nothing to send");
/// order.remove(StreamId(8));
/// let turns: Vec<_> = core::iter::from_fn(|| order.poll_next()).take(3).collect();
/// assert_eq!(turns, [StreamId(0), StreamId(4), StreamId(0)]);
/// ```
#[derive(Debug, Default)]
pub struct SendOrder {
    streams: BTreeMap<StreamId, (Priority, Place)>,
    /// The places of the streams, in the order of service.
    queue: BTreeSet<Place>,
    /// The number of turns that have been given.
    turns: u64,
}

/// A place in the order: the smallest goes first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    urgency: u8,
    /// The turn that an incremental stream last had; 0 for one that is served whole.
    turn: u64,
    stream: StreamId,
}

impl SendOrder {
    /// Adds a stream that has something to send, or changes its priority.
    pub fn insert(&mut self, stream: StreamId, priority: Priority) {
        if self.streams.get(&stream).is_some_and(|(known, _)| *known == priority) {
            return;
        }
        self.remove(stream);
        // An incremental one waits until those before it have had their turn, also when it returns after
        // a pause: else it would have more than its share.
        let turn = if priority.incremental { self.turns } else { 0 };
        self.set_place(priority, Place { urgency: priority.urgency, turn, stream });
    }

    /// Removes a stream that has nothing to send for now, or has ended.
    pub fn remove(&mut self, stream: StreamId) {
        if let Some((_, place)) = self.streams.remove(&stream) {
            self.queue.remove(&place);
        }
    }

    /// Returns the stream that sends next, and counts its turn.
    pub fn poll_next(&mut self) -> Option<StreamId> {
        let place = *self.queue.first()?;
        let (priority, _) = *self.streams.get(&place.stream)?;
        if priority.incremental {
            self.turns += 1;
            self.queue.remove(&place);
            self.set_place(priority, Place { turn: self.turns, ..place });
        }
        Some(place.stream)
    }

    fn set_place(&mut self, priority: Priority, place: Place) {
        self.queue.insert(place);
        self.streams.insert(place.stream, (priority, place));
    }

    /// Returns whether no stream has anything to send.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn served(streams: &[(u64, u8, bool)], count: usize) -> Vec<u64> {
        let mut order = SendOrder::default();
        for &(stream, urgency, incremental) in streams {
            order.insert(StreamId(stream), Priority { urgency, incremental });
        }
        (0..count).filter_map(|_| order.poll_next()).map(|stream| stream.0).collect()
    }

    #[test]
    fn more_urgent_streams_go_first() {
        assert_eq!(served(&[(0, 5, false), (4, 2, false), (8, 2, true)], 3), [4, 4, 4]);
        assert_eq!(served(&[(0, 7, true), (4, 0, true)], 2), [4, 4]);
    }

    #[test]
    fn incremental_streams_share_by_turns() {
        assert_eq!(served(&[(8, 3, true), (0, 3, true), (4, 3, true)], 6), [0, 4, 8, 0, 4, 8]);
    }

    #[test]
    fn a_changed_priority_counts_at_once() {
        let mut order = SendOrder::default();
        order.insert(StreamId(0), Priority::default());
        order.insert(StreamId(4), Priority::default());
        assert_eq!(order.poll_next(), Some(StreamId(0)));
        order.insert(StreamId(4), Priority { urgency: 0, incremental: false });
        assert_eq!(order.poll_next(), Some(StreamId(4)));
        order.remove(StreamId(4));
        order.remove(StreamId(0));
        assert!(order.is_empty() && order.poll_next().is_none());
    }

    proptest! {
        #[test]
        fn equal_incremental_streams_get_equal_shares(
            count in 1_u64..10, rounds in 1_usize..20, urgency in 0..=7_u8,
        ) {
            let streams: Vec<_> = (0..count).map(|index| (4 * index, urgency, true)).collect();
            let served = served(&streams, rounds * count as usize);
            for (stream, ..) in streams {
                let turns = served.iter().filter(|&&other| other == stream).count();
                prop_assert_eq!(turns, rounds);
            }
        }
    }
}
