//! Streams stopped, renumbered and resumed for a reset of outgoing streams (RFC 6525 §5.1.2), and
//! the numbers of streams and TSNs changed (§5.1.4, §5.1.5).

use super::Sender;
use crate::identifier::StreamId;
use crate::serial::Tsn;

impl Sender {
    /// Begins nothing new on these streams, those not used so far included; on all of them if the
    /// list is empty. What was begun goes on, and messages can still be handed in.
    pub fn pause_streams(&mut self, streams: &[StreamId]) {
        if streams.is_empty() {
            self.streams.pause_all();
        }
        streams.iter().for_each(|stream| self.streams.pause(*stream));
    }

    /// Whether no message of these streams is half sent, so that
    /// [`Self::last_assigned_tsn`] covers all that went out on them (RFC 6525 §5.1.2, A3).
    #[must_use]
    pub fn are_streams_quiet(&self, streams: &[StreamId]) -> bool {
        let begun = |head| self.messages.get(head).is_some_and(|message| message.is_begun());
        if streams.is_empty() {
            return !self.streams.iter().any(|stream| begun(stream.head));
        }
        let slots = streams.iter().filter_map(|stream| self.streams.find(*stream));
        !slots.filter_map(|slot| self.streams.get(slot)).any(|stream| begun(stream.head))
    }

    /// Our last TSN that was used (`Sender's Last Assigned TSN`, RFC 6525 §4.1).
    #[must_use]
    pub fn last_assigned_tsn(&self) -> Tsn {
        self.next_tsn().previous()
    }

    /// The peer has reset these streams: their numbers start anew, and they go on.
    pub fn reset_streams(&mut self, streams: &[StreamId]) {
        if streams.is_empty() {
            self.streams.renumber_all();
        }
        streams.iter().for_each(|stream| self.streams.renumber(*stream));
        self.resume_streams(streams);
    }

    /// The reset of these streams did not come about: they go on as before.
    pub fn resume_streams(&mut self, streams: &[StreamId]) {
        if streams.is_empty() {
            self.streams.resume_all();
        }
        streams.iter().for_each(|stream| self.streams.resume(*stream));
    }

    /// There are more streams to send on now, or fewer after a restart.
    pub fn set_outbound_streams(&mut self, outbound: u16) {
        self.terms.outbound = outbound;
    }
}
