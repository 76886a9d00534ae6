//! First come, first served (RFC 8260 §3.1): messages leave in the order in which they came.

use alloc::collections::VecDeque;

use super::{Scheduler, StreamSlot, StreamTurn};

/// First come, first served: the order of the messages over all streams, one entry a message.
#[derive(Debug, Default)]
pub(super) struct FcfsScheduler {
    messages: VecDeque<StreamSlot>,
    /// Where in `messages` the one is that was chosen last: behind those that may not send now.
    chosen: usize,
}

impl Scheduler for FcfsScheduler {
    #[inline]
    fn on_queued(&mut self, stream: StreamSlot) {
        self.messages.push_back(stream);
    }

    #[inline]
    fn next(&mut self, eligible: &mut dyn FnMut(StreamSlot) -> bool) -> Option<StreamSlot> {
        // Nearly always the first one may send.
        if let Some(&first) = self.messages.front()
            && eligible(first)
        {
            self.chosen = 0;
            return Some(first);
        }
        for (index, stream) in self.messages.iter().enumerate().skip(1) {
            if eligible(*stream) {
                self.chosen = index;
                return Some(*stream);
            }
        }
        None
    }

    #[inline]
    fn on_sent(&mut self, turn: &StreamTurn) {
        if !turn.ends_message {
            return;
        }
        if self.chosen == 0 && self.messages.front() == Some(&turn.stream) {
            self.messages.pop_front();
            return;
        }
        let at = match self.messages.get(self.chosen) {
            Some(stream) if *stream == turn.stream => Some(self.chosen),
            _ => self.messages.iter().position(|stream| *stream == turn.stream),
        };
        if let Some(at) = at {
            self.messages.remove(at);
        }
        self.chosen = 0;
    }
}
