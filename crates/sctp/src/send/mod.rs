//! The sending side of an association: from a message that is handed in to its acknowledgement.
//!
//! [`Sender`] joins parts that own what they keep, and count it:
//!
//! | part | what it keeps | source |
//! | --- | --- | --- |
//! | `queue` | messages handed in, by stream; the send buffer | RFC 9260 §11.1.5 |
//! | `outstanding` | chunks that were sent, by TSN, and what is under way on each path | |
//! | `forwarding` | how far the peer is told to skip what was given up | RFC 3758 §3.5 |
//! | `gap_blocks` | what the peer reported beyond gaps | RFC 9260 §6.2.1 |
//! | `peer_window` | the peer's window, probes into a closed one | RFC 9260 §6.1, §6.2.1 |
//! | `multipath` | all paths at once | Iyengar et al. 2006, Dreibholz et al. 2010 |
//! | `rules` | what the user chose | |
//!
//! What needs several of them is a procedure:
//!
//! | file | procedure | source |
//! | --- | --- | --- |
//! | `handing_in` | a message taken or refused | RFC 9260 §11.1.5, RFC 7496 §3.2 |
//! | `fill` | a packet filled: retransmissions first, then new data | RFC 9260 §6.1, §6.10 |
//! | `fragmentation` | how much of a message goes into a chunk | RFC 9260 §6.9, RFC 8260 §2 |
//! | `acknowledgement` | SACK and NR-SACK | RFC 9260 §6.2.1 |
//! | `retransmission` | what becomes of lost chunks; T3 | RFC 9260 §6.3.3, §6.4.1 |
//! | `loss` | how losses are found | RFC 9260 §7.2.4, RFC 8985 |
//! | `partial_reliability` | messages given up, FORWARD-TSN | RFC 3758, RFC 7496, RFC 8260 §2.3 |
//! | `restart` | the peer came back without a memory | RFC 9260 §5.2.4 |
//! | `congestion_echo` | ECNE | RFC 9260 appendix A |
//!
//! A sum changes together with its parts, in the part that owns them. Builds with debug assertions, and tests, count
//! them all again (`audit`).

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
mod congestion_echo;
mod fill;
mod forwarding;
mod fragmentation;
mod gap_blocks;
mod handing_in;
mod loss;
mod multipath;
mod outstanding;
mod partial_reliability;
mod peer_window;
mod queue;
mod restart;
mod retransmission;
mod rules;
mod tally;
#[cfg(test)]
mod tests;

pub use acknowledgement::SackOutcome;
pub use queue::{AssociationQueueInfo, QueueInfo};
pub use retransmission::{Expired, TimeoutOutcome};

use forwarding::Forwarding;
use gap_blocks::Reported;
use multipath::Concurrent;
use outstanding::Outstanding;
use peer_window::PeerWindow;
use queue::SendQueue;
use rules::Rules;

/// What both sides agreed on, as far as it matters here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Terms {
    /// The TSN of our first chunk.
    pub initial_tsn: Tsn,
    /// The window that the peer advertised (`a_rwnd`), in bytes.
    pub peer_window: u32,
    /// Streams that may be sent on.
    pub outbound: u16,
    /// Whether I-DATA is used (RFC 8260).
    pub interleaving: bool,
    /// Whether the peer understands FORWARD-TSN or I-FORWARD-TSN.
    pub partial_reliability: bool,
    /// Bytes of every packet with data that something else takes: AUTH, if the peer wants data
    /// authenticated.
    pub reserved: usize,
}

impl Terms {
    /// Bytes of a chunk before its data.
    fn chunk_header(&self) -> usize {
        if self.interleaving { I_DATA_HEADER } else { DATA_HEADER }
    }

    /// Bytes of a packet that chunks with data cannot have.
    fn overhead(&self) -> usize {
        PACKET_HEADER + self.reserved
    }
}

/// The sending side of one association.
#[derive(Debug)]
pub struct Sender {
    terms: Terms,
    rules: Rules,
    queue: SendQueue,
    outstanding: Outstanding,
    /// What the peer reported beyond gaps.
    reported: Reported,
    peer_window: PeerWindow,
    forwarding: Forwarding,
    /// If several paths are used at once.
    multipath: Option<Box<Concurrent>>,
    /// Until which TSN ECNE chunks belong to a window that was cut already.
    congestion_echoed: Option<Tsn>,
    /// Whether the peer took nothing of what was sent so far.
    unheard: bool,
    #[cfg(any(test, debug_assertions))]
    audit: audit::Audit,
}

impl Sender {
    /// A sender with nothing to send.
    #[must_use]
    pub fn new(config: &AssociationConfig, terms: Terms) -> Self {
        let cuc = config.multipath.as_ref().map(|choices| choices.cuc);
        Self {
            terms,
            rules: Rules::new(config),
            queue: SendQueue::new(config, terms.interleaving),
            outstanding: Outstanding::new(terms.initial_tsn, cuc),
            reported: Reported::default(),
            peer_window: PeerWindow::new(terms.peer_window),
            forwarding: Forwarding::new(terms.initial_tsn),
            multipath: Concurrent::new(config),
            congestion_echoed: None,
            unheard: false,
            #[cfg(any(test, debug_assertions))]
            audit: audit::Audit::default(),
        }
    }

    /// Takes over what can be changed while it runs. Streams are scheduled anew, without their past.
    pub(crate) fn configure(&mut self, config: &AssociationConfig) {
        self.rules.configure(config);
        self.queue.configure(config);
        for (stream, value) in &config.stream_values {
            // Streams that there are not have no value.
            let _ = self.set_stream_value(*stream, *value);
        }
        self.note_room();
    }

    /// Changes the priority or weight of a stream (`SCTP_STREAM_SCHEDULER_VALUE`).
    ///
    /// # Errors
    /// If there is no such stream.
    pub fn set_stream_value(&mut self, stream: StreamId, value: u16) -> Result<(), Error> {
        if stream.0 >= self.terms.outbound {
            return Err(Error::NoSuchStream);
        }
        self.queue.set_stream_value(stream, value);
        Ok(())
    }

    /// What was agreed on.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// There are more streams to send on now, or fewer after a restart.
    pub fn set_outbound_streams(&mut self, outbound: u16) {
        self.terms.outbound = outbound;
    }

    /// The TSN of the next new chunk.
    #[must_use]
    pub fn next_tsn(&self) -> Tsn {
        self.outstanding.next()
    }

    /// Our last TSN that was used (`Sender's Last Assigned TSN`, RFC 6525 §4.1).
    #[must_use]
    pub fn last_assigned_tsn(&self) -> Tsn {
        self.outstanding.last()
    }

    /// The last TSN that the peer acknowledged cumulatively.
    #[must_use]
    pub fn cumulative_tsn_acked(&self) -> Tsn {
        self.outstanding.cumulative()
    }

    /// Bytes under way on all paths.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.outstanding.in_flight()
    }

    /// The window that the peer advertised last, less what is under way; in bytes.
    #[must_use]
    pub fn peer_window(&self) -> usize {
        self.peer_window.left(self.in_flight())
    }

    /// Whether several paths are used at once.
    #[must_use]
    pub fn is_multipath(&self) -> bool {
        self.multipath.is_some()
    }

    /// Something that the user is to be told.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.queue.poll_event()
    }

    /// What the send buffer holds, by stream.
    #[must_use]
    pub fn queue_info(&self) -> AssociationQueueInfo {
        self.queue.info(self.terms.outbound)
    }

    /// What a stream has in the send buffer.
    #[must_use]
    pub fn stream_queue(&self, stream: StreamId) -> QueueInfo {
        self.queue.info_of(stream)
    }

    /// Begins nothing new on these streams, those not used so far included; on all of them if the
    /// list is empty. What was begun goes on, and messages can still be handed in.
    pub fn pause_streams(&mut self, streams: &[StreamId]) {
        self.queue.pause(streams);
    }

    /// Whether no message of these streams is half sent, so that
    /// [`Self::last_assigned_tsn`] covers all that went out on them (RFC 6525 §5.1.2, A3).
    #[must_use]
    pub fn are_streams_quiet(&self, streams: &[StreamId]) -> bool {
        self.queue.is_quiet(streams)
    }

    /// The peer has reset these streams: their numbers start anew, and they go on.
    pub fn reset_streams(&mut self, streams: &[StreamId]) {
        self.queue.renumber(streams);
    }

    /// The reset of these streams did not come about: they go on as before.
    pub fn resume_streams(&mut self, streams: &[StreamId]) {
        self.queue.resume(streams);
    }

    /// Whether all that was handed in has been acknowledged or given up, and the peer knows.
    #[must_use]
    pub fn is_dry(&self) -> bool {
        self.queue.len() == 0 && self.outstanding.is_empty()
    }

    /// Tells of room, and of having nothing left, once for each time.
    fn note_room(&mut self) {
        self.queue.notify_writable();
        if self.is_dry() && self.queue.notify_dry() {
            self.outstanding.shrink();
        }
    }

    /// Counts the sums again, in builds with debug assertions.
    #[inline]
    fn check(&mut self) {
        #[cfg(any(test, debug_assertions))]
        self.audit_now_and_then();
    }
}
