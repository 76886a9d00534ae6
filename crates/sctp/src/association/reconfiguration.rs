//! Stream reset, stream addition and association reset (RFC 6525), for both sides.
//!
//! | file | purpose | source |
//! | --- | --- | --- |
//! | `requests` | our requests, and how they end | RFC 6525 §5.1, §5.2.7 |
//! | `responses` | the peer's requests | RFC 6525 §5.2 |
//!
//! One request of ours is outstanding at a time. It waits until it can be sent: for streams to be
//! reset, until they are paused with no message partly sent; for TSNs, until nothing is
//! outstanding. The same holds for the peer's requests: the response is "in progress" until all
//! data sent before the request has arrived, and the final response follows without another
//! request.
//!
//! The association passes RE-CONFIG chunks, calls [`ReconfigurationState::advance`] after data or
//! acknowledgements, sends what [`ReconfigurationState::poll_chunk`] returns, and calls
//! [`ReconfigurationState::handle_timeout`] when [`ReconfigurationState::next_timeout`] is due.

mod requests;
mod responses;

#[cfg(test)]
mod tests;

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::counters::EndpointCounters;
use crate::event::{Event, ReconfigurationOutcome};
use crate::identifier::{PathId, StreamId};
use crate::receive::AssociationReceiver;
use crate::send::AssociationSender;
use crate::serial::{ReconfigurationNumber, Tsn};
use crate::wire::parameter::{ReconfigurationResponse, ReconfigurationResult};
use crate::wire::{Parameter, Parameters, ReconfigChunk};

/// The maximum number of streams that one request names; larger sets can only be reset all
/// together. A request has to fit a packet of the minimum MTU of IPv6.
pub(crate) const MAX_STREAMS_NAMED: usize = 500;

/// The maximum number of requests in one RE-CONFIG chunk (RFC 6525 §3.1); further ones are ignored.
const MAX_REQUESTS: usize = 2;

/// The maximum number of queued responses; the peer repeats requests whose response was dropped.
const MAX_ANSWERS: usize = 4;

/// The maximum number of times that a request is repeated because the peer had an outstanding
/// request of its own.
const MAX_COLLISIONS: u32 = 5;

/// A request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReconfigurationRequest {
    /// Reset our streams, or all of them if none is named.
    ResetOutgoing(Vec<StreamId>),
    /// Reset the peer's streams, or all of them if none is named.
    ResetIncoming(Vec<StreamId>),
    /// Reset the TSNs and the streams of both sides.
    ResetAssociation,
    /// Add streams.
    AddStreams {
        /// Streams for us to send on.
        outbound: u16,
        /// Streams for the peer to send on.
        inbound: u16,
    },
}

/// The sender and the receiver of the association.
#[derive(Debug)]
pub(crate) struct SenderAndReceiver<'a> {
    pub(crate) sender: &'a mut AssociationSender,
    pub(crate) receiver: &'a mut AssociationReceiver,
    /// The maximum number of streams that the peer may get to send on.
    pub(crate) max_inbound: u16,
}

/// Why a request is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ResendReason {
    /// The peer did not respond: that counts as an error of the path that the request was sent on
    /// (RFC 6525 §5.1.1).
    TimedOut,
    /// The peer responded "in progress": that is no error (RFC 6525 §5.2.7, H2).
    InProgress,
}

/// One request, as sent.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ReconfigurationTask {
    /// `answers` is the peer's request that this one fulfils.
    ResetOutgoing {
        streams: Vec<StreamId>,
        answers: Option<ReconfigurationNumber>,
    },
    ResetIncoming {
        streams: Vec<StreamId>,
    },
    ResetAssociation,
    AddOutgoing(u16),
    AddIncoming(u16),
}

impl ReconfigurationTask {
    /// Returns whether this resets all of these streams of ours; an empty slice means all streams.
    fn resets(&self, wanted: &[StreamId]) -> bool {
        let Self::ResetOutgoing { streams, .. } = self else { return false };
        let named = |stream: &StreamId| streams.contains(stream);
        streams.is_empty() || (!wanted.is_empty() && wanted.iter().all(named))
    }
}

/// An outstanding request of ours.
#[derive(Debug)]
struct OutstandingRequest {
    number: ReconfigurationNumber,
    task: ReconfigurationTask,
    /// The last TSN assigned when it was created.
    last_assigned_tsn: Tsn,
    collisions: u32,
}

/// A request of the peer that cannot be performed yet.
#[derive(Debug)]
struct DeferredRequest {
    number: ReconfigurationNumber,
    task: DeferredTask,
}

#[derive(Debug)]
enum DeferredTask {
    /// Waits until everything up to the TSN has arrived.
    ResetIncoming { last_assigned_tsn: Tsn, streams: Vec<StreamId> },
    /// Waits until none of our data is outstanding.
    ResetAssociation,
}

/// The re-configuration of one association.
#[derive(Debug)]
pub(crate) struct ReconfigurationState {
    /// The sequence number of our next request.
    next: ReconfigurationNumber,
    /// The sequence number of the peer's next request.
    expected: ReconfigurationNumber,
    /// Queued requests.
    queued: VecDeque<ReconfigurationTask>,
    outstanding: Vec<OutstandingRequest>,
    /// Whether the outstanding requests have to be sent.
    due: bool,
    timer: Option<Duration>,
    /// Whether the timer runs because the peer responded "in progress".
    is_in_progress: bool,
    requests_sent_on: Option<PathId>,
    /// Boxed because it is rare.
    deferred: Option<Box<DeferredRequest>>,
    /// The responses to the peer's last requests.
    past_responses: VecDeque<ReconfigurationResponse>,
    responses: VecDeque<ReconfigurationResponse>,
    events: VecDeque<Event>,
}

impl ReconfigurationState {
    /// Creates the state from the initial TSNs of both sides, which also number the requests (RFC
    /// 6525 §4.1).
    pub(crate) fn new(own_initial_tsn: Tsn, peer_initial_tsn: Tsn) -> Self {
        Self {
            next: ReconfigurationNumber(own_initial_tsn.0),
            expected: ReconfigurationNumber(peer_initial_tsn.0),
            queued: VecDeque::new(),
            outstanding: Vec::new(),
            due: false,
            timer: None,
            is_in_progress: false,
            requests_sent_on: None,
            deferred: None,
            past_responses: VecDeque::new(),
            responses: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Returns whether a request waits for data or acknowledgements.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        self.deferred.is_some() || !self.queued.is_empty()
    }

    /// Returns the path that our requests were last sent on.
    pub(crate) fn requests_sent_on(&self) -> Option<PathId> {
        self.requests_sent_on
    }

    /// Returns whether a request of ours is outstanding or queued.
    pub(crate) fn is_busy(&self) -> bool {
        !self.outstanding.is_empty() || !self.queued.is_empty()
    }

    /// Returns the next event for the user.
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// Returns when to send the requests again.
    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        self.timer
    }

    /// Returns why outstanding requests have to be sent again, if they have.
    pub(crate) fn handle_timeout(&mut self, now: Duration) -> Option<ResendReason> {
        if self.timer.is_none_or(|timer| timer > now) {
            return None;
        }
        self.timer = None;
        self.due = !self.outstanding.is_empty();
        let why =
            if self.is_in_progress { ResendReason::InProgress } else { ResendReason::TimedOut };
        self.due.then_some(why)
    }

    /// Handles a RE-CONFIG chunk; `rto` is how long to wait if the response is "in progress".
    pub(crate) fn handle_chunk(
        &mut self,
        now: Duration,
        rto: Duration,
        chunk: &ReconfigChunk,
        halves: &mut SenderAndReceiver<'_>,
        counters: &mut EndpointCounters,
    ) {
        let mut parameters = chunk.parameters.iter();
        for parameter in parameters.by_ref().take(MAX_REQUESTS) {
            match parameter {
                Parameter::ReconfigurationResponse(response) => {
                    self.handle_response(now + rto, &response, halves, counters);
                }
                parameter => self.handle_request(&parameter, halves, counters),
            }
        }
        if parameters.next().is_some() {
            counters.malformed_chunks += 1;
        }
        self.advance(halves);
    }

    /// Continues the requests that waited for data or acknowledgements.
    pub(crate) fn advance(&mut self, halves: &mut SenderAndReceiver<'_>) {
        self.advance_deferred(halves);
        self.advance_queued(halves);
    }

    /// Returns a chunk to send now on `path`. Starts the timer if it contains requests of ours.
    pub(crate) fn poll_chunk(
        &mut self,
        now: Duration,
        rto: Duration,
        path: PathId,
    ) -> Option<ReconfigChunk> {
        if !self.responses.is_empty() {
            let count = self.responses.len().min(MAX_REQUESTS);
            let responses = self.responses.drain(..count);
            let parameters = responses.map(Parameter::ReconfigurationResponse).collect();
            return Some(ReconfigChunk { parameters });
        }
        if !self.due {
            return None;
        }
        self.due = false;
        self.timer = Some(now + rto);
        self.is_in_progress = false;
        self.requests_sent_on = Some(path);
        let last_of_peer = ReconfigurationNumber(self.expected.0.wrapping_sub(1));
        let parameters: Parameters = self
            .outstanding
            .iter()
            .map(|outstanding| outstanding.parameter(last_of_peer))
            .collect();
        Some(ReconfigChunk { parameters })
    }

    fn queue_response(&mut self, response: ReconfigurationResponse) {
        if self.responses.len() < MAX_ANSWERS {
            self.responses.push_back(response);
        }
    }
}

/// Converts a result for the user.
fn outcome_of(result: ReconfigurationResult) -> ReconfigurationOutcome {
    match result {
        ReconfigurationResult::Performed | ReconfigurationResult::NothingToDo => {
            ReconfigurationOutcome::Performed
        }
        ReconfigurationResult::Denied => ReconfigurationOutcome::Denied,
        _ => ReconfigurationOutcome::Failed,
    }
}
