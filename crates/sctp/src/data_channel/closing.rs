//! Closes channels by resetting their streams (RFC 8831 §6.7, RFC 6525): each side resets its own
//! once the waiting messages have been sent, and a side that sees the other's stream reset follows.
//! The number is free when both are.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::time::Duration;

use super::channel::ChannelState;
use super::channels::DataChannels;
use super::event::ChannelEvent;
use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::event::ReconfigurationOutcome;
use crate::identifier::StreamId;

/// The maximum number of streams that one request resets: a chunk that names them fits any packet.
const MAX_AT_ONCE: usize = 500;

/// The maximum number of refused channels whose streams are being reset; further ones are ignored.
const MAX_REFUSALS: usize = 256;

/// The state of our stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OutgoingReset {
    /// Queued messages are being sent.
    Draining,
    /// A reset was requested.
    Requested,
    /// It is reset.
    Done,
}

#[derive(Clone, Copy, Debug)]
struct ClosingStream {
    outgoing: OutgoingReset,
    /// Whether the peer's stream is reset, or need not be.
    incoming_done: bool,
}

/// Streams that are being closed.
#[derive(Debug, Default)]
pub(super) struct ClosingStreams {
    by_stream: BTreeMap<StreamId, ClosingStream>,
    /// Streams that could not be reset and cannot be reused.
    unusable: BTreeSet<StreamId>,
}

impl ClosingStreams {
    pub(super) fn contains(&self, id: StreamId) -> bool {
        self.by_stream.contains_key(&id) || self.unusable.contains(&id)
    }

    /// Returns whether the peer's stream is reset while ours is not.
    pub(super) fn is_half_closed(&self, id: StreamId) -> bool {
        self.by_stream.get(&id).is_some_and(|closing| closing.incoming_done)
    }

    /// Returns whether only the response to our reset is missing. A peer that reuses the stream
    /// implies it: it does so once both streams are reset, and its response may be late or lost.
    pub(super) fn awaits_only_response(&self, id: StreamId) -> bool {
        self.by_stream.get(&id).is_some_and(|closing| {
            closing.incoming_done && closing.outgoing == OutgoingReset::Requested
        })
    }

    fn is_request_pending(&self) -> bool {
        self.by_stream.values().any(|closing| closing.outgoing == OutgoingReset::Requested)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl DataChannels {
    /// Starts to close a channel: only queued messages are still sent.
    pub(super) fn begin_closing(&mut self, id: StreamId, incoming_done: bool) {
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.state = ChannelState::Closing;
        }
        let closing = ClosingStream { outgoing: OutgoingReset::Draining, incoming_done };
        self.closings.by_stream.insert(id, closing);
    }

    /// Handles a violation on a stream: closes its channel, or, if there is none, tells the peer by
    /// a reset that there will be none (RFC 8832 §6).
    pub(super) fn refuse(&mut self, id: StreamId) {
        if self.closings.contains(id) || id.0 >= self.streams.unwrap_or(0) {
            return;
        }
        if self.channels.contains_key(&id) {
            self.begin_closing(id, false);
            self.events.push_back(ChannelEvent::Closing { id });
        } else if self.closings.by_stream.len() < self.settings.max_channels + MAX_REFUSALS {
            self.begin_closing(id, true);
        }
    }

    /// Requests the reset of those of our streams that have nothing queued.
    pub(super) fn request_resets(&mut self, now: Duration, endpoint: &mut Endpoint) -> bool {
        if self.closings.by_stream.is_empty()
            || self.streams.is_none()
            || self.closings.is_request_pending()
        {
            return false;
        }
        let is_ready = |id: &StreamId, closing: &ClosingStream| {
            closing.outgoing == OutgoingReset::Draining
                && self.buffered_amount(endpoint, *id) == 0
                && !self.has_queued_control(*id)
        };
        let all = self.closings.by_stream.iter();
        let ready: Vec<StreamId> = all
            .filter(|(id, closing)| is_ready(id, closing))
            .map(|(id, _)| *id)
            .take(MAX_AT_ONCE)
            .collect();
        if ready.is_empty() {
            return false;
        }
        let association = endpoint.association_mut(now, self.association);
        match association.and_then(|mut association| association.reset_streams(true, &ready)) {
            Ok(()) => {
                for id in &ready {
                    if let Some(closing) = self.closings.by_stream.get_mut(id) {
                        closing.outgoing = OutgoingReset::Requested;
                    }
                }
                true
            }
            // Another request is pending, or the association is about to end.
            Err(Error::Busy | Error::WrongState | Error::NoAssociation) => false,
            Err(_) => {
                ready.into_iter().for_each(|id| self.mark_unusable(id));
                true
            }
        }
    }

    /// Handles the response to our request.
    pub(super) fn on_own_reset(&mut self, streams: &[StreamId], outcome: ReconfigurationOutcome) {
        let ids = match streams {
            [] => self.channels.keys().copied().collect(),
            named => named.to_vec(),
        };
        for id in ids {
            let closing = self.closings.by_stream.get_mut(&id);
            match closing {
                Some(closing) if closing.outgoing == OutgoingReset::Requested => {
                    if outcome == ReconfigurationOutcome::Performed {
                        closing.outgoing = OutgoingReset::Done;
                        self.free_if_done(id);
                    } else {
                        self.mark_unusable(id);
                    }
                }
                Some(_) => {}
                // The peer requested it, so it is done with the channel.
                None if self.channels.contains_key(&id)
                    && outcome == ReconfigurationOutcome::Performed =>
                {
                    self.begin_closing(id, false);
                    self.events.push_back(ChannelEvent::Closing { id });
                }
                None => {}
            }
        }
    }

    /// Handles a reset of the peer's stream: all data sent on it before has been received.
    pub(super) fn on_peer_reset(&mut self, id: StreamId) {
        self.assembly.forget(id);
        if let Some(closing) = self.closings.by_stream.get_mut(&id) {
            closing.incoming_done = true;
            self.free_if_done(id);
        } else if self.channels.contains_key(&id) {
            self.begin_closing(id, true);
            self.events.push_back(ChannelEvent::Closing { id });
        }
    }

    /// Treats the pending response as received, as the peer has reused the stream.
    pub(super) fn finish(&mut self, id: StreamId) {
        if let Some(closing) = self.closings.by_stream.get_mut(&id) {
            *closing = ClosingStream { outgoing: OutgoingReset::Done, incoming_done: true };
            self.free_if_done(id);
        }
    }

    /// Marks a stream as unusable, as it cannot be reset; for the user the channel is closed.
    fn mark_unusable(&mut self, id: StreamId) {
        self.finish(id);
        self.closings.unusable.insert(id);
    }

    fn free_if_done(&mut self, id: StreamId) {
        let done = |closing: &ClosingStream| {
            closing.outgoing == OutgoingReset::Done && closing.incoming_done
        };
        if self.closings.by_stream.get(&id).is_some_and(done) {
            self.closings.by_stream.remove(&id);
            self.forget(id);
        }
    }

    /// Removes a channel.
    pub(super) fn forget(&mut self, id: StreamId) {
        self.assembly.forget(id);
        let Some(channel) = self.channels.remove(&id) else { return };
        if channel.by_peer {
            self.name_bytes = self.name_bytes.saturating_sub(channel.name_bytes());
        }
        self.unreported.insert(id);
        self.events.push_back(ChannelEvent::Closed { id });
    }
}
