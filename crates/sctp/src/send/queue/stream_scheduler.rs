//! The choice of the stream that sends next, by the user's scheduler (RFC 8260 §3).

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::messages::QueuedMessages;
use super::streams::OutboundStreams;
use crate::config::{AlgorithmSelection, AssociationConfig, SchedulerKind};
use crate::identifier::StreamId;
use crate::scheduler::{Scheduler, SchedulerFactory, StreamSlot, StreamTurn};

/// A built-in scheduler, or the caller's own.
pub(in crate::send) type SchedulerChoice = AlgorithmSelection<SchedulerKind, dyn SchedulerFactory>;

/// The scheduler and its settings for streams.
#[derive(Debug)]
pub(in crate::send) struct StreamScheduler {
    choice: SchedulerChoice,
    /// Priorities or weights, in the order of the streams' numbers.
    values: Vec<(StreamId, u16)>,
    scheduler: Box<dyn Scheduler>,
    /// The stream whose message was started and must be completed before another one starts:
    /// without interleaving, the fragments of a message have consecutive TSNs.
    current: Option<StreamSlot>,
}

impl StreamScheduler {
    /// `by_chunk`: it is called after each chunk, not after each message.
    pub(super) fn new(config: &AssociationConfig, by_chunk: bool) -> Self {
        let mut values = config.stream_values.clone();
        values.sort_by_key(|(stream, _)| *stream);
        let choice = config.scheduler.clone();
        let scheduler = choice.factory().build(by_chunk);
        Self { choice, values, scheduler, current: None }
    }

    pub(super) fn choice(&self) -> &SchedulerChoice {
        &self.choice
    }

    /// Returns the stream whose message must be completed first.
    #[inline]
    pub(in crate::send) fn current(&self) -> Option<StreamSlot> {
        self.current
    }

    /// Returns the scheduler's choice of the `eligible` streams.
    #[inline]
    pub(in crate::send) fn next(
        &mut self,
        eligible: &mut dyn FnMut(StreamSlot) -> bool,
    ) -> Option<StreamSlot> {
        match self.choice {
            AlgorithmSelection::BuiltIn(_) => self.scheduler.next(eligible),
            AlgorithmSelection::Custom(_) => self.next_of_custom(eligible),
        }
    }

    /// Returns the choice of a caller's scheduler, which is checked: data sent on a paused stream
    /// could not be undone. A separate function, so that built-in schedulers do not pay for it.
    #[cold]
    fn next_of_custom(
        &mut self,
        eligible: &mut dyn FnMut(StreamSlot) -> bool,
    ) -> Option<StreamSlot> {
        self.scheduler.next(eligible).filter(|next| eligible(*next))
    }

    /// Records the start of a new packet.
    #[inline]
    pub(super) fn on_packet(&mut self) {
        self.scheduler.on_packet();
    }

    /// Records a message appended to this stream.
    #[inline]
    pub(super) fn on_queued(&mut self, slot: StreamSlot) {
        self.scheduler.on_queued(slot);
    }

    /// Records that a part of a message was sent. `first`: the rest must be sent before all other
    /// messages.
    #[inline]
    pub(super) fn on_part(&mut self, slot: StreamSlot, bytes: usize, first: bool) {
        self.current = first.then_some(slot);
        let turn = StreamTurn { stream: slot, bytes, ends_message: false, ends_stream: false };
        self.scheduler.on_sent(&turn);
    }

    /// Records that the first message of a stream is completed by these bytes, or was abandoned.
    #[inline]
    pub(super) fn on_message(&mut self, slot: StreamSlot, bytes: usize, ends_stream: bool) {
        if self.current == Some(slot) {
            self.current = None;
        }
        self.scheduler.on_sent(&StreamTurn {
            stream: slot,
            bytes,
            ends_message: true,
            ends_stream,
        });
    }

    /// Records the first use of a stream.
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

    /// Replaces the scheduler. The new one knows the queued messages, but not the history.
    pub(super) fn replace(
        &mut self,
        choice: SchedulerChoice,
        by_chunk: bool,
        streams: &OutboundStreams,
        messages: &QueuedMessages,
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
