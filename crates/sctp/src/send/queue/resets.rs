//! Streams stopped, renumbered and resumed for a reset of outgoing streams (RFC 6525 §5.1.2).

use super::SendQueue;
use crate::identifier::StreamId;

impl SendQueue {
    /// Begins nothing new on these streams, those not used so far included; on all of them if the
    /// list is empty. What was begun goes on, and messages can still be handed in.
    pub(in crate::send) fn pause(&mut self, streams: &[StreamId]) {
        if streams.is_empty() {
            self.streams.pause_all();
        }
        streams.iter().for_each(|stream| self.streams.pause(*stream));
    }

    /// Whether no message of these streams is half sent.
    pub(in crate::send) fn is_quiet(&self, streams: &[StreamId]) -> bool {
        let begun = |head| self.messages.get(head).is_some_and(|message| message.is_begun());
        if streams.is_empty() {
            return !self.streams.iter().any(|stream| begun(stream.head));
        }
        let slots = streams.iter().filter_map(|stream| self.streams.find(*stream));
        !slots.filter_map(|slot| self.streams.get(slot)).any(|stream| begun(stream.head))
    }

    /// The numbers of these streams start anew, and they go on.
    pub(in crate::send) fn renumber(&mut self, streams: &[StreamId]) {
        if streams.is_empty() {
            self.streams.renumber_all();
        }
        streams.iter().for_each(|stream| self.streams.renumber(*stream));
        self.resume(streams);
    }

    /// These streams go on as before.
    pub(in crate::send) fn resume(&mut self, streams: &[StreamId]) {
        if streams.is_empty() {
            self.streams.resume_all();
        }
        streams.iter().for_each(|stream| self.streams.resume(*stream));
    }
}
