//! Fair bandwidth (RFC 8260 §3.5): the same share of bytes for every stream that has something to
//! send, whatever the sizes of its messages.

use super::virtual_time::VirtualTime;
use super::{Scheduler, StreamSlot, StreamTurn};

/// The same share of bytes for all.
#[derive(Debug, Default)]
pub(super) struct FairBandwidth {
    time: VirtualTime,
}

impl Scheduler for FairBandwidth {
    fn on_queued(&mut self, stream: StreamSlot) {
        self.time.join(stream);
    }

    fn next(&mut self, eligible: &mut dyn FnMut(StreamSlot) -> bool) -> Option<StreamSlot> {
        self.time.first(eligible)
    }

    fn on_sent(&mut self, turn: &StreamTurn) {
        self.time.on_sent(turn);
    }
}
