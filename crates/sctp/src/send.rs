//! The sending side of an association: from the user's message to its acknowledgement.
//!
//! [`AssociationSender`] combines components that own their data and its sums:
//!
//! | component | data | source |
//! | --- | --- | --- |
//! | `queue` | queued messages, by stream; the send buffer | RFC 9260 §11.1.5 |
//! | `outstanding` | outstanding chunks, by TSN, and what is in flight on each path | |
//! | `forwarding` | the advanced peer ack point | RFC 3758 §3.5 |
//! | `gap_blocks` | the gap ack blocks of the peer | RFC 9260 §6.2.1 |
//! | `peer_window` | the peer's window, zero window probes | RFC 9260 §6.1, §6.2.1 |
//! | `multipath` | concurrent multipath transfer | Iyengar et al. 2006, Dreibholz et al. 2010 |
//! | `rules` | the user's settings | |
//!
//! Procedures that need several of them:
//!
//! | file | procedure | source |
//! | --- | --- | --- |
//! | `enqueue` | messages accepted or refused | RFC 9260 §11.1.5, RFC 7496 §3.2 |
//! | `fill` | filling of packets: retransmissions first, then new data | RFC 9260 §6.1, §6.10 |
//! | `fragmentation` | the fragmentation of messages | RFC 9260 §6.9, RFC 8260 §2 |
//! | `acknowledgement` | SACK and NR-SACK | RFC 9260 §6.2.1 |
//! | `retransmission` | lost chunks; T3 | RFC 9260 §6.3.3, §6.4.1 |
//! | `loss` | loss detection | RFC 9260 §7.2.4, RFC 8985 |
//! | `partial_reliability` | abandoned messages, FORWARD-TSN | RFC 3758, RFC 7496, RFC 8260 §2.3 |
//! | `restart` | a restart of the peer | RFC 9260 §5.2.4 |
//! | `congestion_echo` | ECNE | RFC 9260 appendix A |
//!
//! A sum changes together with its parts, in the component that owns them. Builds with debug
//! assertions, and tests, recompute them all (`audit`).

use alloc::boxed::Box;

use crate::config::AssociationConfig;
use crate::error::Error;
use crate::event::Event;
use crate::identifier::StreamId;
use crate::serial::Tsn;
use crate::wire::PACKET_HEADER;
use crate::wire::chunk::{DATA_HEADER, I_DATA_HEADER};

mod acknowledgement;
#[cfg(any(test, debug_assertions))]
mod audit;
mod byte_tally;
mod congestion_echo;
mod enqueue;
mod fill;
mod forwarding;
mod fragmentation;
mod gap_blocks;
mod loss;
mod multipath;
mod outstanding;
mod partial_reliability;
mod peer_window;
mod queue;
mod restart;
mod retransmission;
mod rules;
#[cfg(test)]
mod tests;

pub use acknowledgement::SackOutcome;
pub(crate) use queue::BufferAllowance;
pub use queue::{AssociationQueueInfo, QueueInfo};
pub use retransmission::{T3Expiry, TimeoutOutcome};

use forwarding::ForwardTsnState;
use gap_blocks::ReportedGapBlocks;
use multipath::ConcurrentTransfer;
use outstanding::OutstandingData;
use peer_window::PeerWindow;
use queue::SendQueue;
use rules::SenderRules;

/// The negotiated parameters of the sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SenderTerms {
    /// The TSN of our first chunk.
    pub initial_tsn: Tsn,
    /// The window that the peer advertised (`a_rwnd`), in bytes.
    pub peer_window: u32,
    /// The number of streams that may be sent on.
    pub outbound: u16,
    /// Whether I-DATA is used (RFC 8260).
    pub interleaving: bool,
    /// Whether the peer supports FORWARD-TSN or I-FORWARD-TSN.
    pub partial_reliability: bool,
    /// Bytes of each packet with data that are reserved for AUTH, if the peer requires
    /// authenticated data.
    pub reserved: usize,
}

impl SenderTerms {
    /// Returns the length of a data chunk's header.
    fn chunk_header(&self) -> usize {
        if self.interleaving { I_DATA_HEADER } else { DATA_HEADER }
    }

    /// Returns the bytes of a packet that are not available for data chunks.
    fn overhead(&self) -> usize {
        PACKET_HEADER + self.reserved
    }

    /// Returns the bytes of data that fit into an otherwise empty packet of `mtu` bytes.
    fn capacity(&self, mtu: usize) -> usize {
        mtu.saturating_sub(self.overhead() + self.chunk_header())
    }
}

/// The sending side of one association.
#[derive(Debug)]
pub struct AssociationSender {
    terms: SenderTerms,
    rules: SenderRules,
    queue: SendQueue,
    outstanding: OutstandingData,
    /// The gap ack blocks of the peer.
    reported: ReportedGapBlocks,
    peer_window: PeerWindow,
    forwarding: ForwardTsnState,
    /// The state of concurrent multipath transfer, if enabled.
    multipath: Option<Box<ConcurrentTransfer>>,
    /// The TSN up to which ECNE chunks belong to a window that has already been reduced.
    congestion_echoed: Option<Tsn>,
    /// Whether the peer has acknowledged none of what was sent so far.
    never_acknowledged: bool,
    #[cfg(any(test, debug_assertions))]
    audit: audit::SenderAudit,
}

impl AssociationSender {
    /// Creates a sender with nothing to send.
    #[must_use]
    pub fn new(config: &AssociationConfig, terms: SenderTerms) -> Self {
        let cuc = config.multipath.as_ref().map(|choices| choices.cuc);
        Self {
            terms,
            rules: SenderRules::new(config),
            queue: SendQueue::new(config, terms.interleaving),
            outstanding: OutstandingData::new(terms.initial_tsn, cuc),
            reported: ReportedGapBlocks::default(),
            peer_window: PeerWindow::new(terms.peer_window),
            forwarding: ForwardTsnState::new(terms.initial_tsn),
            multipath: ConcurrentTransfer::new(config),
            congestion_echoed: None,
            never_acknowledged: false,
            #[cfg(any(test, debug_assertions))]
            audit: audit::SenderAudit::default(),
        }
    }

    /// Applies the settings that can change while the association exists. The scheduler restarts
    /// without its history.
    pub(crate) fn configure(&mut self, config: &AssociationConfig) {
        self.rules.configure(config);
        self.queue.configure(config);
        for (stream, value) in &config.stream_values {
            // Streams that do not exist have no value.
            let _ = self.set_stream_value(*stream, *value);
        }
        self.notify_room();
    }

    /// Changes the priority or weight of a stream (`SCTP_STREAM_SCHEDULER_VALUE`).
    ///
    /// # Errors
    /// If the stream does not exist.
    pub fn set_stream_value(&mut self, stream: StreamId, value: u16) -> Result<(), Error> {
        if stream.0 >= self.terms.outbound {
            return Err(Error::NoSuchStream);
        }
        self.queue.set_stream_value(stream, value);
        Ok(())
    }

    /// Returns the negotiated parameters.
    #[must_use]
    pub fn terms(&self) -> &SenderTerms {
        &self.terms
    }

    /// Changes the number of streams, after an addition or a restart.
    pub fn set_outbound_streams(&mut self, outbound: u16) {
        self.terms.outbound = outbound;
    }

    /// Returns the TSN of the next new chunk.
    #[must_use]
    pub fn next_tsn(&self) -> Tsn {
        self.outstanding.next()
    }

    /// Returns the last assigned TSN (`Sender's Last Assigned TSN`, RFC 6525 §4.1).
    #[must_use]
    pub fn last_assigned_tsn(&self) -> Tsn {
        self.outstanding.last()
    }

    /// Returns the cumulative TSN ack point.
    #[must_use]
    pub fn cumulative_tsn_acked(&self) -> Tsn {
        self.outstanding.cumulative()
    }

    /// Returns the bytes in flight on all paths.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.outstanding.in_flight()
    }

    /// Returns the peer's advertised window less the bytes in flight.
    #[must_use]
    pub fn peer_window(&self) -> usize {
        self.peer_window.available(self.in_flight())
    }

    /// Returns whether several paths are used at once.
    #[must_use]
    pub fn is_multipath(&self) -> bool {
        self.multipath.is_some()
    }

    /// Returns the next event for the user.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.queue.poll_event()
    }

    /// Returns the size of the largest message that one packet of `mtu` bytes carries whole.
    #[must_use]
    pub fn largest_message(&self, mtu: usize) -> usize {
        self.terms.capacity(mtu).min(self.rules.max_segment.into())
    }

    /// Returns the contents of the send buffer, by stream.
    #[must_use]
    pub fn queue_info(&self) -> AssociationQueueInfo {
        self.queue.info(self.terms.outbound)
    }

    /// Returns the contents of the send buffer that belong to one stream.
    #[must_use]
    pub fn stream_queue(&self, stream: StreamId) -> QueueInfo {
        self.queue.info_of(stream)
    }

    /// Starts no new messages on these streams, including those not used so far, or on all if the
    /// list is empty. Messages that were started continue, and messages can still be queued.
    pub fn pause_streams(&mut self, streams: &[StreamId]) {
        self.queue.pause(streams);
    }

    /// Returns whether no message of these streams is partly sent, so that
    /// [`Self::last_assigned_tsn`] covers all that was sent on them (RFC 6525 §5.1.2, A3).
    #[must_use]
    pub fn are_streams_quiet(&self, streams: &[StreamId]) -> bool {
        self.queue.is_quiet(streams)
    }

    /// Restarts the numbers of these streams after the peer has reset them, and resumes them.
    pub fn reset_streams(&mut self, streams: &[StreamId]) {
        self.queue.renumber(streams);
    }

    /// Resumes these streams after their reset failed.
    pub fn resume_streams(&mut self, streams: &[StreamId]) {
        self.queue.resume(streams);
    }

    /// Returns whether all messages have been acknowledged or abandoned, and the peer has been
    /// notified.
    #[must_use]
    pub fn is_drained(&self) -> bool {
        self.queue.len() == 0 && self.outstanding.is_empty()
    }

    /// Reports room in the send buffer, and an empty one, once for each occurrence.
    fn notify_room(&mut self) {
        self.queue.notify_writable();
        if self.is_drained() {
            self.queue.notify_dry();
        }
    }

    /// Frees memory, if there is nothing to send. Not as soon as everything is acknowledged: an
    /// application that goes on at once would have all of it allocated again.
    pub(crate) fn shrink(&mut self) {
        if self.is_drained() {
            self.queue.shrink();
            self.outstanding.shrink();
        }
    }

    /// Recomputes the sums in builds with debug assertions.
    #[inline]
    fn check(&mut self) {
        #[cfg(any(test, debug_assertions))]
        self.audit_periodically();
    }
}
