//! The sending side of an association: from a message that is handed in to its acknowledgement.
//!
//! | file | job | source |
//! | --- | --- | --- |
//! | `queue` | messages handed in; the send buffer, full and writable | RFC 9260 §11.1.5 |
//! | `messages`, `streams` | what is kept for a message, for a stream | |
//! | `fill` | a packet filled: retransmissions first, then new data | RFC 9260 §6.1, §6.10 |
//! | `fragmentation` | how much of a message goes into a chunk | RFC 9260 §6.9, RFC 8260 §2 |
//! | `outstanding` | chunks that were sent, by TSN | |
//! | `flight` | what is under way on one path | |
//! | `acknowledgement`, `gap_blocks` | SACK and NR-SACK | RFC 9260 §6.2.1 |
//! | `retransmission` | what becomes of lost chunks; T3 | RFC 9260 §6.3.3, §6.4.1 |
//! | `loss` | how losses are found | RFC 9260 §7.2.4, RFC 8985 |
//! | `peer_window` | the peer's window, probes into a closed one | RFC 9260 §6.1, §6.2.1 |
//! | `partial_reliability` | messages given up, FORWARD-TSN | RFC 3758, RFC 7496, RFC 8260 §2.3 |
//! | `lifetime` | messages that wait for too long | RFC 3758 §4.1 |
//! | `stream_reset` | streams stopped, renumbered, resumed | RFC 6525 §5.1 |
//! | `restart` | the peer came back without a memory | RFC 9260 §5.2.4 |
//! | `congestion_echo` | ECNE | RFC 9260 appendix A |
//! | `queue_info` | what is queued, by stream | draft-dreibholz-tsvwg-sctpsocket-sqinfo |
//! | `multipath` | all paths at once | Iyengar et al. 2006, Dreibholz et al. 2010 |

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::cmt::RttSampling;
use crate::config::{AssociationConfig, LossDetection, SchedulerKind};
use crate::event::Event;
use crate::identifier::{PathId, StreamId};
use crate::scheduler::{self, Scheduler, StreamSlot};
use crate::serial::Tsn;
use crate::wire::chunk::{DATA_HEADER, I_DATA_HEADER};

mod acknowledgement;
mod congestion_echo;
mod fill;
mod flight;
mod fragmentation;
mod gap_blocks;
mod lifetime;
mod loss;
mod messages;
mod multipath;
mod outstanding;
mod partial_reliability;
mod peer_window;
mod queue;
mod queue_info;
mod restart;
mod retransmission;
mod stream_reset;
mod streams;
#[cfg(test)]
mod tests;

pub use acknowledgement::SackOutcome;
pub use queue_info::{AssociationQueueInfo, QueueInfo};
pub use retransmission::{Expired, TimeoutOutcome};

use flight::Flight;
use gap_blocks::Reported;
use messages::Messages;
use multipath::Concurrent;
use outstanding::Outstanding;
use peer_window::PeerWindow;
use streams::Streams;

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

/// How many messages may wait in a send buffer of so many bytes.
fn most_messages(send_buffer: usize) -> u32 {
    let most = (send_buffer / queue::LEAST_SHARE).max(queue::MIN_MESSAGES);
    u32::try_from(most).unwrap_or(u32::MAX)
}

/// The sending side of one association.
#[derive(Debug)]
pub struct Sender {
    terms: Terms,
    send_buffer: usize,
    /// What of the send buffer may be used for now.
    allowance: u32,
    max_messages: u32,
    nagle: bool,
    /// Bytes of a chunk's data at most; more than any holds where nothing was said.
    max_segment: u16,
    sack_delay: Duration,
    detection: LossDetection,
    rtt_sampling: RttSampling,
    suspects_silence: bool,
    asks_for_sacks: bool,
    /// If several paths are used at once.
    multipath: Option<Box<Concurrent>>,
    scheduler_kind: SchedulerKind,
    stream_values: Vec<(StreamId, u16)>,

    messages: Messages,
    streams: Streams,
    scheduler: Box<dyn Scheduler>,
    /// The stream whose message was begun and must be ended before another one begins: without
    /// interleaving, the fragments of a message have consecutive TSNs.
    current: Option<StreamSlot>,
    outstanding: Outstanding,
    /// One for each path that was ever sent on; chunks refer to them by index.
    flights: Vec<Flight>,
    /// What the peer reported beyond gaps.
    reported: Reported,
    peer_window: PeerWindow,

    /// Bytes of user data in the send buffer, sent or not.
    queued: usize,
    /// Those of them that are in no chunk yet.
    unsent: usize,
    /// Bytes under way on all paths.
    in_flight: usize,
    /// Messages with a lifetime, and with a priority, that are kept.
    timed: usize,
    prioritised: usize,
    /// When the first lifetime of a message ends of which nothing was sent, at the earliest.
    next_deadline: Option<Duration>,

    /// All up to here is acknowledged or given up (RFC 3758 §3.5, `Advanced.Peer.Ack.Point`).
    advanced_peer_ack_point: Tsn,
    /// Whether a FORWARD-TSN is to be sent.
    forward_tsn_due: bool,
    /// When the last one was sent, and on which path.
    forwarded: Option<(PathId, Duration)>,
    /// Whether the peer took nothing of what was sent so far.
    unheard: bool,
    /// Until which TSN ECNE chunks belong to a window that was cut already.
    congestion_echoed: Option<Tsn>,

    events: VecDeque<Event>,
    /// The length of the message that was refused for want of room.
    refused: Option<usize>,
    /// Whether something was handed in since all was acknowledged.
    busy: bool,
}

impl Sender {
    /// A sender with nothing to send.
    #[must_use]
    pub fn new(config: &AssociationConfig, terms: Terms) -> Self {
        let mut stream_values = config.stream_values.clone();
        stream_values.sort_by_key(|(stream, _)| *stream);
        Self {
            terms,
            send_buffer: config.send_buffer.max(1),
            allowance: u32::MAX,
            max_messages: most_messages(config.send_buffer),
            nagle: config.nagle,
            max_segment: config.max_segment.map_or(u16::MAX, |most| most.max(4)),
            sack_delay: config.sack_delay,
            detection: config.loss_detection,
            rtt_sampling: config.rtt_sampling,
            suspects_silence: config.suspect_silent_paths,
            asks_for_sacks: config.ask_for_sacks,
            multipath: Concurrent::new(config),
            scheduler_kind: config.scheduler,
            stream_values,
            messages: Messages::new(),
            streams: Streams::default(),
            scheduler: scheduler::new(config.scheduler, terms.interleaving),
            current: None,
            outstanding: Outstanding::new(terms.initial_tsn),
            flights: Vec::new(),
            reported: Reported::default(),
            peer_window: PeerWindow::new(terms.peer_window),
            queued: 0,
            unsent: 0,
            in_flight: 0,
            timed: 0,
            next_deadline: None,
            prioritised: 0,
            advanced_peer_ack_point: terms.initial_tsn.previous(),
            forward_tsn_due: false,
            forwarded: None,
            unheard: false,
            congestion_echoed: None,
            events: VecDeque::new(),
            refused: None,
            busy: false,
        }
    }

    /// What was agreed on.
    #[must_use]
    pub fn terms(&self) -> &Terms {
        &self.terms
    }

    /// The TSN of the next new chunk.
    #[must_use]
    pub fn next_tsn(&self) -> Tsn {
        self.outstanding.next()
    }

    /// The last TSN that the peer acknowledged cumulatively.
    #[must_use]
    pub fn cumulative_tsn_acked(&self) -> Tsn {
        self.outstanding.first().previous()
    }

    /// Bytes under way on all paths.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Something that the user is to be told.
    pub fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Bytes of a chunk before its data.
    fn chunk_header(&self) -> usize {
        if self.terms.interleaving { I_DATA_HEADER } else { DATA_HEADER }
    }

    /// The number of the flight of a path, made if there is none. At most [`flight::MAX_FLIGHTS`]
    /// paths at a time have one.
    fn flight_of(&mut self, path: PathId) -> Option<u8> {
        if let Some(known) = self.flights.iter().position(|flight| flight.path == Some(path)) {
            return u8::try_from(known).ok();
        }
        if let Some(free) = self.flights.iter().position(|flight| flight.path.is_none()) {
            self.flights[free].reuse(path);
            return u8::try_from(free).ok();
        }
        if self.flights.len() >= flight::MAX_FLIGHTS {
            return None;
        }
        // As a rule there is one path: no room is made for more.
        self.flights.reserve_exact(1);
        // Most associations have one path, and many associations are idle.
        self.flights.reserve_exact(1);
        self.flights.push(Flight::new(path));
        u8::try_from(self.flights.len() - 1).ok()
    }

    /// The flight of a path, if something was ever sent on it.
    fn flight(&self, path: PathId) -> Option<&Flight> {
        self.flights.iter().find(|flight| flight.path == Some(path))
    }
}
