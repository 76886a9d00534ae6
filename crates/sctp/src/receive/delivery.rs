//! Delivery of messages to the application, in the order of their streams (RFC 9260 §6.5, §6.6).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use super::scheduler::ReceiveScheduler;
use super::streams::{InboundStreams, MessagePlace};
use crate::identifier::StreamId;
use crate::message::{Message, MessagePieces};
use crate::serial::Tsn;

/// The maximum number of places for messages that are kept when there is none: a burst is not paid
/// for by the memory of the idle association after it.
const MAX_IDLE_CAPACITY: usize = 1024;

/// A complete message, or a part of one for partial delivery.
#[derive(Debug)]
pub(crate) struct ReadyMessage {
    pub(crate) message: Message,
    /// Its TSNs; empty if they are consecutive or not needed.
    pub(crate) tsns: Vec<Tsn>,
}

impl ReadyMessage {
    /// Returns the number of its chunks.
    pub(crate) fn chunks(&self) -> usize {
        self.message.data.as_slice().len()
    }
}

/// Messages that wait for earlier ones, and messages ready for the application.
#[derive(Debug, Default)]
pub(crate) struct DeliveryQueue {
    streams: InboundStreams,
    /// Complete ordered messages that wait for earlier ones of their stream.
    waiting: BTreeMap<MessagePlace, ReadyMessage>,
    /// Messages ready for the application, in the order in which they became ready.
    ready: VecDeque<ReadyMessage>,
    /// The scheduler that chooses the next one, if not the first.
    scheduler: Option<Box<dyn ReceiveScheduler>>,
}

impl DeliveryQueue {
    /// Creates an empty delivery.
    pub(crate) fn new(scheduler: Option<Box<dyn ReceiveScheduler>>) -> Self {
        Self { scheduler, ..Self::default() }
    }

    /// Returns the number of the next ordered message on `stream`.
    #[inline]
    pub(crate) fn due(&mut self, stream: StreamId) -> u64 {
        self.streams.due(stream)
    }

    /// Returns whether no message waits for earlier ones.
    pub(crate) fn is_waiting_empty(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Returns whether there is something for the application.
    pub(crate) fn is_readable(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Returns the number of messages, or parts of them, for the application.
    pub(crate) fn readable(&self) -> usize {
        self.ready.len()
    }

    /// Makes an unordered message, or any part of a message but the last, ready for the
    /// application.
    #[inline]
    pub(crate) fn push(&mut self, ready: ReadyMessage) {
        self.ready.push_back(ready);
    }

    /// Makes the next ordered message of its stream ready for the application, and those that
    /// waited for it.
    #[inline]
    pub(crate) fn push_due(&mut self, ready: ReadyMessage, number: u64) {
        let stream = ready.message.stream;
        if self.ready.capacity() == 0 {
            // Who takes messages as they come needs room for one; a queue that grows begins with four.
            self.ready.reserve_exact(1);
        }
        self.ready.push_back(ready);
        self.advance(stream, number);
    }

    /// Continues after message `number` of `stream`.
    #[inline]
    pub(crate) fn advance(&mut self, stream: StreamId, number: u64) {
        let mut due = number + 1;
        if !self.waiting.is_empty() {
            while let Some(next) = self.waiting.remove(&MessagePlace::new(stream, due)) {
                self.ready.push_back(next);
                due += 1;
            }
        }
        self.streams.set_due(stream, due);
    }

    /// Adds a complete ordered message, which is delivered or waits for earlier ones. Returns it as
    /// `Err` if its number already exists.
    pub(crate) fn ordered(&mut self, ready: ReadyMessage, number: u64) -> Result<(), ReadyMessage> {
        let stream = ready.message.stream;
        let due = self.streams.due(stream);
        if number == due {
            self.push_due(ready, number);
        } else if number < due {
            return Err(ready);
        } else {
            let place = MessagePlace::new(stream, number);
            if self.waiting.contains_key(&place) {
                return Err(ready);
            }
            self.waiting.insert(place, ready);
        }
        Ok(())
    }

    /// Skips everything of `stream` up to `number`, which the peer abandoned: what has arrived of
    /// it is delivered, the rest is not waited for (RFC 3758 §3.6).
    pub(crate) fn skip(&mut self, stream: StreamId, number: u64) {
        if number < self.streams.due(stream) {
            return;
        }
        let range = MessagePlace::new(stream, 0)..=MessagePlace::new(stream, number);
        while let Some((&place, _)) = self.waiting.range(range.clone()).next() {
            self.ready.extend(self.waiting.remove(&place));
        }
        self.advance(stream, number);
    }

    /// Delivers the waiting messages, stream by stream, except on streams for which `is_open`:
    /// earlier messages will never arrive.
    pub(crate) fn release_waiting(&mut self, is_open: impl Fn(StreamId) -> bool) {
        let mut from = None;
        loop {
            let next = match from {
                None => self.waiting.first_key_value(),
                Some(from) => self.waiting.range(from..).next(),
            };
            let Some((&place, _)) = next else { return };
            if is_open(place.stream()) {
                match place.stream().0.checked_add(1) {
                    Some(stream) => from = Some(MessagePlace::new(StreamId(stream), 0)),
                    None => return,
                }
            } else {
                self.skip(place.stream(), place.number());
            }
        }
    }

    /// Appends a part to the last message for the application if it continues that; otherwise
    /// returns it.
    pub(crate) fn extend_last(&mut self, part: ReadyMessage) -> Option<ReadyMessage> {
        let new = &part.message;
        let Some(last) = self.ready.back_mut().filter(|last| {
            let message = &last.message;
            !message.ends
                && !new.begins
                && message.stream == new.stream
                && message.unordered == new.unordered
                && message.number == new.number
        }) else {
            return Some(part);
        };
        match part.message.data {
            MessagePieces::One(piece) => last.message.data.push(piece),
            MessagePieces::Many(pieces) => {
                pieces.into_iter().for_each(|piece| last.message.data.push(piece))
            }
        }
        last.message.ends = part.message.ends;
        last.tsns.extend(part.tsns);
        None
    }

    /// Returns the next message for the application.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<ReadyMessage> {
        match &mut self.scheduler {
            Some(scheduler) if self.ready.len() > 1 => {
                let place = scheduler.next(&mut self.ready.iter().map(|one| one.message.stream));
                self.ready.remove(place)
            }
            _ => self.ready.pop_front(),
        }
    }

    /// Frees memory, if nothing is ready for the application.
    pub(crate) fn shrink(&mut self) {
        if self.ready.is_empty() && self.ready.capacity() > MAX_IDLE_CAPACITY {
            self.ready.shrink_to(MAX_IDLE_CAPACITY);
        }
    }

    /// Removes the parts of an incomplete message that the application has not received, and
    /// returns whether it has received any.
    pub(crate) fn retract(
        &mut self,
        stream: StreamId,
        unordered: bool,
        number: u32,
        mut taken: impl FnMut(&ReadyMessage),
    ) -> bool {
        let mut started_here = false;
        self.ready.retain(|ready| {
            let message = &ready.message;
            let same = message.stream == stream
                && message.unordered == unordered
                && message.number == number
                && !(message.begins && message.ends);
            if same {
                started_here |= message.begins;
                taken(ready);
            }
            !same
        });
        !started_here
    }

    /// Resets `streams`, or all of them if the list is empty, to 0, and drops their waiting
    /// messages.
    pub(crate) fn reset(&mut self, streams: &[StreamId], mut dropped: impl FnMut(&ReadyMessage)) {
        if streams.is_empty() {
            self.waiting.values().for_each(&mut dropped);
            self.waiting.clear();
            self.streams.clear();
            return;
        }
        for stream in streams {
            let range = MessagePlace::new(*stream, 0)..=MessagePlace::new(*stream, u64::MAX);
            while let Some((&place, _)) = self.waiting.range(range.clone()).next() {
                if let Some(ready) = self.waiting.remove(&place) {
                    dropped(&ready);
                }
            }
            self.streams.set_due(*stream, 0);
        }
    }
}
