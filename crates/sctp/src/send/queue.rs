//! Messages handed in, and the send buffer.

use bytes::Bytes;
use core::time::Duration;

use super::flight::Flight;
use super::messages::{MessageId, NONE, QueuedMessage, deadline};
use super::{Sender, most_messages};
use crate::config::AssociationConfig;
use crate::error::Error;
use crate::event::Event;
use crate::identifier::StreamId;
use crate::message::{Reliability, SendInfo};
use crate::path::Paths;
use crate::scheduler::{StreamSlot, Turn};

/// What a message takes of the send buffer at least when messages are counted: there are no more
/// than the buffer has shares of this many bytes, so that tiny messages cannot fill the memory.
pub(super) const LEAST_SHARE: usize = 16;

/// Messages that are taken whatever the size of the buffer.
pub(super) const MIN_MESSAGES: usize = 64;

/// The most bytes of a message: what a chunk's place in it can state.
const MAX_MESSAGE: usize = u32::MAX as usize;

impl Sender {
    /// Takes a message, whole or not at all.
    ///
    /// # Errors
    /// [`Error::Full`] until [`Event::Writable`]; others for good.
    pub fn send(
        &mut self,
        now: Duration,
        info: &SendInfo,
        data: Bytes,
        paths: &mut Paths,
    ) -> Result<(), Error> {
        // While nothing waits, deadlines pass unnoticed.
        self.drop_overdue(now, paths);
        self.admit(now, info, data.len(), paths)?;
        let Some((slot, is_new)) = self.streams.find_or_add(info.stream) else {
            return Err(Error::NoSuchStream);
        };
        if is_new {
            self.value_stream(slot, info.stream);
        }
        let length = data.len();
        let id = self.messages.insert(QueuedMessage::new(slot, info, data, now));
        let Some(stream) = self.streams.get_mut(slot) else { return Err(Error::NoSuchStream) };
        stream.unsent += length;
        let tail = core::mem::replace(&mut stream.tail, id);
        if tail == NONE {
            stream.head = id;
        } else if let Some(before) = self.messages.get_mut(tail) {
            before.next = id;
        }
        self.scheduler.on_queued(slot);
        self.note_handed_in(slot, info.stream, is_new, now);
        self.queued += length;
        self.unsent += length;
        match info.reliability {
            Reliability::Lifetime(lifetime) => self.note_deadline(deadline(now, lifetime)),
            Reliability::Priority(_) => self.prioritised += 1,
            Reliability::Reliable | Reliability::Retransmissions(_) => {}
        }
        self.busy = true;
        self.note_event();
        Ok(())
    }

    /// Takes over what can be changed while it runs. Streams are scheduled anew, without their past.
    pub(crate) fn configure(&mut self, config: &AssociationConfig) {
        self.send_buffer = config.send_buffer.max(1);
        self.max_messages = most_messages(config.send_buffer);
        self.nagle = config.nagle;
        self.max_segment = config.max_segment.map_or(u16::MAX, |most| most.max(4));
        self.sack_delay = config.sack_delay;
        if self.scheduler_kind != config.scheduler {
            self.scheduler_kind = config.scheduler;
            self.rebuild_scheduler(self.terms.interleaving);
        }
        for (stream, value) in &config.stream_values {
            // Streams that there are not have no value.
            let _ = self.set_stream_value(*stream, *value);
        }
        self.note_room();
    }

    /// Lets [`Event::Writable`] come once a message of so many bytes would be taken.
    pub(crate) fn wait_for_room(&mut self, length: usize) {
        self.refused = Some(self.refused.map_or(length, |other| other.min(length)));
        self.note_room();
    }

    /// Whether a message of this many bytes would be taken now.
    #[must_use]
    pub fn is_writable(&self, length: usize) -> bool {
        let fits = self.queued + length <= self.send_buffer.min(self.allowance as usize);
        // A message larger than the allowance goes alone.
        let is_alone = self.queued == 0 && length <= self.send_buffer;
        (fits || is_alone) && self.messages.len() < self.max_messages as usize
    }

    /// How much of the send buffer may be used from now on. What is in it stays.
    pub fn set_allowance(&mut self, allowance: usize) {
        self.allowance = u32::try_from(allowance).unwrap_or(u32::MAX);
        self.note_room();
    }

    /// Bytes of user data handed in and not yet acknowledged for good, nor given up.
    #[must_use]
    pub fn queued_bytes(&self) -> usize {
        self.queued
    }

    /// Whether all that was handed in has been acknowledged or given up, and the peer knows.
    #[must_use]
    pub fn is_dry(&self) -> bool {
        self.messages.len() == 0 && self.outstanding.is_empty()
    }

    fn admit(
        &mut self,
        now: Duration,
        info: &SendInfo,
        length: usize,
        paths: &mut Paths,
    ) -> Result<(), Error> {
        let limit = self.send_buffer.min(MAX_MESSAGE);
        if length == 0 {
            return Err(Error::EmptyMessage);
        }
        if info.stream.0 >= self.terms.outbound {
            return Err(Error::NoSuchStream);
        }
        if length > limit {
            return Err(Error::MessageTooLarge { limit });
        }
        if !self.is_writable(length) {
            self.make_room(now, info.reliability, length, paths);
        }
        if !self.is_writable(length) {
            self.refused = Some(self.refused.map_or(length, |other| other.min(length)));
            return Err(Error::Full);
        }
        Ok(())
    }

    fn value_stream(&mut self, slot: StreamSlot, id: StreamId) {
        if let Ok(at) = self.stream_values.binary_search_by_key(&id, |(stream, _)| *stream) {
            self.scheduler.set_value(slot, self.stream_values[at].1);
        }
    }

    /// Changes the priority or weight of a stream (`SCTP_STREAM_SCHEDULER_VALUE`).
    ///
    /// # Errors
    /// If there is no such stream.
    pub fn set_stream_value(&mut self, stream: StreamId, value: u16) -> Result<(), Error> {
        if stream.0 >= self.terms.outbound {
            return Err(Error::NoSuchStream);
        }
        match self.stream_values.binary_search_by_key(&stream, |(stream, _)| *stream) {
            Ok(at) => self.stream_values[at].1 = value,
            Err(at) => self.stream_values.insert(at, (stream, value)),
        }
        if let Some(slot) = self.streams.find(stream) {
            self.scheduler.set_value(slot, value);
        }
        Ok(())
    }

    /// Takes the first message off its stream: all of it is in chunks, or it was given up. Those
    /// behind it that were given up meanwhile go with it.
    pub(super) fn leave_queue(&mut self, slot: StreamSlot, id: MessageId, bytes: usize) {
        if self.current == Some(slot) {
            self.current = None;
        }
        let (mut at, mut bytes, mut given_up) = (id, bytes, false);
        loop {
            let next = self.messages.get(at).map_or(NONE, |message| message.next);
            if given_up {
                self.let_go(at);
            }
            let Some(stream) = self.streams.get_mut(slot) else { return };
            let ends_stream = next == NONE;
            stream.head = next;
            if ends_stream {
                stream.tail = NONE;
            }
            self.scheduler.on_sent(&Turn { stream: slot, bytes, ends_message: true, ends_stream });
            given_up = self.messages.get(next).is_some_and(|message| message.abandoned);
            if !given_up {
                return;
            }
            (at, bytes) = (next, 0);
        }
    }

    /// `bytes` of a message leave the send buffer: acknowledged for good, or given up.
    #[inline]
    pub(super) fn release(&mut self, slot: StreamSlot, bytes: usize) {
        self.queued = self.queued.saturating_sub(bytes);
        if let Some(stream) = self.streams.get_mut(slot) {
            stream.unacknowledged = stream.unacknowledged.saturating_sub(bytes);
        }
    }

    /// Lets go of a message that is through.
    #[inline]
    pub(super) fn let_go(&mut self, id: MessageId) {
        use super::messages::Limit;
        match self.messages.get(id).map(|message| message.limit) {
            Some(Limit::Deadline(_)) => self.timed = self.timed.saturating_sub(1),
            Some(Limit::Priority(_)) => self.prioritised = self.prioritised.saturating_sub(1),
            _ => {}
        }
        self.messages.remove(id);
    }

    /// Tells of room, and of having nothing left, once for each time.
    pub(super) fn note_room(&mut self) {
        if let Some(length) = self.refused
            && self.is_writable(length)
        {
            self.refused = None;
            self.events.push_back(Event::Writable);
        }
        if self.busy && self.is_dry() {
            self.busy = false;
            self.outstanding.shrink();
            self.messages.shrink();
            self.flights.iter_mut().for_each(Flight::shrink);
            self.events.push_back(Event::SenderDry);
        }
    }
}
