//! Received data: TSNs, acknowledgements, the window, reassembly and ordering.
//!
//! Internally, TSNs and the numbers of ordered messages are 64-bit positions that do not wrap. A
//! complete message in order goes straight to the application's queue; everything else that is
//! stored is bounded by the window, which accounts for memory and not only for data.
//!
//! | file | purpose | source |
//! | --- | --- | --- |
//! | `tracking`, `ranges` | which TSNs arrived | RFC 9260 §6.2, §3.3.4 |
//! | `acknowledgement` | when to send a SACK | RFC 9260 §6.2 |
//! | `return_path` | the path that a SACK is sent on | RFC 9260 §6.4 |
//! | `sack` | assembly of SACK and NR-SACK | RFC 9260 §3.3.4, draft-tuexen-tsvwg-sctp-multipath §3 |
//! | `window` | receive window and memory accounting | RFC 9260 §6.2.1, RFC 1122 §4.2.3.3 |
//! | `borrowing` | whether data shares memory with packets | |
//! | `reassembly` | either of the two below | |
//! | `fragments` | messages of DATA chunks | RFC 9260 §6.9 |
//! | `interleaved` | messages of I-DATA chunks | RFC 8260 §2.2.3 |
//! | `delivery`, `streams` | order within streams | RFC 9260 §6.5, §6.6 |
//! | `scheduler` | the order of delivery to the application | Dreibholz et al. 2010 §7 |
//! | `data` | processing of a DATA or I-DATA chunk | RFC 9260 §6.2 |
//! | `forward` | data that the peer abandoned | RFC 3758 §3.6, RFC 8260 §2.3.1 |

pub mod acknowledgement;
mod borrowing;
mod data;
mod delivery;
mod dropped;
mod forward;
mod fragments;
mod interleaved;
mod part;
mod ranges;
mod reassembly;
mod return_path;
mod sack;
mod scheduler;
mod streams;
mod tracking;
pub(crate) mod window;

#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

pub use scheduler::ReceiveScheduler;

use acknowledgement::{ReceivedPacket, SackPolicy, SackState};
use borrowing::BorrowedPackets;
use delivery::DeliveryQueue;
use dropped::DroppedMessage;
use reassembly::MessageReassembly;
use return_path::ReturnPath;
use tracking::{TsnTracking, tsn_at};
use window::ReceiveWindow;

use crate::config::{AssociationConfig, NrSackPolicy};
use crate::event::Event;
use crate::identifier::{PathId, StreamId};
use crate::message::Message;
use crate::serial::{Mid, Ssn, Tsn};
use crate::wire::GapBlock;

/// A TSN that does not wrap.
pub(crate) type TsnPosition = u64;

/// The maximum number of events that wait to be polled; further ones are dropped.
const MAX_EVENTS: usize = 64;

/// The sequence number of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MessageNumber {
    /// None: the message is unordered.
    Unordered,
    /// The SSN of a DATA chunk.
    Ssn(Ssn),
    /// The MID of an I-DATA chunk.
    Mid(Mid),
}

/// The result of processing a DATA or I-DATA chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataOutcome {
    /// It was accepted.
    Accepted,
    /// It is a duplicate.
    Duplicate,
    /// It was dropped for lack of buffer space; the peer will retransmit it.
    OverWindow,
    /// It was acknowledged and dropped: an invalid stream identifier has to be reported to the peer
    /// (RFC 9260 §6.5, §3.3.10.1).
    InvalidStream(StreamId),
    /// The peer violated the protocol: the association has to be aborted.
    Violation(DataViolation),
}

/// A protocol violation by the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataViolation {
    /// A DATA chunk without data (RFC 9260 §3.3.10.9).
    NoUserData(Tsn),
    /// A chunk of the type that was not negotiated (RFC 8260 §2.2.1).
    WrongKind,
    /// A fragment that contradicts those before it.
    Inconsistent,
}

/// The receiving side of an association.
///
/// Call [`Self::handle_data`] and [`Self::handle_forward_tsn`] for the chunks of each packet, then
/// [`Self::end_of_packet`]. If [`Self::sack_wanted`] returns true, call [`Self::write_sack`]; it
/// may also be called earlier, to bundle a [`Self::sack_pending`] with another packet.
#[derive(Debug)]
pub struct AssociationReceiver {
    tracking: TsnTracking,
    acknowledgement: SackState,
    return_path: ReturnPath,
    window: ReceiveWindow,
    borrowing: BorrowedPackets,
    reassembly: MessageReassembly,
    delivery: DeliveryQueue,
    inbound: u16,
    nr_sack: bool,
    nr_policy: NrSackPolicy,
    /// Whether the peer has ever abandoned data.
    skipped: bool,
    partial_delivery_point: u32,
    /// Whether the application has been notified of readable data.
    announced: bool,
    events: VecDeque<Event>,
    blocks: Vec<GapBlock>,
    nr_blocks: Vec<GapBlock>,
}

impl AssociationReceiver {
    /// Creates a receiver. `initial_tsn` is the peer's, `inbound` the number of streams that the
    /// peer may send on; `interleaving` and `nr_sack` state whether these were negotiated.
    #[must_use]
    pub fn new(
        config: &AssociationConfig,
        initial_tsn: Tsn,
        inbound: u16,
        interleaving: bool,
        nr_sack: bool,
    ) -> Self {
        let window = ReceiveWindow::new(config.receive_buffer, config.window_accounting);
        let partial_delivery_point = config.partial_delivery_point.unwrap_or(window.buffer() / 4);
        Self {
            tracking: TsnTracking::new(initial_tsn),
            acknowledgement: SackState::new(SackPolicy::from_config(config)),
            return_path: ReturnPath::from_config(config),
            borrowing: BorrowedPackets::default(),
            reassembly: MessageReassembly::new(interleaving, nr_sack),
            delivery: DeliveryQueue::new(scheduler::new(&config.receive_order)),
            inbound,
            nr_sack,
            nr_policy: config
                .multipath
                .as_ref()
                .map_or(NrSackPolicy::AtDelivery, |multipath| multipath.nr_sack),
            skipped: false,
            partial_delivery_point: u32::try_from(partial_delivery_point).unwrap_or(u32::MAX),
            announced: false,
            events: VecDeque::new(),
            blocks: Vec::new(),
            nr_blocks: Vec::new(),
            window,
        }
    }

    /// Completes a packet of `bytes` that arrived on a path with this round-trip time, if known.
    /// `sends_bulk`: this end has bulk in flight, too.
    #[inline]
    pub fn end_of_packet(
        &mut self,
        now: Duration,
        (arrived_on, rtt): (PathId, Option<Duration>),
        bytes: usize,
        sends_bulk: bool,
    ) {
        self.borrowing.on_packet(bytes);
        let packet = ReceivedPacket {
            gap: self.tracking.has_gap(),
            sack_bytes: self.sack_packet_len(),
            rtt,
            sends_bulk,
        };
        let has_data = self.acknowledgement.end_of_packet(now, &packet);
        self.return_path.on_packet(now, arrived_on, has_data);
        if !self.delivery.is_readable() && !self.reassembly.is_empty() {
            self.deliver_partially();
        }
        if !self.announced && self.delivery.is_readable() {
            self.announced = true;
            self.announce(Event::Readable);
        }
    }

    /// Returns the next message, or a part of one, for the application.
    #[inline]
    pub fn receive(&mut self) -> Option<Message> {
        let Some(ready) = self.delivery.pop() else {
            self.announced = false;
            return None;
        };
        self.announced = self.delivery.is_readable();
        self.window.release(ready.message.len(), ready.chunks());
        if self.nr_sack && self.nr_policy == NrSackPolicy::AtDelivery {
            if ready.tsns.is_empty() {
                self.tracking.on_delivered(ready.message.tsn, ready.chunks() as u64);
            }
            ready.tsns.iter().for_each(|tsn| self.tracking.on_delivered(*tsn, 1));
        }
        if self.window.wants_update() {
            self.acknowledgement.request_now();
        }
        Some(ready.message)
    }

    /// Frees the memory of what the application has received.
    pub(crate) fn shrink(&mut self) {
        self.delivery.shrink();
    }

    /// Returns whether there is something to receive.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.delivery.is_readable()
    }

    /// Returns the number of messages, or parts of them, that the application can receive.
    #[must_use]
    pub fn receivable(&self) -> usize {
        self.delivery.readable()
    }

    /// Applies the settings that can change while the association exists.
    pub(crate) fn configure(&mut self, config: &AssociationConfig) {
        let point = config.partial_delivery_point.unwrap_or(self.window.buffer() / 4);
        self.partial_delivery_point = u32::try_from(point).unwrap_or(u32::MAX);
        self.acknowledgement.policy = SackPolicy::from_config(config);
    }

    /// Returns the next event for the application.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns the receive window: the bytes of user data that there is room for.
    #[must_use]
    pub fn window(&self) -> u32 {
        u32::try_from(self.window.free()).unwrap_or(u32::MAX)
    }

    /// Limits the use of the receive buffer to `bytes`; data in it is kept.
    pub fn set_allowance(&mut self, bytes: usize) {
        self.window.set_allowance(bytes);
    }

    /// Returns the length from which a message is delivered partially: it is always reached within
    /// the available space.
    fn delivery_point(&self) -> usize {
        (self.partial_delivery_point as usize).min(self.window.buffer() / 2)
    }

    /// Returns the memory in use for data, in bytes: at most twice the receive buffer plus a small
    /// margin.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.window.memory()
    }

    /// Returns the TSN up to which all have arrived or were abandoned by the peer.
    #[must_use]
    pub fn cumulative_tsn(&self) -> Tsn {
        tsn_at(self.tracking.cumulative())
    }

    /// Returns the highest TSN that has arrived.
    #[cfg(any(test, feature = "internals"))]
    #[must_use]
    pub fn highest_tsn(&self) -> Tsn {
        tsn_at(self.tracking.highest())
    }

    /// How many streams the peer may send on.
    #[must_use]
    pub fn inbound_streams(&self) -> u16 {
        self.inbound
    }

    /// Lets the peer send on this many streams (RFC 6525 §5.2.5).
    pub fn set_inbound_streams(&mut self, inbound: u16) {
        self.inbound = inbound;
    }

    /// Resets the sequence numbers of the peer's `streams` to 0, or of all if the list is empty
    /// (RFC 6525 §5.2.2).
    pub fn reset_streams(&mut self, streams: &[StreamId]) {
        let mut dropped = Vec::new();
        self.reassembly.reset(streams, &mut dropped);
        self.release_dropped(dropped);
        let window = &mut self.window;
        self.delivery.reset(streams, |ready| window.release(ready.message.len(), ready.chunks()));
    }

    /// Restarts at another TSN, with all streams at 0 (RFC 6525 §5.2.4). Messages ready for the
    /// application are kept.
    pub fn reset_tsns(&mut self, initial_tsn: Tsn) {
        self.reset_streams(&[]);
        self.tracking.restart(initial_tsn);
        self.skipped = false;
    }

    /// Restarts as with [`Self::new`], as the peer restarted (RFC 9260 §5.2.4.1). Messages ready
    /// for the application are kept.
    pub fn restart(&mut self, initial_tsn: Tsn, inbound: u16, interleaving: bool, nr_sack: bool) {
        self.reset_tsns(initial_tsn);
        self.inbound = inbound;
        self.nr_sack = nr_sack;
        self.reassembly = MessageReassembly::new(interleaving, nr_sack);
        self.acknowledgement = SackState::new(self.acknowledgement.policy);
    }

    /// Releases the memory of dropped data, and reports messages that were partly delivered.
    fn release_dropped(&mut self, dropped: Vec<DroppedMessage>) {
        for one in dropped {
            self.window.release(one.bytes, one.chunks);
            self.window.release_messages(one.messages);
            self.borrowing.release(one.borrowed);
            if !one.partial {
                continue;
            }
            let window = &mut self.window;
            let has_part = self.delivery.retract(one.stream, one.unordered, one.number, |ready| {
                window.release(ready.message.len(), ready.chunks());
            });
            if has_part {
                self.announce(Event::PartialDeliveryAborted { stream: one.stream });
            }
        }
    }

    fn announce(&mut self, event: Event) {
        if self.events.len() < MAX_EVENTS {
            if self.events.capacity() == 0 {
                // One event at a time is usual, and a queue that grows begins with room for four.
                self.events.reserve_exact(1);
            }
            self.events.push_back(event);
        }
    }
}
