//! Events of the association, and when they take effect: what the peer did after its last message
//! is reported after that message.

use alloc::collections::BTreeSet;

use super::channel::ChannelState;
use super::channels::DataChannels;
use super::event::ChannelEvent;
use crate::endpoint::{AssociationState, Endpoint};
use crate::event::{Event, ReconfigurationOutcome};
use crate::identifier::StreamId;

/// Events that are handled once all messages have been received.
#[derive(Debug, Default)]
pub(super) struct PendingNotices {
    /// The peer's streams that were reset.
    reset: BTreeSet<StreamId>,
    /// Whether all of them were reset.
    all_reset: bool,
    /// Streams on which the peer abandoned a partly received message.
    aborted: BTreeSet<StreamId>,
    /// Whether all channels are gone, whether or not the association continues.
    is_over: bool,
}

impl DataChannels {
    /// Handles an event of the association; returns whether it concerned channels only.
    pub(super) fn handle_event(&mut self, endpoint: &Endpoint, event: &Event) -> bool {
        match event {
            Event::Readable => {}
            Event::Writable => self.events.push_back(ChannelEvent::Writable),
            Event::PartialDeliveryAborted { stream } => {
                self.notices.aborted.insert(*stream);
            }
            Event::StreamsReset { outgoing: true, streams, outcome } => {
                self.on_own_reset(streams, *outcome);
            }
            Event::StreamsReset { outgoing: false, streams, outcome } => {
                if *outcome == ReconfigurationOutcome::Performed {
                    self.defer_peer_reset(streams);
                }
            }
            other => {
                self.handle_association_event(endpoint, other);
                return false;
            }
        }
        true
    }

    fn handle_association_event(&mut self, endpoint: &Endpoint, event: &Event) {
        match event {
            Event::Up { .. } => self.open_negotiated(endpoint),
            Event::StreamsAdded { .. } => self.streams = self.negotiated_streams(endpoint),
            Event::Restarted => {
                self.control.clear();
                self.notices.is_over = true;
            }
            Event::AssociationReset { outcome: ReconfigurationOutcome::Performed, .. } => {
                self.notices.is_over = true;
            }
            Event::Closed | Event::Lost(_) => {
                self.has_ended = true;
                self.control.clear();
                self.notices.is_over = true;
            }
            _ => {}
        }
    }

    /// Returns the number of streams that both sides may send on, if the association is
    /// established.
    pub(super) fn negotiated_streams(&self, endpoint: &Endpoint) -> Option<u16> {
        let status = endpoint.status(self.association)?;
        let is_up = !matches!(
            status.state,
            AssociationState::CookieWait
                | AssociationState::Held
                | AssociationState::CookieEchoed
                | AssociationState::Closed
        );
        is_up.then(|| status.outbound_streams.min(status.inbound_streams))
    }

    /// Opens the negotiated channels; closes those beyond the negotiated streams.
    fn open_negotiated(&mut self, endpoint: &Endpoint) {
        self.streams = self.negotiated_streams(endpoint);
        let streams = self.streams.unwrap_or(0);
        let beyond = self.channels.range(StreamId(streams)..);
        for id in beyond.map(|(id, _)| *id).collect::<alloc::vec::Vec<_>>() {
            self.forget(id);
        }
        for (id, channel) in &mut self.channels {
            if channel.negotiated && channel.state == ChannelState::Connecting {
                channel.state = ChannelState::Open;
                self.events.push_back(ChannelEvent::Opened { id: *id, by_peer: false });
            }
        }
    }

    /// Defers a reset by the peer, as the message that opens a channel may be among the messages
    /// before it.
    fn defer_peer_reset(&mut self, streams: &[StreamId]) {
        self.notices.all_reset |= streams.is_empty();
        self.notices.reset.extend(streams);
    }

    /// Processes the recorded notices; returns whether there were any.
    pub(super) fn handle_deferred(&mut self, endpoint: &Endpoint) -> bool {
        let mut notices = core::mem::take(&mut self.notices);
        if notices.all_reset {
            notices.reset.extend(self.channels.keys());
        }
        let nothing = notices.reset.is_empty() && notices.aborted.is_empty() && !notices.is_over;
        notices.aborted.iter().for_each(|id| self.assembly.forget(*id));
        notices.reset.iter().for_each(|id| self.on_peer_reset(*id));
        if notices.is_over {
            self.closings.clear();
            let all: alloc::vec::Vec<_> = self.channels.keys().copied().collect();
            all.into_iter().for_each(|id| self.forget(id));
            self.streams = self.negotiated_streams(endpoint);
        }
        !nothing
    }
}
