//! Messages from being handed in until they are through: acknowledged for good, or given up.
//!
//! | file | job | source |
//! | --- | --- | --- |
//! | `buffer` | the send buffer, full and writable | RFC 9260 §11.1.5 |
//! | `messages`, `streams` | what is kept for a message, for a stream | |
//! | `stream_scheduler` | which stream may send next | RFC 8260 §3 |
//! | `cutting` | messages put into chunks | RFC 9260 §6.9 |
//! | `lifetimes` | messages that wait for too long | RFC 3758 §4.1 |
//! | `resets` | streams stopped, renumbered, resumed | RFC 6525 §5.1 |
//! | `info` | what is queued, by stream | draft-dreibholz-tsvwg-sctpsocket-sqinfo |
//! | `sums` | the sums counted again | |

use alloc::collections::VecDeque;
use bytes::Bytes;
use core::time::Duration;

use crate::config::{AssociationConfig, SchedulerKind, Selection};
use crate::error::Error;
use crate::event::Event;
use crate::identifier::StreamId;
use crate::message::{Reliability, SendInfo};
use crate::scheduler::StreamSlot;
use crate::send::tally::Count;
use crate::serial::Tsn;

mod buffer;
mod cutting;
mod info;
mod lifetimes;
mod messages;
mod resets;
mod stream_scheduler;
mod streams;
#[cfg(any(test, debug_assertions))]
mod sums;

pub use info::{AssociationQueueInfo, QueueInfo};
pub(super) use messages::{Limit, MessageId, QueuedMessage};
pub(super) use stream_scheduler::StreamScheduler;
pub(super) use streams::Stream;

use buffer::SendBuffer;
use lifetimes::Lifetimes;
use messages::{Messages, NONE, deadline};
use stream_scheduler::Choice;
use streams::Streams;

/// The most bytes of a message: what a chunk's place in it can state.
const MAX_MESSAGE: usize = u32::MAX as usize;

/// How messages are numbered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Numbering {
    /// Ordered ones by stream: DATA.
    Ssn,
    /// All, so that their fragments may be interleaved: I-DATA (RFC 8260 §2).
    Mid,
}

impl Numbering {
    fn new(interleaving: bool) -> Self {
        if interleaving { Self::Mid } else { Self::Ssn }
    }
}

/// Messages, by stream.
#[derive(Debug)]
pub(super) struct SendQueue {
    numbering: Numbering,
    messages: Messages,
    streams: Streams,
    scheduler: StreamScheduler,
    buffer: SendBuffer,
    lifetimes: Lifetimes,
    /// Messages that are kept and have a priority.
    prioritised: Count,
    events: VecDeque<Event>,
    /// Whether something was handed in since all was acknowledged.
    busy: bool,
}

/// A message that has just been given up.
#[derive(Clone, Copy, Debug)]
pub(super) struct GivenUp {
    pub(super) slot: StreamSlot,
    /// Its first and its last TSN, if a part of it was sent.
    pub(super) sent: Option<(Tsn, Tsn)>,
    /// Whether a part of it was not.
    pub(super) is_cut_short: bool,
}

impl SendQueue {
    pub(super) fn new(config: &AssociationConfig, interleaving: bool) -> Self {
        Self {
            numbering: Numbering::new(interleaving),
            messages: Messages::new(),
            streams: Streams::default(),
            scheduler: StreamScheduler::new(config, interleaving),
            buffer: SendBuffer::new(config.send_buffer),
            lifetimes: Lifetimes::default(),
            prioritised: Count::default(),
            events: VecDeque::new(),
            busy: false,
        }
    }

    /// Takes over what can be changed while it runs. Streams are scheduled anew, without their past.
    pub(super) fn configure(&mut self, config: &AssociationConfig) {
        self.buffer.resize(config.send_buffer);
        if *self.scheduler.choice() != config.scheduler {
            self.replace_scheduler(config.scheduler.clone());
        }
    }

    /// Messages are numbered in the other way from now on, if they are.
    pub(super) fn set_interleaving(&mut self, interleaving: bool) {
        if self.numbering == Numbering::new(interleaving) {
            return;
        }
        self.numbering = Numbering::new(interleaving);
        if *self.scheduler.choice() != Selection::BuiltIn(SchedulerKind::Fcfs) {
            self.replace_scheduler(self.scheduler.choice().clone());
        }
    }

    fn replace_scheduler(&mut self, choice: Choice) {
        let by_chunk = self.numbering == Numbering::Mid;
        self.scheduler.replace(choice, by_chunk, &self.streams, &self.messages);
    }

    /// Changes the priority or weight of a stream.
    pub(super) fn set_stream_value(&mut self, stream: StreamId, value: u16) {
        self.scheduler.set_value(stream, self.streams.find(stream), value);
    }

    /// How much of the send buffer may be used from now on. What is in it stays.
    pub(super) fn set_allowance(&mut self, allowance: usize) {
        self.buffer.allow(allowance);
    }

    /// The size of the send buffer.
    pub(super) fn limit(&self) -> usize {
        self.buffer.limit()
    }

    /// Bytes in the send buffer, sent or not.
    #[inline]
    pub(super) fn queued(&self) -> usize {
        self.buffer.queued()
    }

    /// Bytes of it that are in no chunk yet.
    #[inline]
    pub(super) fn unsent(&self) -> usize {
        self.buffer.unsent()
    }

    #[cfg(test)]
    pub(super) fn max_messages(&self) -> usize {
        self.buffer.max_messages()
    }

    /// Messages that are not through.
    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    /// Whether a message of this many bytes would be taken now.
    pub(super) fn is_writable(&self, length: usize) -> bool {
        self.buffer.has_room(length, self.messages.len())
    }

    /// Whether somebody waits for room.
    pub(super) fn is_waited_for(&self) -> bool {
        self.buffer.is_waited_for()
    }

    /// Somebody waits until a message of this many bytes would be taken.
    pub(super) fn refuse(&mut self, length: usize) {
        self.buffer.refuse(length);
    }

    pub(super) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    #[inline]
    pub(super) fn message(&self, id: MessageId) -> Option<&QueuedMessage> {
        self.messages.get(id)
    }

    /// All messages, in no order.
    pub(super) fn messages(&self) -> impl Iterator<Item = (MessageId, &QueuedMessage)> {
        self.messages.iter()
    }

    pub(super) fn streams(&self) -> &Streams {
        &self.streams
    }

    #[inline]
    pub(super) fn stream(&self, slot: StreamSlot) -> Option<&Stream> {
        self.streams.get(slot)
    }

    /// Whether some message may be pushed out by others of a higher priority.
    pub(super) fn has_priorities(&self) -> bool {
        self.prioritised.get() > 0
    }

    /// The most bytes of a message that is ever taken.
    pub(super) fn most_in_a_message(&self) -> usize {
        self.buffer.limit().min(MAX_MESSAGE)
    }

    /// Puts a message behind the others of its stream. Gives the stream's slot, and says whether it is
    /// a new one.
    ///
    /// # Errors
    /// If there can be no such stream.
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
        stream.on_handed_in(length);
        let tail = core::mem::replace(&mut stream.tail, id);
        if tail == NONE {
            stream.head = id;
        } else if let Some(before) = self.messages.get_mut(tail) {
            before.next = id;
        }
        self.scheduler.on_queued(slot);
        self.buffer.on_handed_in(length);
        match info.reliability {
            Reliability::Lifetime(lifetime) => self.lifetimes.add(deadline(now, lifetime)),
            Reliability::Priority(_) => self.prioritised.add_one(),
            Reliability::Reliable | Reliability::Retransmissions(_) => {}
        }
        self.busy = true;
        Ok((slot, is_new))
    }

    /// A new packet begins.
    #[inline]
    pub(super) fn on_packet(&mut self) {
        self.scheduler.on_packet();
    }

    /// The scheduler, and the first message of each stream.
    #[inline]
    pub(super) fn scheduler_and_heads(&mut self) -> (&mut StreamScheduler, Heads<'_>) {
        (&mut self.scheduler, Heads { streams: &self.streams, messages: &self.messages })
    }

    /// Whether a message must be ended before another one begins.
    #[inline]
    pub(super) fn is_message_begun(&self) -> bool {
        self.scheduler.current().is_some()
    }

    /// The stream that may send next, of those whose first message may go.
    #[inline]
    pub(super) fn choose(
        &mut self,
        may: impl Fn(&Stream, &QueuedMessage) -> bool,
    ) -> Option<StreamSlot> {
        let (scheduler, heads) = self.scheduler_and_heads();
        let mut may = |slot: StreamSlot| {
            heads.get(slot).is_some_and(|(stream, message)| {
                !(stream.paused && message.sent == 0) && may(stream, message)
            })
        };
        match scheduler.current() {
            Some(slot) => may(slot).then_some(slot),
            None => scheduler.next(&mut may),
        }
    }

    /// Gives a message up, unless that was done before. Its chunks are the caller's affair.
    pub(super) fn give_up(&mut self, id: MessageId) -> Option<GivenUp> {
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
        Some(GivenUp { slot, sent, is_cut_short: is_sent && unsent > 0 })
    }

    /// Takes a message that was given up off its stream, if it is the first one there: else that is
    /// done with those before it.
    pub(super) fn leave_if_first(&mut self, slot: StreamSlot, id: MessageId, is_sent: bool) {
        if self.streams.get(slot).is_none_or(|stream| stream.head != id) {
            return;
        }
        self.leave(slot, id, 0);
        if !is_sent {
            self.let_go(id);
        }
    }

    /// Takes the first message off its stream: all of it is in chunks, or it was given up. Those
    /// behind it that were given up meanwhile go with it.
    fn leave(&mut self, slot: StreamSlot, id: MessageId, bytes: usize) {
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
            self.scheduler.on_message(slot, bytes, ends_stream);
            given_up = self.messages.get(next).is_some_and(|message| message.abandoned);
            if !given_up {
                return;
            }
            (at, bytes) = (next, 0);
        }
    }

    /// A chunk of a message, with so many bytes that are still in the send buffer, is cumulatively
    /// acknowledged.
    #[inline]
    pub(super) fn on_acknowledged(&mut self, id: MessageId, held: usize) {
        let Some(message) = self.messages.get_mut(id) else { return };
        let (slot, is_over) = (message.stream, message.take_chunk());
        self.release_from(slot, held);
        if is_over {
            self.let_go(id);
        }
    }

    /// Bytes of a message leave the send buffer: acknowledged for good, or given up.
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

    /// Lets go of a message that is through.
    #[inline]
    pub(super) fn let_go(&mut self, id: MessageId) {
        match self.messages.get(id).map(|message| message.limit) {
            Some(Limit::Deadline(_)) => self.lifetimes.remove(),
            Some(Limit::Priority(_)) => self.prioritised.take_one(),
            _ => {}
        }
        self.messages.remove(id);
    }

    /// Tells of room, once for each time that somebody waits for it.
    pub(super) fn notify_writable(&mut self) {
        if self.buffer.take_room(self.messages.len()) {
            self.events.push_back(Event::Writable);
        }
    }

    /// All is through: tells so, once for each time. Says whether it did.
    pub(super) fn notify_dry(&mut self) -> bool {
        let was_busy = core::mem::take(&mut self.busy);
        if was_busy {
            self.messages.shrink();
            self.events.push_back(Event::SenderDry);
        }
        was_busy
    }

    /// The association has ended: nobody waits for anything.
    pub(super) fn end(&mut self) {
        self.busy = false;
        self.buffer.forget_refused();
    }
}

/// The first message of each stream.
#[derive(Clone, Copy, Debug)]
pub(super) struct Heads<'a> {
    streams: &'a Streams,
    messages: &'a Messages,
}

impl<'a> Heads<'a> {
    /// A stream, and the message that goes next on it.
    #[inline]
    pub(super) fn get(self, slot: StreamSlot) -> Option<(&'a Stream, &'a QueuedMessage)> {
        let stream = self.streams.get(slot)?;
        Some((stream, self.messages.get(stream.head)?))
    }
}
