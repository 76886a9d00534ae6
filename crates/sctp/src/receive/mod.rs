//! What comes in: TSNs, acknowledgements, the window, messages put together and in order.
//!
//! Inside, TSNs and the numbers of ordered messages are 64-bit positions that do not wrap. A whole
//! message that comes in order goes straight to the application's queue; everything else that is
//! held is bounded by the window, which counts memory and not only data.
//!
//! | file | job | source |
//! | --- | --- | --- |
//! | `tracking`, `ranges` | which TSNs arrived | RFC 9260 §6.2, §3.3.4 |
//! | `acknowledgement` | when to send a SACK | RFC 9260 §6.2 |
//! | `return_path` | on which path a SACK goes | RFC 9260 §6.4 |
//! | `sack` | SACK and NR-SACK put together | RFC 9260 §3.3.4, draft-tuexen-tsvwg-sctp-multipath §3 |
//! | `window` | how much may come, how much is held | RFC 9260 §6.2.1, RFC 1122 §4.2.3.3 |
//! | `borrowing` | sharing memory with packets, or not | |
//! | `reassembly` | either of the two below | |
//! | `fragments` | messages of DATA chunks | RFC 9260 §6.9 |
//! | `interleaved` | messages of I-DATA chunks | RFC 8260 §2.2.3 |
//! | `delivery`, `streams` | order within streams | RFC 9260 §6.5, §6.6 |
//! | `scheduler` | which message goes first to the application | Dreibholz et al. 2010 §7 |
//! | `data` | a DATA or I-DATA chunk on its way through all this | RFC 9260 §6.2 |
//! | `forward` | what the peer gave up | RFC 3758 §3.6, RFC 8260 §2.3.1 |

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

use acknowledgement::{Acknowledgement, SackPolicy};
use borrowing::Borrowing;
use delivery::Delivery;
use dropped::Dropped;
use reassembly::Reassembly;
use return_path::ReturnPath;
use tracking::{Tracking, tsn_at};
use window::Window;

use crate::config::{AssociationConfig, NrSackPolicy};
use crate::event::Event;
use crate::identifier::{PathId, StreamId};
use crate::message::Message;
use crate::serial::{Mid, Ssn, Tsn};
use crate::wire::{CauseCode, GapBlock};

/// A TSN that does not wrap.
pub(crate) type Position = u64;

/// The most events that wait to be asked for; of what is beyond, the application hears nothing.
const MAX_EVENTS: usize = 64;

/// What orders a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    /// Nothing.
    Unordered,
    /// The number in a DATA chunk.
    Ssn(Ssn),
    /// The number in an I-DATA chunk.
    Mid(Mid),
}

/// What became of a DATA or I-DATA chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DataOutcome {
    /// It was taken in.
    Accepted,
    /// It has been here before.
    Duplicate,
    /// It was dropped, as there is no room for it; it will come again.
    OverWindow,
    /// It was acknowledged and dropped: the peer is to be told of an invalid stream identifier
    /// (RFC 9260 §6.5, §3.3.10.1).
    InvalidStream(StreamId),
    /// The peer broke the protocol: the association is to be aborted.
    Violation(Violation),
}

/// How a peer broke the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Violation {
    /// A DATA chunk without data (RFC 9260 §3.3.10.9).
    NoUserData(Tsn),
    /// A chunk of the kind that was not agreed on (RFC 8260 §2.2.1).
    WrongKind,
    /// A fragment that contradicts those before it.
    Inconsistent,
}

impl Violation {
    /// The cause code to abort with (RFC 9260 §3.3.10).
    #[must_use]
    pub const fn cause_code(self) -> CauseCode {
        match self {
            Self::NoUserData(_) => CauseCode::NO_USER_DATA,
            Self::WrongKind | Self::Inconsistent => CauseCode::PROTOCOL_VIOLATION,
        }
    }
}

/// The receiving side of an association.
///
/// For each packet: [`Self::handle_data`] and [`Self::handle_forward_tsn`] for its chunks, then
/// [`Self::end_of_packet`]. Then [`Self::sack_wanted`] says whether to [`Self::write_sack`], which
/// may also be done earlier, when there is a packet to go anyway and [`Self::sack_pending`].
#[derive(Debug)]
pub struct Receiver {
    tracking: Tracking,
    acknowledgement: Acknowledgement,
    return_path: ReturnPath,
    window: Window,
    borrowing: Borrowing,
    reassembly: Reassembly,
    delivery: Delivery,
    inbound: u16,
    nr_sack: bool,
    nr_policy: NrSackPolicy,
    /// Whether the peer ever gave up on something.
    skipped: bool,
    partial_delivery_point: u32,
    /// Whether the application knows that there is something to receive.
    announced: bool,
    events: VecDeque<Event>,
    blocks: Vec<GapBlock>,
    nr_blocks: Vec<GapBlock>,
}

impl Receiver {
    /// A receiver that has received nothing. `initial_tsn` is the peer's, `inbound` the number of
    /// streams that the peer may send on; `interleaving` and `nr_sack` say what was agreed on.
    #[must_use]
    pub fn new(
        config: &AssociationConfig,
        initial_tsn: Tsn,
        inbound: u16,
        interleaving: bool,
        nr_sack: bool,
    ) -> Self {
        let window = Window::new(config.receive_buffer, config.window_accounting);
        let partial_delivery_point = config.partial_delivery_point.unwrap_or(window.buffer() / 4);
        Self {
            tracking: Tracking::new(initial_tsn),
            acknowledgement: Acknowledgement::new(SackPolicy::of(config)),
            return_path: ReturnPath::of(config),
            borrowing: Borrowing::default(),
            reassembly: Reassembly::new(interleaving, nr_sack),
            delivery: Delivery::new(scheduler::new(&config.receive_order)),
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

    /// A packet of `bytes` that came on `arrived_on` has been taken in.
    #[inline]
    pub fn end_of_packet(&mut self, now: Duration, arrived_on: PathId, bytes: usize) {
        self.borrowing.on_packet(bytes);
        let has_data = self.acknowledgement.end_of_packet(now, self.tracking.has_gap());
        self.return_path.on_packet(now, arrived_on, has_data);
        if !self.delivery.is_readable() && !self.reassembly.is_empty() {
            self.relieve();
        }
        if !self.announced && self.delivery.is_readable() {
            self.announced = true;
            self.announce(Event::Readable);
        }
    }

    /// The next message, or part of one, for the application.
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
            self.acknowledgement.want_now();
        }
        Some(ready.message)
    }

    /// Whether there is something to receive.
    #[must_use]
    pub fn is_readable(&self) -> bool {
        self.delivery.is_readable()
    }

    /// Messages, or parts of one, that wait for the application.
    #[must_use]
    pub fn receivable(&self) -> usize {
        self.delivery.readable()
    }

    /// Takes over what can be changed while it runs.
    pub(crate) fn configure(&mut self, config: &AssociationConfig) {
        let point = config.partial_delivery_point.unwrap_or(self.window.buffer() / 4);
        self.partial_delivery_point = u32::try_from(point).unwrap_or(u32::MAX);
        self.acknowledgement.policy = SackPolicy::of(config);
    }

    /// What the application is to hear of.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Bytes of user data that there is room for.
    #[must_use]
    pub fn window(&self) -> u32 {
        u32::try_from(self.window.free()).unwrap_or(u32::MAX)
    }

    /// How much of the receive buffer may be used from now on; what is in it stays.
    pub fn set_allowance(&mut self, bytes: usize) {
        self.window.set_allowance(bytes);
    }

    /// Of how much of a message a part is delivered: what there is room for comes to that in any case.
    fn delivery_point(&self) -> usize {
        (self.partial_delivery_point as usize).min(self.window.buffer() / 2)
    }

    /// Bytes of memory that are held for data, at most twice the receive buffer and a little.
    #[must_use]
    pub fn memory(&self) -> usize {
        self.window.memory()
    }

    /// All TSNs up to this one have arrived or were given up by the peer.
    #[must_use]
    pub fn cumulative_tsn(&self) -> Tsn {
        tsn_at(self.tracking.cumulative())
    }

    /// The highest TSN that has arrived.
    #[must_use]
    pub fn highest_tsn(&self) -> Tsn {
        tsn_at(self.tracking.highest())
    }

    /// Whether something is missing below the highest TSN.
    #[must_use]
    pub fn has_gap(&self) -> bool {
        self.tracking.has_gap()
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

    /// Begins at 0 again on `streams` of the peer, or on all of them if there are none
    /// (RFC 6525 §5.2.2).
    pub fn reset_streams(&mut self, streams: &[StreamId]) {
        let mut dropped = Vec::new();
        self.reassembly.reset(streams, &mut dropped);
        self.give_up(dropped);
        let window = &mut self.window;
        self.delivery.reset(streams, |ready| window.release(ready.message.len(), ready.chunks()));
    }

    /// Begins anew at another TSN, with all streams at 0 (RFC 6525 §5.2.4). What waits for the
    /// application stays.
    pub fn reset_tsns(&mut self, initial_tsn: Tsn) {
        self.reset_streams(&[]);
        self.tracking.restart(initial_tsn);
        self.skipped = false;
    }

    /// Begins anew as with [`Self::new`], as the peer restarted (RFC 9260 §5.2.4.1). What waits for
    /// the application stays.
    pub fn restart(&mut self, initial_tsn: Tsn, inbound: u16, interleaving: bool, nr_sack: bool) {
        self.reset_tsns(initial_tsn);
        self.inbound = inbound;
        self.nr_sack = nr_sack;
        self.reassembly = Reassembly::new(interleaving, nr_sack);
        self.acknowledgement = Acknowledgement::new(self.acknowledgement.policy);
    }

    /// Takes what was dropped out of the account, and tells of messages of which the application
    /// has a part.
    fn give_up(&mut self, dropped: Vec<Dropped>) {
        for one in dropped {
            self.window.release(one.bytes, one.chunks);
            self.window.release_messages(one.messages);
            self.borrowing.give_back(one.borrowed);
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
            self.events.push_back(event);
        }
    }
}
