//! Which stream may send next: one trait, one file for each scheduler (RFC 8260 §3).
//!
//! | file | scheduler | source |
//! | --- | --- | --- |
//! | `fcfs` | first come, first served | RFC 8260 §3.1 |
//! | `round_robin` | in turn, a message each (a chunk each with interleaving) | RFC 8260 §3.2 |
//! | `round_robin_packet` | in turn, a packet each | RFC 8260 §3.3 |
//! | `priority` | strict priority, in turn among equals | RFC 8260 §3.4 |
//! | `fair_bandwidth` | the same share of bytes for all | RFC 8260 §3.5 |
//! | `weighted_fair_queueing` | shares of bytes by weight | RFC 8260 §3.6 |
//!
//! The sender asks for a stream whenever it may begin something new: after each message, or after
//! each chunk if messages are interleaved (RFC 8260 §2). A scheduler knows streams that have
//! something to send and nothing else, so it costs nothing for all others.

use alloc::boxed::Box;
use core::fmt;

use crate::config::SchedulerKind;

mod fair_bandwidth;
mod fcfs;
mod priority;
mod round_robin;
mod round_robin_packet;
#[cfg(test)]
mod tests;
mod turns;
mod virtual_time;
mod weighted_fair_queueing;

pub use fair_bandwidth::FairBandwidth;
pub use fcfs::Fcfs;
pub use priority::Priority;
pub use round_robin::RoundRobin;
pub use round_robin_packet::RoundRobinPacket;
pub use weighted_fair_queueing::WeightedFairQueueing;

/// A stream that has been used, by the order of first use: small numbers, so that a scheduler can
/// use them as an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamSlot(pub u16);

impl StreamSlot {
    /// As an index.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// What was sent of the stream that was chosen last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turn {
    /// The stream.
    pub stream: StreamSlot,
    /// Bytes of user data; 0 if the message was given up instead.
    pub bytes: usize,
    /// Whether the message at the head of the stream is through.
    pub ends_message: bool,
    /// Whether the stream has nothing more to send.
    pub ends_stream: bool,
}

/// Decides which stream may send next.
pub trait Scheduler: fmt::Debug + Send + Sync {
    /// A message was put behind the others of this stream.
    fn on_queued(&mut self, stream: StreamSlot);

    /// Which stream may send next, of those that are `eligible`. Asking again without
    /// [`Self::on_sent`] in between gives the same answer.
    fn next(&mut self, eligible: &mut dyn FnMut(StreamSlot) -> bool) -> Option<StreamSlot>;

    /// Something of the stream was sent, or its first message was given up.
    fn on_sent(&mut self, turn: &Turn);

    /// A new packet begins.
    fn on_packet(&mut self) {}

    /// The priority or weight of a stream (`SCTP_STREAM_SCHEDULER_VALUE`).
    fn set_value(&mut self, _stream: StreamSlot, _value: u16) {}
}

/// A scheduler of this kind. `by_chunk`: it is asked after each chunk, not after each message.
#[must_use]
pub fn new(kind: SchedulerKind, by_chunk: bool) -> Box<dyn Scheduler> {
    match kind {
        SchedulerKind::Fcfs => Box::new(Fcfs::default()),
        SchedulerKind::RoundRobin => Box::new(RoundRobin::new(by_chunk)),
        SchedulerKind::RoundRobinPacket => Box::new(RoundRobinPacket::default()),
        SchedulerKind::Priority => Box::new(Priority::new(by_chunk)),
        SchedulerKind::FairBandwidth => Box::new(FairBandwidth::default()),
        SchedulerKind::WeightedFairQueueing => Box::new(WeightedFairQueueing::default()),
    }
}
