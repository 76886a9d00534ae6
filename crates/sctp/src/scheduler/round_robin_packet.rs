//! Round-robin by packet (RFC 8260 §3.3): each stream in turn, a packet each, so that a lost packet
//! holds up one stream only.

use super::turns::StreamTurns;
use super::{Scheduler, StreamSlot, StreamTurn};

/// Each stream in turn, a packet each: one packet carries chunks of one stream.
#[derive(Debug, Default)]
pub(super) struct RoundRobinPacket {
    turns: StreamTurns,
    /// The stream that the packet under construction belongs to.
    packet: Option<StreamSlot>,
}

impl Scheduler for RoundRobinPacket {
    fn on_queued(&mut self, stream: StreamSlot) {
        self.turns.join(stream);
    }

    fn next(&mut self, eligible: &mut dyn FnMut(StreamSlot) -> bool) -> Option<StreamSlot> {
        match self.packet {
            Some(stream) => (self.turns.has(stream) && eligible(stream)).then_some(stream),
            None => self.turns.first(eligible),
        }
    }

    fn on_sent(&mut self, turn: &StreamTurn) {
        if turn.bytes > 0 {
            self.packet = Some(turn.stream);
        }
        if turn.ends_stream {
            self.turns.leave(turn.stream);
        }
    }

    fn on_packet(&mut self) {
        if let Some(stream) = self.packet.take()
            && self.turns.has(stream)
        {
            self.turns.rotate(stream);
        }
    }
}
