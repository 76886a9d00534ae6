//! A DATA or I-DATA chunk (RFC 9260 §6.2, §6.5, §6.6, §6.9; RFC 8260 §2.2.3).

use alloc::vec::Vec;

use super::delivery::{DeliveryQueue, ReadyMessage};
use super::fragments::number_of;
use super::part::{FragmentContradiction, MessagePart};
use super::tracking::TsnArrival;
use super::window::GapFilling;
use super::{AssociationReceiver, DataOutcome, DataViolation, MessageNumber, TsnPosition};
use crate::counters::EndpointCounters;
use crate::identifier::StreamId;
use crate::message::{Message, MessagePieces};
use crate::wire::{DataChunk, DataOrder};

/// The fraction of the receive buffer below which incomplete messages are delivered partially, so
/// that they cannot block each other.
const LOW_WINDOW_FRACTION: usize = 8;

/// Returns the non-wrapping number of an ordered message, where `due` is that of the next one on
/// its stream. `None` if the message has been delivered or abandoned.
fn number_from(due: u64, number: MessageNumber) -> Option<u64> {
    match number {
        // New TSNs have numbers from the next one on, and no more of them than there are TSNs that
        // can be ahead: so every number is ahead.
        MessageNumber::Ssn(ssn) => Some(due + u64::from(ssn.0.wrapping_sub(due as u16))),
        MessageNumber::Mid(mid) => {
            let ahead = mid.0.wrapping_sub(due as u32);
            (ahead.cast_signed() >= 0).then(|| due + u64::from(ahead))
        }
        MessageNumber::Unordered => None,
    }
}

/// Returns whether the message with `number` may be delivered before it is complete.
fn is_due(delivery: &mut DeliveryQueue, stream: StreamId, number: MessageNumber) -> bool {
    let due = delivery.due(stream);
    number == MessageNumber::Unordered || number_from(due, number) == Some(due)
}

impl AssociationReceiver {
    /// Processes a DATA or I-DATA chunk; its payload is taken if it is stored.
    pub fn handle_data(
        &mut self,
        chunk: &mut DataChunk,
        counters: &mut EndpointCounters,
    ) -> DataOutcome {
        let interleaved = matches!(chunk.order, DataOrder::Mid { .. });
        if chunk.payload.is_empty() || interleaved != self.reassembly.is_interleaved() {
            counters.inconsistent_data += 1;
            return DataOutcome::Violation(if chunk.payload.is_empty() {
                DataViolation::NoUserData(chunk.tsn)
            } else {
                DataViolation::WrongKind
            });
        }
        let (position, next, fills_gap) = match self.tracking.classify(chunk.tsn) {
            TsnArrival::New { position, next, fills_gap } => (position, next, fills_gap),
            TsnArrival::Duplicate => {
                counters.duplicate_data += 1;
                self.tracking.on_duplicate(chunk.tsn);
                self.acknowledge_now();
                return DataOutcome::Duplicate;
            }
            TsnArrival::TooFar => return self.drop_over_window(counters),
        };
        let gap = match (fills_gap, next) {
            (false, _) => GapFilling::None,
            (true, false) => GapFilling::Any,
            (true, true) => GapFilling::First,
        };
        if !self.window.admits(gap) {
            return self.drop_over_window(counters);
        }
        self.acknowledgement.on_chunk();
        if chunk.flags.immediate || (fills_gap && self.acknowledgement.policy.at_once_on_gap) {
            self.acknowledgement.request_now();
        }
        self.tracking.accept(position);
        let added = self.store(chunk, position, counters);
        let result = if next { self.drop_stranded(counters) } else { Ok(()) };
        match (added, result) {
            (Ok(None), Ok(())) => DataOutcome::Accepted,
            (Ok(Some(stream)), Ok(())) => DataOutcome::InvalidStream(stream),
            _ => {
                counters.inconsistent_data += 1;
                DataOutcome::Violation(DataViolation::Inconsistent)
            }
        }
    }

    fn acknowledge_now(&mut self) {
        self.acknowledgement.on_chunk();
        self.acknowledgement.request_now();
    }

    fn drop_over_window(&mut self, counters: &mut EndpointCounters) -> DataOutcome {
        counters.data_over_window += 1;
        self.acknowledge_now();
        DataOutcome::OverWindow
    }

    /// Stores the data of a new chunk. Returns its stream if that does not exist.
    #[inline]
    fn store(
        &mut self,
        chunk: &mut DataChunk,
        position: TsnPosition,
        counters: &mut EndpointCounters,
    ) -> Result<Option<StreamId>, FragmentContradiction> {
        let stream = chunk.stream;
        if stream.0 >= self.inbound {
            counters.inconsistent_data += 1;
            return Ok(Some(stream));
        }
        let number = number_of(chunk);
        let due = self.delivery.due(stream);
        let place = match number {
            MessageNumber::Unordered => None,
            number => match number_from(due, number) {
                None => {
                    // The rest of an abandoned message.
                    counters.inconsistent_data += u64::from(!self.skipped);
                    return Ok(None);
                }
                place => place,
            },
        };
        let number = match (place, chunk.order) {
            (Some(number), _) => number,
            (None, DataOrder::Mid { mid, .. }) => u64::from(mid.0),
            (None, DataOrder::Ssn(_)) => 0,
        };
        self.window.charge(chunk.payload.len());
        if !(chunk.flags.begin && chunk.flags.end) {
            return self.add_fragment(chunk, position, number, counters).map(|()| None);
        }
        if self.reassembly.contradicts(number, chunk) {
            return Err(FragmentContradiction);
        }
        self.add_complete(chunk, place, due, counters);
        Ok(None)
    }

    #[inline]
    fn add_complete(
        &mut self,
        chunk: &mut DataChunk,
        place: Option<u64>,
        due: u64,
        counters: &mut EndpointCounters,
    ) {
        let ready = ReadyMessage {
            message: Message {
                stream: chunk.stream,
                ppid: chunk.ppid,
                unordered: chunk.flags.unordered,
                number: match chunk.order {
                    DataOrder::Ssn(ssn) => u32::from(ssn.0),
                    DataOrder::Mid { mid, .. } => mid.0,
                },
                tsn: chunk.tsn,
                begins: true,
                ends: true,
                data: MessagePieces::One(self.borrowing.whole(core::mem::take(&mut chunk.payload))),
            },
            tsns: Vec::new(),
        };
        match place {
            None => self.delivery.push(ready),
            Some(number) if number == due => self.delivery.push_due(ready, number),
            Some(number) => self.order(ready, number, counters),
        }
    }

    fn add_fragment(
        &mut self,
        chunk: &mut DataChunk,
        position: TsnPosition,
        number: u64,
        counters: &mut EndpointCounters,
    ) -> Result<(), FragmentContradiction> {
        let data = self.borrowing.fragment(core::mem::take(&mut chunk.payload));
        let (point, delivery) = (self.delivery_point(), &mut self.delivery);
        let before = self.reassembly.messages();
        let deliver_partially =
            |stream, number, bytes| bytes >= point && is_due(delivery, stream, number);
        let mut part = None;
        self.reassembly.insert(number, position, chunk, data, deliver_partially, &mut part)?;
        let after = self.reassembly.messages();
        self.window.charge_messages(after.saturating_sub(before));
        self.window.release_messages(before.saturating_sub(after));
        if let Some(part) = part {
            self.deliver(part, counters);
        }
        Ok(())
    }

    /// Delivers a message or a part of one to the application, or stores it until it is due.
    fn deliver(&mut self, part: MessagePart, counters: &mut EndpointCounters) {
        // Deliverable data is stored only as long as the application likes.
        self.borrowing.release(part.borrowed);
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
            self.delivery.advance(stream, due);
        }
    }

    fn order(&mut self, ready: ReadyMessage, number: u64, counters: &mut EndpointCounters) {
        if let Err(ready) = self.delivery.ordered(ready, number) {
            counters.inconsistent_data += 1;
            self.window.release(ready.message.len(), ready.chunks());
        }
    }

    /// Handles an advance of the cumulative TSN.
    #[inline]
    pub(super) fn drop_stranded(
        &mut self,
        counters: &mut EndpointCounters,
    ) -> Result<(), FragmentContradiction> {
        if !self.skipped && !self.reassembly.may_strand(self.tracking.cumulative()) {
            return Ok(());
        }
        self.drop_stranded_data(counters)
    }

    fn drop_stranded_data(
        &mut self,
        counters: &mut EndpointCounters,
    ) -> Result<(), FragmentContradiction> {
        let result = if self.reassembly.is_empty() {
            Ok(())
        } else {
            self.drop_stranded_fragments(counters)
        };
        if self.skipped && !self.tracking.has_gap() && !self.delivery.is_waiting_empty() {
            let reassembly = &self.reassembly;
            self.delivery.release_waiting(|stream| reassembly.is_open(stream));
        }
        result
    }

    fn drop_stranded_fragments(
        &mut self,
        counters: &mut EndpointCounters,
    ) -> Result<(), FragmentContradiction> {
        let mut dropped = Vec::new();
        let cumulative = self.tracking.cumulative();
        let result = self.reassembly.drop_stranded(cumulative, self.skipped, &mut dropped);
        counters.inconsistent_data += dropped.len() as u64;
        self.release_dropped(dropped);
        result
    }

    /// Delivers incomplete messages partially if the window is nearly closed and there is nothing
    /// else for the application.
    pub(super) fn deliver_partially(&mut self) {
        if self.window.free() >= self.window.buffer() / LOW_WINDOW_FRACTION {
            return;
        }
        let delivery = &mut self.delivery;
        let parts = self.reassembly.take_partial(|stream, number| is_due(delivery, stream, number));
        for part in parts {
            if let Some(ready) = self.delivery.extend_last(part.ready) {
                self.delivery.push(ready);
            }
        }
    }
}
