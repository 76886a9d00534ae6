//! Shares of bytes by virtual time: the stream that has sent least for its weight goes next
//! (start-time fair queueing).

use alloc::collections::BTreeSet;
use alloc::vec::Vec;

use super::{StreamSlot, StreamTurn};

/// The virtual time of one byte at weight 1. Divisible by most small weights.
const SCALE: u64 = 5040;
/// The maximum virtual time that a stream can catch up: 32 KiB at weight 1. A stream that may only
/// use a slow path, or none for a while, falls behind without limit; once paths are shared again,
/// it would monopolize them until it has caught up.
const MAX_BEHIND: u64 = 32 * 1024 * SCALE;

/// A stream with the virtual time at which its next turn starts.
type StreamStart = (u64, StreamSlot);

/// Streams by their starts. The first is kept apart: most associations send on one stream at a time, which then never
/// enters the tree.
#[derive(Debug, Default)]
struct StartOrder {
    first: Option<StreamStart>,
    /// Empty without a first one, and later than it.
    others: BTreeSet<StreamStart>,
}

impl StartOrder {
    fn insert(&mut self, start: StreamStart) {
        match self.first {
            Some(first) if first <= start => {
                self.others.insert(start);
            }
            former => {
                self.first = Some(start);
                self.others.extend(former);
            }
        }
    }

    fn remove(&mut self, start: StreamStart) {
        if self.first == Some(start) {
            self.first = self.others.pop_first();
        } else {
            self.others.remove(&start);
        }
    }

    fn replace(&mut self, former: StreamStart, next: StreamStart) {
        if self.first == Some(former) && self.others.is_empty() {
            self.first = Some(next);
        } else {
            self.remove(former);
            self.insert(next);
        }
    }

    fn iter(&self) -> impl Iterator<Item = &StreamStart> {
        self.first.iter().chain(&self.others)
    }
}

/// Streams in the order of the virtual time at which their next turn starts.
#[derive(Debug, Default)]
pub(super) struct VirtualTime {
    order: StartOrder,
    /// By slot.
    clocks: Vec<StreamClock>,
    /// The start of the last turn.
    now: u64,
}

#[derive(Clone, Copy, Debug)]
struct StreamClock {
    start: u64,
    weight: u16,
    waiting: bool,
}

impl StreamClock {
    const NEW: Self = Self { start: 0, weight: 1, waiting: false };
}

impl VirtualTime {
    fn clock(&mut self, stream: StreamSlot) -> &mut StreamClock {
        if self.clocks.len() <= stream.index() {
            self.clocks.resize(stream.index() + 1, StreamClock::NEW);
        }
        &mut self.clocks[stream.index()]
    }

    /// A stream that was idle gets no credit for that time.
    pub(super) fn join(&mut self, stream: StreamSlot) {
        let now = self.now;
        let clock = self.clock(stream);
        if clock.waiting {
            return;
        }
        clock.waiting = true;
        clock.start = clock.start.max(now);
        let start = clock.start;
        self.order.insert((start, stream));
    }

    pub(super) fn first(&self, eligible: &mut dyn FnMut(StreamSlot) -> bool) -> Option<StreamSlot> {
        self.order.iter().map(|(_, stream)| *stream).find(|stream| eligible(*stream))
    }

    pub(super) fn on_sent(&mut self, turn: &StreamTurn) {
        let floor = self.now.saturating_sub(MAX_BEHIND);
        let clock = self.clock(turn.stream);
        let start = clock.start;
        let cost = (turn.bytes as u64).saturating_mul(SCALE);
        // Without a division for streams of the usual weight.
        let cost = if clock.weight > 1 { cost / u64::from(clock.weight) } else { cost };
        clock.start = start.max(floor).saturating_add(cost);
        clock.waiting = !turn.ends_stream;
        let next = clock.start;
        if turn.bytes > 0 {
            self.now = self.now.max(start);
        }
        let (former, next) = ((start, turn.stream), (next, turn.stream));
        if turn.ends_stream {
            self.order.remove(former);
        } else {
            self.order.replace(former, next);
        }
    }

    pub(super) fn set_weight(&mut self, stream: StreamSlot, weight: u16) {
        self.clock(stream).weight = weight.max(1);
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn the_order_is_that_of_a_set(changes in prop::collection::vec((any::<bool>(), 0..4_u64, 0..6_u16), 0..60)) {
            let (mut order, mut model) = (StartOrder::default(), BTreeSet::new());
            for (inserts, time, slot) in changes {
                let start = (time, StreamSlot(slot));
                if inserts && !model.contains(&start) {
                    order.insert(start);
                    model.insert(start);
                } else if inserts && !model.contains(&(time + 1, start.1)) {
                    let next = (time + 1, start.1);
                    order.replace(start, next);
                    model.remove(&start);
                    model.insert(next);
                } else {
                    order.remove(start);
                    model.remove(&start);
                }
                prop_assert!(order.iter().eq(&model));
            }
        }
    }
}
