//! Stream schedulers (RFC 8260 §3): the [`Scheduler`] trait, and a file for each implementation.
//! The built-in ones are listed in [`SchedulerKind`](crate::config::SchedulerKind); a caller
//! supplies another as a [`SchedulerFactory`] in
//! [`AssociationConfig::scheduler`](crate::config::AssociationConfig::scheduler).
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
//! The sender asks for a stream whenever it may start a new message or chunk: after each message,
//! or after each chunk if messages are interleaved (RFC 8260 §2). A scheduler only knows the
//! streams that have something to send, so the others cost nothing.

use alloc::boxed::Box;
use core::fmt;

use crate::identifier::StreamId;

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

use fair_bandwidth::FairBandwidth;
use fcfs::FcfsScheduler;
use priority::PriorityScheduler;
use round_robin::RoundRobin;
use round_robin_packet::RoundRobinPacket;
use weighted_fair_queueing::WeightedFairQueueing;

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

/// What was sent from the stream that was chosen last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamTurn {
    /// The stream.
    pub stream: StreamSlot,
    /// Bytes of user data; 0 if the message was abandoned instead.
    pub bytes: usize,
    /// Whether the message at the head of the stream is complete.
    pub ends_message: bool,
    /// Whether the stream has nothing more to send.
    pub ends_stream: bool,
}

/// Decides which stream may send next. It is notified of every message that is queued and of every
/// one that is complete, so that it knows which streams have something to send.
pub trait Scheduler: fmt::Debug + Send + Sync {
    /// Called when a stream is used for the first time, with its number and the slot that all other
    /// methods identify it by.
    fn on_opened(&mut self, _stream: StreamSlot, _id: StreamId) {}

    /// Called when a message is appended to this stream.
    fn on_queued(&mut self, stream: StreamSlot);

    /// Returns the stream that may send next, of those that are `eligible`, or `None` if none may.
    /// Calling it again without [`Self::on_sent`] in between returns the same stream. A stream that
    /// is not eligible counts as `None`.
    fn next(&mut self, eligible: &mut dyn FnMut(StreamSlot) -> bool) -> Option<StreamSlot>;

    /// Called when data of the stream was sent, or its first message was abandoned.
    fn on_sent(&mut self, turn: &StreamTurn);

    /// Called when a new packet begins.
    fn on_packet(&mut self) {}

    /// The priority or weight of a stream (`SCTP_STREAM_SCHEDULER_VALUE`).
    fn set_value(&mut self, _stream: StreamSlot, _value: u16) {}
}

/// Creates the scheduler of each association.
pub trait SchedulerFactory: fmt::Debug + Send + Sync {
    /// Creates a scheduler without streams. `by_chunk`: messages are interleaved, so that it is
    /// called after each chunk, not after each message.
    fn build(&self, by_chunk: bool) -> Box<dyn Scheduler>;
}

/// Those that are built in, public in [`crate::config`].
pub(crate) mod kind {
    use alloc::boxed::Box;

    use super::{
        FairBandwidth, FcfsScheduler, PriorityScheduler, RoundRobin, RoundRobinPacket, Scheduler,
        SchedulerFactory, WeightedFairQueueing,
    };
    use crate::built_in::built_in;

    built_in! {
        /// Which stream may send next (RFC 8260 §3).
        pub enum SchedulerKind: SchedulerFactory {
            fn build(by_chunk: bool) -> Box<dyn Scheduler>;

            /// First come, first served (`SCTP_SS_FCFS`).
            Fcfs("fcfs", "First come, first served") => Box::new(FcfsScheduler::default());
            /// Round-robin by message (`SCTP_SS_RR`).
            RoundRobin("round-robin", "Streams in turn, a message each")
                => Box::new(RoundRobin::new(by_chunk));
            /// Round-robin by packet (`SCTP_SS_RR_PKT`).
            RoundRobinPacket("round-robin-packet", "Streams in turn, a packet each")
                => Box::new(RoundRobinPacket::default());
            /// Strict priority (`SCTP_SS_PRIO`).
            Priority("priority", "Strict priority, in turn among equals")
                => Box::new(PriorityScheduler::new(by_chunk));
            /// The same share of bytes for all (`SCTP_SS_FB`): a message on a stream that seldom sends
            /// one does not wait for what others have queued.
            #[default]
            FairBandwidth("fair-bandwidth", "The same share of bytes for all")
                => Box::new(FairBandwidth::default());
            /// Shares of bytes by weight (`SCTP_SS_WFQ`).
            WeightedFairQueueing("weighted-fair-queueing", "Shares of bytes by weight")
                => Box::new(WeightedFairQueueing::default());
        }
    }
}
