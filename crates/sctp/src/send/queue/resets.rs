//! Pausing, renumbering and resuming of streams for a reset of outgoing streams (RFC 6525 §5.1.2).

use super::SendQueue;
use crate::identifier::StreamId;

impl SendQueue {
    /// Starts no new messages on these streams, including those not used so far, or on all if the
    /// list is empty. Messages that were started continue, and messages can still be queued.
    pub(in crate::send) fn pause(&mut self, streams: &[StreamId]) {
        if streams.is_empty() {
            self.streams.pause_all();
        }
        streams.iter().for_each(|stream| self.streams.pause(*stream));
    }

    /// Returns whether no message of these streams is partly sent.
    pub(in crate::send) fn is_quiet(&self, streams: &[StreamId]) -> bool {
        let is_started = |head| self.messages.get(head).is_some_and(|message| message.is_started());
        if streams.is_empty() {
            return !self.streams.iter().any(|stream| is_started(stream.head));
        }
        let slots = streams.iter().filter_map(|stream| self.streams.find(*stream));
        !slots.filter_map(|slot| self.streams.get(slot)).any(|stream| is_started(stream.head))
    }

    /// Restarts the numbers of these streams, and resumes them.
    pub(in crate::send) fn renumber(&mut self, streams: &[StreamId]) {
        if streams.is_empty() {
            self.streams.renumber_all();
        }
        streams.iter().for_each(|stream| self.streams.renumber(*stream));
        self.resume(streams);
    }

    /// Resumes these streams.
    pub(in crate::send) fn resume(&mut self, streams: &[StreamId]) {
        if streams.is_empty() {
            self.streams.resume_all();
        }
        streams.iter().for_each(|stream| self.streams.resume(*stream));
    }
}
