//! Division of messages into chunks: their numbers, and how much of a message is in chunks.

use super::messages::{MessageId, QueuedMessage};
use super::streams::OutboundStream;
use super::{MessageNumbering, SendQueue};
use crate::scheduler::StreamSlot;
use crate::send::outstanding::SentChunk;
use crate::serial::{Mid, Ssn, Tsn};
use crate::wire::{DataFlags, DataHeader, DataOrder, PacketWriter};

impl SendQueue {
    /// Starts or continues a message. It gets its number and its first TSN when its first chunk is
    /// sent, so a message abandoned before leaves no gap.
    #[inline]
    pub(in crate::send) fn begin(
        &mut self,
        slot: StreamSlot,
        id: MessageId,
        tsn: Tsn,
    ) -> Option<&QueuedMessage> {
        let message = self.messages.get_mut(id)?;
        if message.sent == 0 {
            message.first_tsn = tsn;
            let stream = self.streams.get(slot)?;
            message.number = match (self.numbering, message.unordered) {
                (MessageNumbering::Ssn, true) => 0,
                (MessageNumbering::Ssn, false) => stream.next_ssn.0.into(),
                (MessageNumbering::Mid, false) => stream.next_mid.0,
                (MessageNumbering::Mid, true) => stream.next_unordered_mid.0,
            };
        }
        Some(message)
    }

    /// Records that the next bytes of a stream's first message went into the chunk with this TSN.
    /// Other streams have their turn after that, or once the message is complete.
    #[inline]
    pub(in crate::send) fn on_chunked(
        &mut self,
        slot: StreamSlot,
        id: MessageId,
        tsn: Tsn,
        length: usize,
    ) {
        let Some(message) = self.messages.get_mut(id) else { return };
        message.sent += length as u32;
        message.next_fragment = message.next_fragment.wrapping_add(1);
        message.add_chunk(tsn);
        let (unordered, ends) = (message.unordered, message.unsent() == 0);
        self.buffer.on_chunked(length);
        let Some(stream) = self.streams.get_mut(slot) else { return };
        stream.on_chunked(length);
        if ends {
            stream.use_number(self.numbering, unordered);
            self.dequeue(slot, id, length);
        } else {
            self.scheduler.on_part(slot, length, self.numbering == MessageNumbering::Ssn);
        }
    }

    /// Writes a chunk; returns whether it fits.
    #[inline]
    pub(in crate::send) fn write(
        &self,
        tsn: Tsn,
        chunk: &SentChunk,
        immediate: bool,
        packet: &mut PacketWriter<'_>,
    ) -> bool {
        let Some(message) = self.messages.get(chunk.message) else { return false };
        let Some(stream) = self.streams.get(message.stream) else { return false };
        let (start, length) = (chunk.offset as usize, usize::from(chunk.length));
        let order = match self.numbering {
            MessageNumbering::Mid => {
                DataOrder::Mid { mid: Mid(message.number), fsn: chunk.fragment }
            }
            MessageNumbering::Ssn => DataOrder::Ssn(Ssn(message.number as u16)),
        };
        let flags = DataFlags {
            unordered: message.unordered,
            begin: start == 0,
            end: start + length == message.data.len(),
            immediate,
        };
        let header = DataHeader { tsn, stream: stream.id, flags, order, ppid: message.ppid };
        packet.data(&header, &message.data, start..start + length)
    }

    /// Ends a message that is abandoned when partly sent with a chunk that is never sent. Returns
    /// its offset in the message.
    pub(in crate::send) fn end_early(
        &mut self,
        slot: StreamSlot,
        id: MessageId,
        tsn: Tsn,
    ) -> Option<u32> {
        let message = self.messages.get_mut(id)?;
        message.add_chunk(tsn);
        let (offset, unordered) = (message.sent, message.unordered);
        if let Some(stream) = self.streams.get_mut(slot) {
            stream.use_number(self.numbering, unordered);
        }
        Some(offset)
    }
}

impl OutboundStream {
    /// Uses up the number of a complete message.
    fn use_number(&mut self, numbering: MessageNumbering, unordered: bool) {
        match (numbering, unordered) {
            (MessageNumbering::Ssn, true) => {}
            (MessageNumbering::Ssn, false) => self.next_ssn = self.next_ssn.next(),
            (MessageNumbering::Mid, false) => self.next_mid = self.next_mid.next(),
            (MessageNumbering::Mid, true) => {
                self.next_unordered_mid = self.next_unordered_mid.next()
            }
        }
    }
}
