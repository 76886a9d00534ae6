//! Weighted fair queueing (RFC 8260 §3.6): shares of bytes by the weights of the streams.

use super::virtual_time::VirtualTime;
use super::{Scheduler, StreamSlot, StreamTurn};

/// Shares of bytes by weight; a stream without one has weight 1.
#[derive(Debug, Default)]
pub(super) struct WeightedFairQueueing {
    time: VirtualTime,
}

impl Scheduler for WeightedFairQueueing {
    fn on_queued(&mut self, stream: StreamSlot) {
        self.time.join(stream);
    }

    fn next(&mut self, eligible: &mut dyn FnMut(StreamSlot) -> bool) -> Option<StreamSlot> {
        self.time.first(eligible)
    }

    fn on_sent(&mut self, turn: &StreamTurn) {
        self.time.on_sent(turn);
    }

    fn set_value(&mut self, stream: StreamSlot, value: u16) {
        self.time.set_weight(stream, value);
    }
}
