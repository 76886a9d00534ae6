//! Events of the association, and when they take effect: what the peer did after its last message
//! is reported after that message.

use alloc::collections::BTreeSet;

use super::channel::ChannelState;
use super::channels::DataChannels;
use super::event::ChannelEvent;
use crate::endpoint::{AssociationState, Endpoint};
use crate::event::{Event, ReconfigurationOutcome};
use crate::identifier::StreamId;

/// What is acted on once all messages have been taken.
#[derive(Debug, Default)]
pub(super) struct Notices {
    /// The peer's streams that were reset.
    reset: BTreeSet<StreamId>,
    /// Whether all of them were.
    all_reset: bool,
    /// Streams on which the peer gave up a message of which a part came.
    given_up: BTreeSet<StreamId>,
    /// Nothing is left of all channels, whether or not the association goes on.
    is_over: bool,
}

impl DataChannels {
    /// Takes note of an event of the association; says whether it was for channels alone.
    pub(super) fn notice(&mut self, endpoint: &Endpoint, event: &Event) -> bool {
        match event {
            Event::Readable => {}
            Event::Writable => self.events.push_back(ChannelEvent::Writable),
            Event::PartialDeliveryAborted { stream } => {
                self.notices.given_up.insert(*stream);
            }
            Event::StreamsReset { outgoing: true, streams, outcome } => {
                self.on_own_reset(streams, *outcome);
            }
            Event::StreamsReset { outgoing: false, streams, outcome } => {
                if *outcome == ReconfigurationOutcome::Performed {
                    self.note_peer_reset(streams);
                }
            }
            other => {
                self.notice_more(endpoint, other);
                return false;
            }
        }
        true
    }

    fn notice_more(&mut self, endpoint: &Endpoint, event: &Event) {
        match event {
            Event::Up { .. } => self.open_negotiated(endpoint),
            Event::StreamsAdded { .. } => self.streams = self.streams_agreed_on(endpoint),
            Event::Restarted => {
                self.control.clear();
                self.notices.is_over = true;
            }
            Event::AssociationReset { outcome: ReconfigurationOutcome::Performed } => {
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

    /// Streams that both sides may send on, if the association is up.
    pub(super) fn streams_agreed_on(&self, endpoint: &Endpoint) -> Option<u16> {
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

    /// Channels agreed on beforehand are open; those beyond the streams agreed on cannot be.
    fn open_negotiated(&mut self, endpoint: &Endpoint) {
        self.streams = self.streams_agreed_on(endpoint);
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

    /// The word that opens a channel may still wait among the messages before its reset.
    fn note_peer_reset(&mut self, streams: &[StreamId]) {
        self.notices.all_reset |= streams.is_empty();
        self.notices.reset.extend(streams);
    }

    /// Acts on what was noted; says whether there was anything.
    pub(super) fn act_on_notices(&mut self, endpoint: &Endpoint) -> bool {
        let mut notices = core::mem::take(&mut self.notices);
        if notices.all_reset {
            notices.reset.extend(self.channels.keys());
        }
        let nothing = notices.reset.is_empty() && notices.given_up.is_empty() && !notices.is_over;
        notices.given_up.iter().for_each(|id| self.assembly.forget(*id));
        notices.reset.iter().for_each(|id| self.on_peer_reset(*id));
        if notices.is_over {
            self.closings.clear();
            let all: alloc::vec::Vec<_> = self.channels.keys().copied().collect();
            all.into_iter().for_each(|id| self.forget(id));
            self.streams = self.streams_agreed_on(endpoint);
        }
        !nothing
    }
}
