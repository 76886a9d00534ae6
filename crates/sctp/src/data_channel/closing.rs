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

/// The most streams that are reset by one request: a chunk that names them fits any packet.
const MAX_AT_ONCE: usize = 500;

/// The most channels refused to the peer whose streams are reset at a time; of others it hears nothing.
const MAX_REFUSALS: usize = 256;

/// What has become of our stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Outgoing {
    /// Messages wait to be sent on it.
    Draining,
    /// The peer was asked to take it as reset.
    Asked,
    /// It is reset.
    Done,
}

#[derive(Clone, Copy, Debug)]
struct Closing {
    outgoing: Outgoing,
    /// Whether the peer's stream is reset, or nobody waits for that.
    incoming_done: bool,
}

/// Streams on their way to be free.
#[derive(Debug, Default)]
pub(super) struct Closings {
    by_stream: BTreeMap<StreamId, Closing>,
    /// Streams that the peer would not or could not reset: nothing can be begun on them.
    spoilt: BTreeSet<StreamId>,
}

impl Closings {
    pub(super) fn contains(&self, id: StreamId) -> bool {
        self.by_stream.contains_key(&id) || self.spoilt.contains(&id)
    }

    /// Whether the peer's stream is reset while ours is not.
    pub(super) fn is_half_closed(&self, id: StreamId) -> bool {
        self.by_stream.get(&id).is_some_and(|closing| closing.incoming_done)
    }

    /// Whether only the answer to our reset is missing. Who sees the peer begin anew then knows it: the
    /// peer does so once both streams are reset, and its answer may be late or lost.
    pub(super) fn is_all_but_answered(&self, id: StreamId) -> bool {
        self.by_stream
            .get(&id)
            .is_some_and(|closing| closing.incoming_done && closing.outgoing == Outgoing::Asked)
    }

    fn is_asking(&self) -> bool {
        self.by_stream.values().any(|closing| closing.outgoing == Outgoing::Asked)
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}

impl DataChannels {
    /// No more is sent on a channel but what waits.
    pub(super) fn begin_closing(&mut self, id: StreamId, incoming_done: bool) {
        if let Some(channel) = self.channels.get_mut(&id) {
            channel.state = ChannelState::Closing;
        }
        let closing = Closing { outgoing: Outgoing::Draining, incoming_done };
        self.closings.by_stream.insert(id, closing);
    }

    /// The peer broke the rules on a stream: the channel there is closed, and where there is none, the
    /// peer learns by a reset that there will be none (RFC 8832 §6).
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

    /// Asks the peer to take our streams as reset on which nothing waits any more.
    pub(super) fn ask_for_resets(&mut self, now: Duration, endpoint: &mut Endpoint) -> bool {
        if self.closings.by_stream.is_empty() || self.streams.is_none() || self.closings.is_asking()
        {
            return false;
        }
        let is_ready = |id: &StreamId, closing: &Closing| {
            closing.outgoing == Outgoing::Draining
                && self.buffered_amount(endpoint, *id) == 0
                && !self.waits_for_control(*id)
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
                        closing.outgoing = Outgoing::Asked;
                    }
                }
                true
            }
            // Something else is under way, or the association is about to end.
            Err(Error::Busy | Error::WrongState | Error::NoAssociation) => false,
            Err(_) => {
                ready.into_iter().for_each(|id| self.spoil(id));
                true
            }
        }
    }

    /// The peer answered our request.
    pub(super) fn on_own_reset(&mut self, streams: &[StreamId], outcome: ReconfigurationOutcome) {
        let ids = match streams {
            [] => self.channels.keys().copied().collect(),
            named => named.to_vec(),
        };
        for id in ids {
            let asked = self.closings.by_stream.get_mut(&id);
            match asked {
                Some(closing) if closing.outgoing == Outgoing::Asked => {
                    if outcome == ReconfigurationOutcome::Performed {
                        closing.outgoing = Outgoing::Done;
                        self.settle(id);
                    } else {
                        self.spoil(id);
                    }
                }
                Some(_) => {}
                // The peer wished for it, which says that it is done with the channel.
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

    /// The peer's stream starts anew: all that came on it before has been taken.
    pub(super) fn on_peer_reset(&mut self, id: StreamId) {
        self.assembly.forget(id);
        if let Some(closing) = self.closings.by_stream.get_mut(&id) {
            closing.incoming_done = true;
            self.settle(id);
        } else if self.channels.contains_key(&id) {
            self.begin_closing(id, true);
            self.events.push_back(ChannelEvent::Closing { id });
        }
    }

    /// What waits for an answer is taken as answered: the peer has begun anew.
    pub(super) fn finish(&mut self, id: StreamId) {
        if let Some(closing) = self.closings.by_stream.get_mut(&id) {
            *closing = Closing { outgoing: Outgoing::Done, incoming_done: true };
            self.settle(id);
        }
    }

    /// The stream cannot be reset, and so not used again; for the user the channel is closed.
    fn spoil(&mut self, id: StreamId) {
        self.finish(id);
        self.closings.spoilt.insert(id);
    }

    fn settle(&mut self, id: StreamId) {
        let done = |closing: &Closing| closing.outgoing == Outgoing::Done && closing.incoming_done;
        if self.closings.by_stream.get(&id).is_some_and(done) {
            self.closings.by_stream.remove(&id);
            self.forget(id);
        }
    }

    /// A channel is no more.
    pub(super) fn forget(&mut self, id: StreamId) {
        self.assembly.forget(id);
        let Some(channel) = self.channels.remove(&id) else { return };
        if channel.by_peer {
            self.names = self.names.saturating_sub(channel.names());
        }
        self.untold.insert(id);
        self.events.push_back(ChannelEvent::Closed { id });
    }
}
