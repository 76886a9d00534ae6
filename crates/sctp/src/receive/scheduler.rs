//! The order in which messages are delivered to the application ([`ReceiveOrder`]).
//!
//! The order within a stream is always kept. There is a choice only while several messages are
//! ready: if the application reads more slowly than messages arrive, or if a filled gap released
//! many at once. An application that reads everything at once sees a difference only in the latter
//! case, and only in order, not in time (Dreibholz et al., PFLDNeT 2010, §7, expect as much).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::config::ReceiveOrder;
use crate::identifier::StreamId;

/// The maximum number of messages that are examined for one: those after them have arrived
/// later than all of them.
const MAX_INSPECTED: usize = 256;

/// Decides which message the application gets next.
pub trait ReceiveScheduler: fmt::Debug + Send + Sync {
    /// Returns the index of the next message, given the streams of the ready messages in the order
    /// in which they became ready; there is at least one. It must be the first one of its stream,
    /// or the stream would lose its order.
    fn next(&mut self, waiting: &mut dyn Iterator<Item = StreamId>) -> usize;
}

/// Creates a scheduler of this kind; none for the order of arrival, which needs none.
pub(crate) fn new(order: &ReceiveOrder) -> Option<Box<dyn ReceiveScheduler>> {
    match order {
        ReceiveOrder::Arrival => None,
        ReceiveOrder::RoundRobin => Some(Box::new(InTurn::default())),
        ReceiveOrder::Priority(values) => Some(Box::new(ByPriority::new(values.clone()))),
    }
}

/// Streams in turn, a message each.
#[derive(Debug, Default)]
struct InTurn {
    last: Option<StreamId>,
}

impl ReceiveScheduler for InTurn {
    fn next(&mut self, waiting: &mut dyn Iterator<Item = StreamId>) -> usize {
        // The cyclic distance of a stream from the last one.
        let first = self.last.map_or(0, |last| last.0.wrapping_add(1));
        let inspected = waiting.take(MAX_INSPECTED).enumerate();
        let Some((place, stream)) =
            inspected.min_by_key(|(_, stream)| stream.0.wrapping_sub(first))
        else {
            return 0;
        };
        self.last = Some(stream);
        place
    }
}

/// The lowest value first, in the order of arrival among equals.
#[derive(Debug)]
struct ByPriority {
    /// By stream; others have 0.
    values: Vec<(StreamId, u16)>,
}

impl ByPriority {
    fn new(mut values: Vec<(StreamId, u16)>) -> Self {
        values.sort_by_key(|(stream, _)| *stream);
        Self { values }
    }

    fn value(&self, stream: StreamId) -> u16 {
        let at = self.values.binary_search_by_key(&stream, |(stream, _)| *stream);
        at.map_or(0, |at| self.values[at].1)
    }
}

impl ReceiveScheduler for ByPriority {
    fn next(&mut self, waiting: &mut dyn Iterator<Item = StreamId>) -> usize {
        let inspected = waiting.take(MAX_INSPECTED).enumerate();
        inspected.min_by_key(|(_, stream)| self.value(*stream)).map_or(0, |(place, _)| place)
    }
}
