//! Messages from the time they are queued until they are complete: non-renegably acknowledged, or
//! abandoned.
//!
//! | file | purpose | source |
//! | --- | --- | --- |
//! | `buffer` | the send buffer: full or writable | RFC 9260 §11.1.5 |
//! | `messages`, `streams` | the state of a message and of a stream | |
//! | `stream_scheduler` | the stream that sends next | RFC 8260 §3 |
//! | `chunking` | messages divided into chunks | RFC 9260 §6.9 |
//! | `lifetimes` | expired messages | RFC 3758 §4.1 |
//! | `resets` | streams paused, renumbered, resumed | RFC 6525 §5.1 |
//! | `info` | the contents of the send buffer, by stream | draft-dreibholz-tsvwg-sctpsocket-sqinfo |
//! | `sums` | the sums recomputed | |

use alloc::collections::VecDeque;
use bytes::Bytes;
use core::time::Duration;

use crate::config::{AlgorithmSelection, AssociationConfig, SchedulerKind};
use crate::error::Error;
use crate::event::Event;
use crate::identifier::StreamId;
use crate::message::{MessageReliability, SendInfo};
use crate::scheduler::StreamSlot;
use crate::send::byte_tally::ItemCount;
use crate::serial::Tsn;

mod buffer;
mod chunking;
mod info;
mod lifetimes;
mod messages;
mod resets;
mod stream_scheduler;
mod streams;
#[cfg(any(test, debug_assertions))]
mod sums;

pub use info::{AssociationQueueInfo, QueueInfo};
pub(super) use messages::{AbandonLimit, MessageId, QueuedMessage};
pub(super) use stream_scheduler::StreamScheduler;
pub(super) use streams::OutboundStream;

pub(crate) use buffer::BufferAllowance;
use buffer::SendBuffer;
use lifetimes::MessageLifetimes;
use messages::{NONE, QueuedMessages, deadline};
use stream_scheduler::SchedulerChoice;
use streams::OutboundStreams;

/// The maximum length of a message in bytes: the largest offset that a chunk can state.
const MAX_MESSAGE: usize = u32::MAX as usize;

/// How messages are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MessageNumbering {
    /// Ordered messages by stream: DATA.
    Ssn,
    /// All messages, so that their fragments may be interleaved: I-DATA (RFC 8260 §2).
    Mid,
}

impl MessageNumbering {
    fn new(interleaving: bool) -> Self {
        if interleaving { Self::Mid } else { Self::Ssn }
    }
}

/// Messages, by stream.
#[derive(Debug)]
pub(super) struct SendQueue {
    numbering: MessageNumbering,
    messages: QueuedMessages,
    streams: OutboundStreams,
    scheduler: StreamScheduler,
    buffer: SendBuffer,
    lifetimes: MessageLifetimes,
    /// The number of stored messages with a priority.
    prioritised: ItemCount,
    events: VecDeque<Event>,
    /// Whether a message was queued since everything was acknowledged.
    busy: bool,
}

/// A message that has just been abandoned.
#[derive(Clone, Copy, Debug)]
pub(super) struct AbandonedMessage {
    pub(super) slot: StreamSlot,
    /// Its first and last TSN, if a part of it was sent.
    pub(super) sent: Option<(Tsn, Tsn)>,
    /// Whether only a part of it was sent.
    pub(super) is_partly_sent: bool,
}

impl SendQueue {
    pub(super) fn new(config: &AssociationConfig, interleaving: bool) -> Self {
        Self {
            numbering: MessageNumbering::new(interleaving),
            messages: QueuedMessages::new(),
            streams: OutboundStreams::default(),
            scheduler: StreamScheduler::new(config, interleaving),
            buffer: SendBuffer::new(config.send_buffer),
            lifetimes: MessageLifetimes::default(),
            prioritised: ItemCount::default(),
            events: VecDeque::new(),
            busy: false,
        }
    }

    /// Applies the settings that can change while the association exists. The scheduler restarts
    /// without its history.
    pub(super) fn configure(&mut self, config: &AssociationConfig) {
        self.buffer.resize(config.send_buffer);
        if *self.scheduler.choice() != config.scheduler {
            self.replace_scheduler(config.scheduler.clone());
        }
    }

    /// Changes the numbering of messages, if it differs.
    pub(super) fn set_interleaving(&mut self, interleaving: bool) {
        if self.numbering == MessageNumbering::new(interleaving) {
            return;
        }
        self.numbering = MessageNumbering::new(interleaving);
        if *self.scheduler.choice() != AlgorithmSelection::BuiltIn(SchedulerKind::Fcfs) {
            self.replace_scheduler(self.scheduler.choice().clone());
        }
    }

    fn replace_scheduler(&mut self, choice: SchedulerChoice) {
        let by_chunk = self.numbering == MessageNumbering::Mid;
        self.scheduler.replace(choice, by_chunk, &self.streams, &self.messages);
    }

    /// Changes the priority or weight of a stream.
    pub(super) fn set_stream_value(&mut self, stream: StreamId, value: u16) {
        self.scheduler.set_value(stream, self.streams.find(stream), value);
    }

    /// Limits the use of the send buffer; data in it is kept.
    pub(super) fn set_allowance(&mut self, allowance: BufferAllowance) {
        self.buffer.set_allowance(allowance);
    }

    /// Returns how much of the send buffer may currently be used.
    pub(super) fn usable_buffer(&self) -> usize {
        self.buffer.usable()
    }

    /// Returns the size of the send buffer.
    pub(super) fn limit(&self) -> usize {
        self.buffer.limit()
    }

    /// Returns the bytes in the send buffer, sent or not.
    #[inline]
    pub(super) fn queued(&self) -> usize {
        self.buffer.queued()
    }

    /// Returns the bytes in it that are not yet in a chunk.
    #[inline]
    pub(super) fn unsent(&self) -> usize {
        self.buffer.unsent()
    }

    #[cfg(test)]
    pub(super) fn max_messages(&self) -> usize {
        self.buffer.max_messages()
    }

    /// Returns the number of incomplete messages.
    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Returns whether a message of this length would be accepted now.
    pub(super) fn is_writable(&self, length: usize) -> bool {
        self.buffer.has_room(length, self.messages.len())
    }

    /// Returns whether the user waits for room.
    pub(super) fn has_waiting_user(&self) -> bool {
        self.buffer.has_waiting_user()
    }

    /// Records that the user waits for room for a message of this length.
    pub(super) fn wait_for_room(&mut self, length: usize) {
        self.buffer.wait_for_room(length);
    }

    pub(super) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    #[inline]
    pub(super) fn message(&self, id: MessageId) -> Option<&QueuedMessage> {
        self.messages.get(id)
    }

    /// Returns all messages, in no particular order.
    pub(super) fn messages(&self) -> impl Iterator<Item = (MessageId, &QueuedMessage)> {
        self.messages.iter()
    }

    pub(super) fn streams(&self) -> &OutboundStreams {
        &self.streams
    }

    #[inline]
    pub(super) fn stream(&self, slot: StreamSlot) -> Option<&OutboundStream> {
        self.streams.get(slot)
    }

    /// Returns whether some message may be displaced by others of a higher priority.
    pub(super) fn has_priorities(&self) -> bool {
        self.prioritised.get() > 0
    }

    /// Returns the maximum length in bytes of an accepted message.
    pub(super) fn max_message_len(&self) -> usize {
        self.buffer.limit().min(MAX_MESSAGE)
    }

    /// Appends a message to its stream. Returns the stream's slot, and whether it is new.
    ///
    /// # Errors
    /// If the stream cannot exist.
    #[inline]
    pub(super) fn push(
        &mut self,
        now: Duration,
        info: &SendInfo,
        data: Bytes,
    ) -> Result<(StreamSlot, bool), Error> {
        let Some((slot, is_new)) = self.streams.find_or_add(info.stream) else {
            return Err(Error::NoSuchStream);
        };
        if is_new {
            self.scheduler.add(slot, info.stream);
        }
        let length = data.len();
        let id = self.messages.insert(QueuedMessage::new(slot, info, data, now));
        let Some(stream) = self.streams.get_mut(slot) else { return Err(Error::NoSuchStream) };
        stream.on_enqueued(length);
        let tail = core::mem::replace(&mut stream.tail, id);
        if tail == NONE {
            stream.head = id;
        } else if let Some(before) = self.messages.get_mut(tail) {
            before.next = id;
        }
        self.scheduler.on_queued(slot);
        self.buffer.on_enqueued(length);
        match info.reliability {
            MessageReliability::Lifetime(lifetime) => self.lifetimes.add(deadline(now, lifetime)),
            MessageReliability::Priority(_) => self.prioritised.add_one(),
            MessageReliability::Reliable | MessageReliability::Retransmissions(_) => {}
        }
        self.busy = true;
        Ok((slot, is_new))
    }

    /// Records the start of a new packet.
    #[inline]
    pub(super) fn on_packet(&mut self) {
        self.scheduler.on_packet();
    }

    /// Returns the scheduler, and the first message of each stream.
    #[inline]
    pub(super) fn scheduler_and_heads(&mut self) -> (&mut StreamScheduler, StreamHeads<'_>) {
        (&mut self.scheduler, StreamHeads { streams: &self.streams, messages: &self.messages })
    }

    /// Returns whether a message must be completed before another one starts.
    #[inline]
    pub(super) fn is_message_started(&self) -> bool {
        self.scheduler.current().is_some()
    }

    /// Returns the stream that may send next, of those whose first message satisfies `is_eligible`.
    #[inline]
    pub(super) fn choose(
        &mut self,
        is_eligible: impl Fn(&OutboundStream, &QueuedMessage) -> bool,
    ) -> Option<StreamSlot> {
        let (scheduler, heads) = self.scheduler_and_heads();
        let mut is_eligible = |slot: StreamSlot| {
            heads.get(slot).is_some_and(|(stream, message)| {
                !(stream.paused && message.sent == 0) && is_eligible(stream, message)
            })
        };
        match scheduler.current() {
            Some(slot) => is_eligible(slot).then_some(slot),
            None => scheduler.next(&mut is_eligible),
        }
    }

    /// Marks a message as abandoned, unless it already is. The caller handles its chunks.
    pub(super) fn mark_abandoned(&mut self, id: MessageId) -> Option<AbandonedMessage> {
        let message = self.messages.get_mut(id)?;
        if core::mem::replace(&mut message.abandoned, true) {
            return None;
        }
        let slot = message.stream;
        let (context, ppid, unordered) = (message.context, message.ppid, message.unordered);
        let (is_sent, unsent) = (message.sent > 0, message.unsent());
        let data = core::mem::take(&mut message.data);
        let sent = is_sent.then_some((message.first_tsn, message.last_tsn));
        self.buffer.on_dropped(unsent);
        let stream = self.streams.get_mut(slot)?;
        stream.on_dropped(unsent);
        let stream = stream.id;
        let failed = Event::SendFailed { stream, context, ppid, unordered, sent: is_sent, data };
        self.events.push_back(failed);
        Some(AbandonedMessage { slot, sent, is_partly_sent: is_sent && unsent > 0 })
    }

    /// Removes an abandoned message from its stream if it is the first one there; otherwise it is
    /// removed together with those before it.
    pub(super) fn dequeue_if_first(&mut self, slot: StreamSlot, id: MessageId, is_sent: bool) {
        if self.streams.get(slot).is_none_or(|stream| stream.head != id) {
            return;
        }
        self.dequeue(slot, id, 0);
        if !is_sent {
            self.remove_message(id);
        }
    }

    /// Removes the first message from its stream: all of it is in chunks, or it was abandoned.
    /// Abandoned messages behind it are removed too.
    fn dequeue(&mut self, slot: StreamSlot, id: MessageId, bytes: usize) {
        let (mut at, mut bytes, mut abandoned) = (id, bytes, false);
        loop {
            let next = self.messages.get(at).map_or(NONE, |message| message.next);
            if abandoned {
                self.remove_message(at);
            }
            let Some(stream) = self.streams.get_mut(slot) else { return };
            let ends_stream = next == NONE;
            stream.head = next;
            if ends_stream {
                stream.tail = NONE;
            }
            self.scheduler.on_message(slot, bytes, ends_stream);
            abandoned = self.messages.get(next).is_some_and(|message| message.abandoned);
            if !abandoned {
                return;
            }
            (at, bytes) = (next, 0);
        }
    }

    /// Handles the cumulative acknowledgement of a chunk of a message, with `held` bytes that are
    /// still in the send buffer.
    #[inline]
    pub(super) fn on_acknowledged(&mut self, id: MessageId, held: usize) {
        let Some(message) = self.messages.get_mut(id) else { return };
        let (slot, is_over) = (message.stream, message.remove_chunk());
        self.release_from(slot, held);
        if is_over {
            self.remove_message(id);
        }
    }

    /// Releases bytes of a message from the send buffer: non-renegably acknowledged, or abandoned.
    pub(super) fn release(&mut self, id: MessageId, bytes: usize) {
        if let Some(slot) = self.messages.get(id).map(|message| message.stream) {
            self.release_from(slot, bytes);
        }
    }

    #[inline]
    fn release_from(&mut self, slot: StreamSlot, bytes: usize) {
        self.buffer.on_released(bytes);
        if let Some(stream) = self.streams.get_mut(slot) {
            stream.on_released(bytes);
        }
    }

    /// Removes a complete message.
    #[inline]
    pub(super) fn remove_message(&mut self, id: MessageId) {
        match self.messages.remove(id) {
            Some(AbandonLimit::Deadline(_)) => self.lifetimes.remove(),
            Some(AbandonLimit::Priority(_)) => self.prioritised.take_one(),
            _ => {}
        }
    }

    /// Reports room in the send buffer, once for each wait.
    pub(super) fn notify_writable(&mut self) {
        if self.buffer.take_room(self.messages.len()) {
            self.events.push_back(Event::Writable);
        }
    }

    /// Reports that all messages are complete, once for each time.
    pub(super) fn notify_dry(&mut self) {
        let was_busy = core::mem::take(&mut self.busy);
        if was_busy {
            self.messages.renumber();
            if self.events.capacity() == 0 {
                // One event at a time is usual, and a queue that grows begins with room for four.
                self.events.reserve_exact(1);
            }
            self.events.push_back(Event::SenderDry);
        }
    }

    /// Frees memory, if there are no messages.
    pub(super) fn shrink(&mut self) {
        self.messages.shrink();
    }

    /// Cancels all notifications, as the association has ended.
    pub(super) fn end(&mut self) {
        self.busy = false;
        self.buffer.cancel_wait();
    }
}

/// The first message of each stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct StreamHeads<'a> {
    streams: &'a OutboundStreams,
    messages: &'a QueuedMessages,
}

impl<'a> StreamHeads<'a> {
    /// Returns a stream, and its next message.
    #[inline]
    pub(super) fn get(self, slot: StreamSlot) -> Option<(&'a OutboundStream, &'a QueuedMessage)> {
        let stream = self.streams.get(slot)?;
        Some((stream, self.messages.get(stream.head)?))
    }
}
