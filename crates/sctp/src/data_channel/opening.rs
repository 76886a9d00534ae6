//! Channels opened by the peer, and its acknowledgements of ours (RFC 8832 §6).

use super::channel::{ChannelState, DataChannel};
use super::channels::{DataChannels, QueuedDcep};
use super::dcep::{DcepMessage, DcepOpen};
use super::event::ChannelEvent;
use crate::identifier::StreamId;

impl DataChannels {
    /// Handles a DCEP message.
    pub(super) fn handle_dcep(&mut self, id: StreamId, unordered: bool, message: &[u8]) {
        match DcepMessage::parse(message).filter(|_| !unordered) {
            Some(DcepMessage::Open(open)) => self.handle_open(id, open),
            Some(DcepMessage::Ack) => self.mark_open(id),
            None => {
                self.counters.malformed_messages += 1;
                self.refuse(id);
            }
        }
    }

    fn handle_open(&mut self, id: StreamId, open: DcepOpen) {
        if self.closings.awaits_only_response(id) {
            self.finish(id);
        }
        let channel = DataChannel::from_peer(open);
        let name_bytes = self.name_bytes + channel.name_bytes();
        let is_refused = self.settings.role.opens(id)
            || self.channels.contains_key(&id)
            || self.closings.contains(id)
            || id.0 >= self.streams.unwrap_or(0)
            || self.channels.len() >= self.settings.max_channels
            || name_bytes > self.settings.max_names;
        if is_refused {
            self.counters.refused_channels += 1;
            self.refuse(id);
            return;
        }
        self.name_bytes = name_bytes;
        self.channels.insert(id, channel);
        self.control.push_back((id, QueuedDcep::Ack));
        self.events.push_back(ChannelEvent::Opened { id, by_peer: true });
    }

    /// Marks a channel as open once the peer has confirmed it or sends on it.
    pub(super) fn mark_open(&mut self, id: StreamId) {
        match self.channels.get_mut(&id) {
            Some(channel) if channel.state == ChannelState::Connecting => {
                channel.state = ChannelState::Open;
                self.events.push_back(ChannelEvent::Opened { id, by_peer: false });
            }
            Some(_) => {}
            None => self.counters.stray_messages += 1,
        }
    }
}
