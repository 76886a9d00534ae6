//! Streams that take turns.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::StreamSlot;

/// Streams with something to send, the next one first, each once.
#[derive(Debug, Default)]
pub(super) struct Turns {
    order: VecDeque<StreamSlot>,
    /// By slot: whether it is in `order`.
    waiting: Vec<bool>,
}

impl Turns {
    /// Puts a stream at the end, unless it waits already.
    pub(super) fn join(&mut self, stream: StreamSlot) {
        if self.waiting.len() <= stream.index() {
            self.waiting.resize(stream.index() + 1, false);
        }
        let Some(waiting) = self.waiting.get_mut(stream.index()) else { return };
        if !core::mem::replace(waiting, true) {
            self.order.push_back(stream);
        }
    }

    /// The first one that may.
    pub(super) fn first(&self, eligible: &mut dyn FnMut(StreamSlot) -> bool) -> Option<StreamSlot> {
        self.order.iter().copied().find(|stream| eligible(*stream))
    }

    /// Whether the stream waits for a turn.
    pub(super) fn has(&self, stream: StreamSlot) -> bool {
        self.waiting.get(stream.index()).copied().unwrap_or(false)
    }

    /// Whether nobody waits.
    pub(super) fn is_empty(&self) -> bool {
        self.order.is_empty()
    }

    /// The stream had its turn: it goes to the end.
    pub(super) fn rotate(&mut self, stream: StreamSlot) {
        if self.take(stream) {
            self.order.push_back(stream);
        }
    }

    /// The stream has nothing more to send.
    pub(super) fn leave(&mut self, stream: StreamSlot) {
        if self.take(stream)
            && let Some(waiting) = self.waiting.get_mut(stream.index())
        {
            *waiting = false;
        }
    }

    fn take(&mut self, stream: StreamSlot) -> bool {
        if self.order.front() == Some(&stream) {
            self.order.pop_front();
            return true;
        }
        let at = self.order.iter().position(|other| *other == stream);
        at.and_then(|at| self.order.remove(at)).is_some()
    }
}
