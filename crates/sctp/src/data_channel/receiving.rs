//! Incoming messages (RFC 8831 §6.6).

use bytes::Bytes;

use super::assembly::AssemblyResult;
use super::channels::DataChannels;
use super::event::ChannelEvent;
use super::payload::{ChannelPayload, MessageKind, ppid};
use crate::identifier::{Ppid, StreamId};
use crate::message::Message;

/// The maximum length of a DCEP message in bytes: two names of the maximum length, and the header.
const MAX_DCEP: usize = 12 + 2 * u16::MAX as usize;

impl DataChannels {
    /// Handles a message, or a part of one.
    pub(super) fn handle_message(&mut self, message: Message) {
        let (id, unordered) = (message.stream, message.unordered);
        let is_dcep = message.ppid == ppid::DCEP;
        if !is_dcep && !self.accepts_messages_on(id) {
            self.counters.stray_messages += u64::from(message.ends);
            return;
        }
        let largest = if is_dcep { MAX_DCEP } else { self.settings.max_message_size };
        let assembled = match (message.begins && message.ends, message.len() <= largest) {
            (true, true) => AssemblyResult::Whole(message.ppid, message.into_bytes()),
            (true, false) => AssemblyResult::TooLarge,
            (false, _) => self.assembly.add(message, largest),
        };
        match assembled {
            AssemblyResult::Whole(ppid, data) => self.handle_whole(id, unordered, ppid, data),
            AssemblyResult::Waiting | AssemblyResult::Lost => {}
            AssemblyResult::TooLarge => self.reject_oversized(id),
        }
    }

    fn handle_whole(&mut self, id: StreamId, unordered: bool, ppid: Ppid, data: Bytes) {
        match ChannelPayload::from_ppid(ppid) {
            Some(ChannelPayload::Dcep) => self.handle_dcep(id, unordered, &data),
            Some(ChannelPayload::Whole(kind)) => self.handle_data(id, kind, data, true),
            Some(ChannelPayload::Part(kind)) => self.handle_data(id, kind, data, false),
            Some(ChannelPayload::Empty(kind)) => self.deliver(id, kind, Bytes::new()),
            None => {
                self.counters.unknown_payloads += 1;
                self.refuse(id);
            }
        }
    }

    fn handle_data(&mut self, id: StreamId, kind: MessageKind, data: Bytes, ends: bool) {
        match self.assembly.chain(id, kind, data.clone(), ends) {
            None => self.deliver(id, kind, data),
            Some(AssemblyResult::Whole(_, whole)) => self.deliver(id, kind, whole),
            Some(AssemblyResult::Waiting | AssemblyResult::Lost) => {}
            Some(AssemblyResult::TooLarge) => self.reject_oversized(id),
        }
    }

    fn deliver(&mut self, id: StreamId, kind: MessageKind, data: Bytes) {
        // A peer that sends on the channel has opened it: its acknowledgement may have been
        // overtaken.
        self.mark_open(id);
        self.events.push_back(ChannelEvent::Message { id, kind, data });
    }

    /// Returns whether messages on a stream are for a channel.
    fn accepts_messages_on(&self, id: StreamId) -> bool {
        self.channels.contains_key(&id) && !self.closings.is_half_closed(id)
    }

    fn reject_oversized(&mut self, id: StreamId) {
        self.counters.oversized_messages += 1;
        self.assembly.forget(id);
        self.refuse(id);
    }
}
