//! Messages on their way to the application, in the order of their streams (RFC 9260 §6.5, §6.6).

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::vec::Vec;

use super::scheduler::ReceiveScheduler;
use super::streams::{Place, Streams};
use crate::identifier::StreamId;
use crate::message::{Message, Pieces};
use crate::serial::Tsn;

/// The most places for messages that are kept when there is none: a burst is not paid for by the
/// memory of the idle association after it.
const MAX_IDLE_PLACES: usize = 1024;

/// A message that is whole, or a part of one that is delivered before it is.
#[derive(Debug)]
pub(crate) struct Ready {
    pub(crate) message: Message,
    /// Its TSNs; none if they follow each other or nobody wants to know.
    pub(crate) tsns: Vec<Tsn>,
}

impl Ready {
    /// How many chunks it came in.
    pub(crate) fn chunks(&self) -> usize {
        self.message.data.as_slice().len()
    }
}

/// What waits for its turn, and what waits for the application.
#[derive(Debug, Default)]
pub(crate) struct Delivery {
    streams: Streams,
    /// Ordered messages that are whole, but for which their stream is not ready.
    waiting: BTreeMap<Place, Ready>,
    /// In the order in which they came free.
    ready: VecDeque<Ready>,
    /// Which of them goes first, if not the one that came free first.
    scheduler: Option<Box<dyn ReceiveScheduler>>,
}

impl Delivery {
    /// With nothing to deliver.
    pub(crate) fn new(scheduler: Option<Box<dyn ReceiveScheduler>>) -> Self {
        Self { scheduler, ..Self::default() }
    }

    /// The number of the ordered message that is due on `stream`.
    #[inline]
    pub(crate) fn due(&mut self, stream: StreamId) -> u64 {
        self.streams.due(stream)
    }

    /// Whether nothing waits for its turn.
    pub(crate) fn nothing_waits(&self) -> bool {
        self.waiting.is_empty()
    }

    /// Whether there is something for the application.
    pub(crate) fn is_readable(&self) -> bool {
        !self.ready.is_empty()
    }

    /// Messages, or parts of one, for the application.
    pub(crate) fn readable(&self) -> usize {
        self.ready.len()
    }

    /// Gives an unordered message, or any part of a message but the last, to the application.
    #[inline]
    pub(crate) fn push(&mut self, ready: Ready) {
        self.ready.push_back(ready);
    }

    /// Gives an ordered message to the application that is the one due on its stream, and the ones
    /// that waited for it.
    #[inline]
    pub(crate) fn push_due(&mut self, ready: Ready, number: u64) {
        let stream = ready.message.stream;
        self.ready.push_back(ready);
        self.done(stream, number);
    }

    /// Goes on behind message `number` of `stream`.
    #[inline]
    pub(crate) fn done(&mut self, stream: StreamId, number: u64) {
        let mut due = number + 1;
        if !self.waiting.is_empty() {
            while let Some(next) = self.waiting.remove(&Place::new(stream, due)) {
                self.ready.push_back(next);
                due += 1;
            }
        }
        self.streams.set_due(stream, due);
    }

    /// Takes in a whole ordered message: it is delivered, or waits for its turn. `Err` gives it back
    /// if there is one of that number already.
    pub(crate) fn ordered(&mut self, ready: Ready, number: u64) -> Result<(), Ready> {
        let stream = ready.message.stream;
        let due = self.streams.due(stream);
        if number == due {
            self.push_due(ready, number);
        } else if number < due {
            return Err(ready);
        } else {
            let place = Place::new(stream, number);
            if self.waiting.contains_key(&place) {
                return Err(ready);
            }
            self.waiting.insert(place, ready);
        }
        Ok(())
    }

    /// The peer gave up on everything of `stream` up to `number`: what is here of it is delivered,
    /// the rest is not waited for (RFC 3758 §3.6).
    pub(crate) fn skip(&mut self, stream: StreamId, number: u64) {
        if number < self.streams.due(stream) {
            return;
        }
        let range = Place::new(stream, 0)..=Place::new(stream, number);
        while let Some((&place, _)) = self.waiting.range(range.clone()).next() {
            self.ready.extend(self.waiting.remove(&place));
        }
        self.done(stream, number);
    }

    /// Delivers what waits, stream by stream, except on streams for which `is_open`: the messages
    /// before it will never come.
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
                    Some(stream) => from = Some(Place::new(StreamId(stream), 0)),
                    None => return,
                }
            } else {
                self.skip(place.stream(), place.number());
            }
        }
    }

    /// Appends a part to the last message for the application if it goes on with it; gives it back
    /// otherwise.
    pub(crate) fn extend_last(&mut self, part: Ready) -> Option<Ready> {
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
            Pieces::One(piece) => last.message.data.push(piece),
            Pieces::Many(pieces) => {
                pieces.into_iter().for_each(|piece| last.message.data.push(piece))
            }
        }
        last.message.ends = part.message.ends;
        last.tsns.extend(part.tsns);
        None
    }

    /// The next message for the application.
    #[inline]
    pub(crate) fn pop(&mut self) -> Option<Ready> {
        let ready = match &mut self.scheduler {
            Some(scheduler) if self.ready.len() > 1 => {
                let place = scheduler.next(&mut self.ready.iter().map(|one| one.message.stream));
                self.ready.remove(place)
            }
            _ => self.ready.pop_front(),
        };
        if self.ready.is_empty() && self.ready.capacity() > MAX_IDLE_PLACES {
            self.ready.shrink_to(MAX_IDLE_PLACES);
        }
        ready
    }

    /// Takes back the parts of an unfinished message that the application does not have yet, and
    /// says whether it has any.
    pub(crate) fn retract(
        &mut self,
        stream: StreamId,
        unordered: bool,
        number: u32,
        mut taken: impl FnMut(&Ready),
    ) -> bool {
        let mut began_here = false;
        self.ready.retain(|ready| {
            let message = &ready.message;
            let same = message.stream == stream
                && message.unordered == unordered
                && message.number == number
                && !(message.begins && message.ends);
            if same {
                began_here |= message.begins;
                taken(ready);
            }
            !same
        });
        !began_here
    }

    /// Begins at 0 again on `streams`, or on all of them if there are none, and gives what waited
    /// for a turn that will not come.
    pub(crate) fn reset(&mut self, streams: &[StreamId], mut dropped: impl FnMut(&Ready)) {
        if streams.is_empty() {
            self.waiting.values().for_each(&mut dropped);
            self.waiting.clear();
            self.streams.clear();
            return;
        }
        for stream in streams {
            let range = Place::new(*stream, 0)..=Place::new(*stream, u64::MAX);
            while let Some((&place, _)) = self.waiting.range(range.clone()).next() {
                if let Some(ready) = self.waiting.remove(&place) {
                    dropped(&ready);
                }
            }
            self.streams.set_due(*stream, 0);
        }
    }
}
