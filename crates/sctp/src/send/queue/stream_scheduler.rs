//! Which stream may send next, as the user's scheduler has it (RFC 8260 §3).

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::messages::Messages;
use super::streams::Streams;
use crate::config::{AssociationConfig, SchedulerKind, Selection};
use crate::identifier::StreamId;
use crate::scheduler::{Scheduler, SchedulerFactory, StreamSlot, Turn};

/// A scheduler that is built in, or the caller's.
pub(in crate::send) type Choice = Selection<SchedulerKind, dyn SchedulerFactory>;

/// The scheduler, and what it is told of streams.
#[derive(Debug)]
pub(in crate::send) struct StreamScheduler {
    choice: Choice,
    /// Priorities or weights, in the order of the streams' numbers.
    values: Vec<(StreamId, u16)>,
    scheduler: Box<dyn Scheduler>,
    /// The stream whose message was begun and must be ended before another one begins: without
    /// interleaving, the fragments of a message have consecutive TSNs.
    current: Option<StreamSlot>,
}

impl StreamScheduler {
    /// `by_chunk`: it is asked after each chunk, not after each message.
    pub(super) fn new(config: &AssociationConfig, by_chunk: bool) -> Self {
        let mut values = config.stream_values.clone();
        values.sort_by_key(|(stream, _)| *stream);
        let choice = config.scheduler.clone();
        let scheduler = choice.factory().build(by_chunk);
        Self { choice, values, scheduler, current: None }
    }

    pub(super) fn choice(&self) -> &Choice {
        &self.choice
    }

    /// The stream whose message must be ended first.
    #[inline]
    pub(in crate::send) fn current(&self) -> Option<StreamSlot> {
        self.current
    }

    /// Which stream the scheduler would have next, of those that are `eligible`.
    #[inline]
    pub(in crate::send) fn next(
        &mut self,
        eligible: &mut dyn FnMut(StreamSlot) -> bool,
    ) -> Option<StreamSlot> {
        match self.choice {
            Selection::BuiltIn(_) => self.scheduler.next(eligible),
            Selection::Custom(_) => self.next_of_custom(eligible),
        }
    }

    /// The same of a caller's scheduler, which may err: what is sent of a stream that is stopped cannot
    /// be undone. Apart, so that those that are built in cost nothing for it.
    #[cold]
    fn next_of_custom(
        &mut self,
        eligible: &mut dyn FnMut(StreamSlot) -> bool,
    ) -> Option<StreamSlot> {
        self.scheduler.next(eligible).filter(|next| eligible(*next))
    }

    /// A new packet begins.
    #[inline]
    pub(super) fn on_packet(&mut self) {
        self.scheduler.on_packet();
    }

    /// A message was put behind the others of this stream.
    #[inline]
    pub(super) fn on_queued(&mut self, slot: StreamSlot) {
        self.scheduler.on_queued(slot);
    }

    /// A part of a message was sent, and it goes on. `first`: before all others.
    #[inline]
    pub(super) fn on_part(&mut self, slot: StreamSlot, bytes: usize, first: bool) {
        self.current = first.then_some(slot);
        let turn = Turn { stream: slot, bytes, ends_message: false, ends_stream: false };
        self.scheduler.on_sent(&turn);
    }

    /// The first message of a stream is through with these bytes, or was given up.
    #[inline]
    pub(super) fn on_message(&mut self, slot: StreamSlot, bytes: usize, ends_stream: bool) {
        if self.current == Some(slot) {
            self.current = None;
        }
        self.scheduler.on_sent(&Turn { stream: slot, bytes, ends_message: true, ends_stream });
    }

    /// A stream is used for the first time.
    pub(super) fn add(&mut self, slot: StreamSlot, stream: StreamId) {
        self.scheduler.on_opened(slot, stream);
        if let Ok(at) = self.values.binary_search_by_key(&stream, |(id, _)| *id) {
            self.scheduler.set_value(slot, self.values[at].1);
        }
    }

    /// Changes the priority or weight of a stream, which has a slot if it was ever used.
    pub(super) fn set_value(&mut self, stream: StreamId, slot: Option<StreamSlot>, value: u16) {
        match self.values.binary_search_by_key(&stream, |(id, _)| *id) {
            Ok(at) => self.values[at].1 = value,
            Err(at) => self.values.insert(at, (stream, value)),
        }
        if let Some(slot) = slot {
            self.scheduler.set_value(slot, value);
        }
    }

    /// Another scheduler goes on. It knows what waits, and nothing of what was sent.
    pub(super) fn replace(
        &mut self,
        choice: Choice,
        by_chunk: bool,
        streams: &Streams,
        messages: &Messages,
    ) {
        self.scheduler = choice.factory().build(by_chunk);
        self.choice = choice;
        for (slot, stream) in streams.slots() {
            self.add(slot, stream.id);
            let mut next = stream.head;
            while let Some(message) = messages.get(next) {
                self.scheduler.on_queued(slot);
                next = message.next;
            }
        }
    }
}
