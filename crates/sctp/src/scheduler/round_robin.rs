//! Round-robin (RFC 8260 §3.2): each stream in turn, a message each.

use super::turns::StreamTurns;
use super::{Scheduler, StreamSlot, StreamTurn};

/// Each stream in turn: a message each, or a chunk each if messages are interleaved.
#[derive(Debug)]
pub(super) struct RoundRobin {
    turns: StreamTurns,
    by_chunk: bool,
}

impl RoundRobin {
    /// `by_chunk`: a turn is a chunk, not a message.
    #[must_use]
    pub(super) fn new(by_chunk: bool) -> Self {
        Self { turns: StreamTurns::default(), by_chunk }
    }
}

impl Scheduler for RoundRobin {
    fn on_queued(&mut self, stream: StreamSlot) {
        self.turns.join(stream);
    }

    fn next(&mut self, eligible: &mut dyn FnMut(StreamSlot) -> bool) -> Option<StreamSlot> {
        self.turns.first(eligible)
    }

    fn on_sent(&mut self, turn: &StreamTurn) {
        if turn.ends_stream {
            self.turns.leave(turn.stream);
        } else if turn.bytes > 0 && (turn.ends_message || self.by_chunk) {
            self.turns.rotate(turn.stream);
        }
    }
}
