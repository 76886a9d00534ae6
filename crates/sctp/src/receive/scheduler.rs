//! Which of several messages is handed to the application first ([`ReceiveOrder`]).
//!
//! The order of a stream is kept in any case. There is a choice only while several messages wait: if
//! the application takes more slowly than messages come, or if many came free at once as a gap was
//! filled. One that takes everything at once sees no difference but that of the last case, and that
//! one in the order only, not in time (Dreibholz et al., PFLDNeT 2010, §7, expect as much).

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use crate::config::ReceiveOrder;
use crate::identifier::StreamId;

/// The most messages that are looked at for one: what waits behind these has come later than all of
/// them.
const MOST_LOOKED_AT: usize = 256;

/// Decides which message the application gets next.
pub trait ReceiveScheduler: fmt::Debug + Send + Sync {
    /// The place of the next message, given the streams of those that wait in the order in which
    /// they came free; there is at least one. It must be the first one of its stream, or streams
    /// would lose their order.
    fn next(&mut self, waiting: &mut dyn Iterator<Item = StreamId>) -> usize;
}

/// A scheduler of this kind; none for the order in which messages come free, which needs none.
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
        // How far behind the last one a stream is, going round.
        let first = self.last.map_or(0, |last| last.0.wrapping_add(1));
        let looked_at = waiting.take(MOST_LOOKED_AT).enumerate();
        let Some((place, stream)) =
            looked_at.min_by_key(|(_, stream)| stream.0.wrapping_sub(first))
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
        let looked_at = waiting.take(MOST_LOOKED_AT).enumerate();
        looked_at.min_by_key(|(_, stream)| self.value(*stream)).map_or(0, |(place, _)| place)
    }
}
