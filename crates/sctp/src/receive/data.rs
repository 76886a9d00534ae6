//! A DATA or I-DATA chunk (RFC 9260 §6.2, §6.5, §6.6, §6.9; RFC 8260 §2.2.3).

use alloc::vec::Vec;

use super::delivery::{Delivery, Ready};
use super::fragments::number_of;
use super::part::{Contradiction, Part};
use super::tracking::Arrival;
use super::{DataOutcome, Number, Position, Receiver, Violation};
use crate::counters::Counters;
use crate::identifier::StreamId;
use crate::message::{Message, Pieces};
use crate::wire::{DataChunk, Order};

/// Below this part of the receive buffer, messages are delivered as far as they are here, so that
/// those that are not whole cannot block each other.
const RELIEF_PART: usize = 8;

/// The number of an ordered message as it does not wrap, where `due` is that of the one due on its
/// stream. `None` if the message has been delivered or given up.
fn number_from(due: u64, number: Number) -> Option<u64> {
    match number {
        // New TSNs carry numbers from the one due on, and no more of them than there are TSNs that
        // can be ahead: so every number is ahead.
        Number::Ssn(ssn) => Some(due + u64::from(ssn.0.wrapping_sub(due as u16))),
        Number::Mid(mid) => {
            let ahead = mid.0.wrapping_sub(due as u32);
            (ahead.cast_signed() >= 0).then(|| due + u64::from(ahead))
        }
        Number::Unordered => None,
    }
}

/// Whether the message with `number` may be delivered before it is whole.
fn is_due(delivery: &mut Delivery, stream: StreamId, number: Number) -> bool {
    let due = delivery.due(stream);
    number == Number::Unordered || number_from(due, number) == Some(due)
}

impl Receiver {
    /// Takes in a DATA or I-DATA chunk.
    pub fn handle_data(&mut self, chunk: DataChunk, counters: &mut Counters) -> DataOutcome {
        let interleaved = matches!(chunk.order, Order::Mid { .. });
        if chunk.payload.is_empty() || interleaved != self.reassembly.is_interleaved() {
            counters.inconsistent_data += 1;
            return DataOutcome::Violation(if chunk.payload.is_empty() {
                Violation::NoUserData(chunk.tsn)
            } else {
                Violation::WrongKind
            });
        }
        let (position, next, fills_gap) = match self.tracking.classify(chunk.tsn) {
            Arrival::New { position, next, fills_gap } => (position, next, fills_gap),
            Arrival::Duplicate => {
                counters.duplicate_data += 1;
                self.tracking.on_duplicate(chunk.tsn);
                self.acknowledge_now();
                return DataOutcome::Duplicate;
            }
            Arrival::TooFar => return self.refuse(counters),
        };
        if !self.window.admits(fills_gap) {
            return self.refuse(counters);
        }
        self.acknowledgement.on_chunk();
        if chunk.flags.immediate || (fills_gap && self.acknowledgement.policy.at_once_on_gap) {
            self.acknowledgement.want_now();
        }
        self.tracking.accept(position);
        let taken = self.place(chunk, position, counters);
        let settled = if next { self.settle(counters) } else { Ok(()) };
        match (taken, settled) {
            (Ok(None), Ok(())) => DataOutcome::Accepted,
            (Ok(Some(stream)), Ok(())) => DataOutcome::InvalidStream(stream),
            _ => {
                counters.inconsistent_data += 1;
                DataOutcome::Violation(Violation::Inconsistent)
            }
        }
    }

    fn acknowledge_now(&mut self) {
        self.acknowledgement.on_chunk();
        self.acknowledgement.want_now();
    }

    fn refuse(&mut self, counters: &mut Counters) -> DataOutcome {
        counters.data_over_window += 1;
        self.acknowledge_now();
        DataOutcome::OverWindow
    }

    /// Puts the data of a chunk that is new where it belongs. Gives its stream if there is none of
    /// that number.
    #[inline]
    fn place(
        &mut self,
        chunk: DataChunk,
        position: Position,
        counters: &mut Counters,
    ) -> Result<Option<StreamId>, Contradiction> {
        let stream = chunk.stream;
        if stream.0 >= self.inbound {
            counters.inconsistent_data += 1;
            return Ok(Some(stream));
        }
        let number = number_of(&chunk);
        let due = self.delivery.due(stream);
        let place = match number {
            Number::Unordered => None,
            number => match number_from(due, number) {
                None => {
                    // What is left of a message that was given up.
                    counters.inconsistent_data += u64::from(!self.skipped);
                    return Ok(None);
                }
                place => place,
            },
        };
        let number = match (place, chunk.order) {
            (Some(number), _) => number,
            (None, Order::Mid { mid, .. }) => u64::from(mid.0),
            (None, Order::Ssn(_)) => 0,
        };
        self.window.hold(chunk.payload.len());
        if !(chunk.flags.begin && chunk.flags.end) {
            return self.take_fragment(chunk, position, number, counters).map(|()| None);
        }
        if self.reassembly.contradicts(number, &chunk) {
            return Err(Contradiction);
        }
        self.take_whole(chunk, place, due, counters);
        Ok(None)
    }

    #[inline]
    fn take_whole(
        &mut self,
        chunk: DataChunk,
        place: Option<u64>,
        due: u64,
        counters: &mut Counters,
    ) {
        let ready = Ready {
            message: Message {
                stream: chunk.stream,
                ppid: chunk.ppid,
                unordered: chunk.flags.unordered,
                number: match chunk.order {
                    Order::Ssn(ssn) => u32::from(ssn.0),
                    Order::Mid { mid, .. } => mid.0,
                },
                tsn: chunk.tsn,
                begins: true,
                ends: true,
                data: Pieces::One(self.borrowing.whole(chunk.payload)),
            },
            tsns: Vec::new(),
        };
        match place {
            None => self.delivery.push(ready),
            Some(number) if number == due => self.delivery.push_due(ready, number),
            Some(number) => self.order(ready, number, counters),
        }
    }

    fn take_fragment(
        &mut self,
        mut chunk: DataChunk,
        position: Position,
        number: u64,
        counters: &mut Counters,
    ) -> Result<(), Contradiction> {
        let data = self.borrowing.fragment(core::mem::take(&mut chunk.payload));
        let (point, delivery) = (self.delivery_point(), &mut self.delivery);
        let before = self.reassembly.messages();
        let part =
            self.reassembly.insert(number, position, &chunk, data, |stream, number, bytes| {
                bytes >= point && is_due(delivery, stream, number)
            })?;
        let after = self.reassembly.messages();
        self.window.hold_messages(after.saturating_sub(before));
        self.window.release_messages(before.saturating_sub(after));
        if let Some(part) = part {
            self.deliver(part, counters);
        }
        Ok(())
    }

    /// Gives a message or a part of one to the application, or lets it wait for its turn.
    fn deliver(&mut self, part: Part, counters: &mut Counters) {
        // What can be delivered lies here only as long as the application likes.
        self.borrowing.give_back(part.borrowed);
        let message = &part.ready.message;
        let (stream, begins, ends) = (message.stream, message.begins, message.ends);
        let due = self.delivery.due(stream);
        let number = number_from(due, part.number);
        if let (true, true, Some(number)) = (begins, ends, number) {
            return self.order(part.ready, number, counters);
        }
        if let Some(ready) = self.delivery.extend_last(part.ready) {
            self.delivery.push(ready);
        }
        if ends && number == Some(due) {
            self.delivery.done(stream, due);
        }
    }

    fn order(&mut self, ready: Ready, number: u64, counters: &mut Counters) {
        if let Err(ready) = self.delivery.ordered(ready, number) {
            counters.inconsistent_data += 1;
            self.window.release(ready.message.len(), ready.chunks());
        }
    }

    /// The cumulative TSN has moved.
    #[inline]
    pub(super) fn settle(&mut self, counters: &mut Counters) -> Result<(), Contradiction> {
        let result =
            if self.reassembly.is_empty() { Ok(()) } else { self.settle_fragments(counters) };
        if self.skipped && !self.tracking.has_gap() && !self.delivery.nothing_waits() {
            let reassembly = &self.reassembly;
            self.delivery.release_waiting(|stream| reassembly.is_open(stream));
        }
        result
    }

    fn settle_fragments(&mut self, counters: &mut Counters) -> Result<(), Contradiction> {
        let mut dropped = Vec::new();
        let cumulative = self.tracking.cumulative();
        let result = self.reassembly.settle(cumulative, self.skipped, &mut dropped);
        counters.inconsistent_data += dropped.len() as u64;
        self.give_up(dropped);
        result
    }

    /// Delivers what there is of messages that are not whole if the window is nearly closed and
    /// the application has nothing else to take.
    pub(super) fn relieve(&mut self) {
        if self.window.free() >= self.window.buffer() / RELIEF_PART {
            return;
        }
        let delivery = &mut self.delivery;
        let parts =
            self.reassembly.take_beginnings(|stream, number| is_due(delivery, stream, number));
        for part in parts {
            if let Some(ready) = self.delivery.extend_last(part.ready) {
                self.delivery.push(ready);
            }
        }
    }
}
