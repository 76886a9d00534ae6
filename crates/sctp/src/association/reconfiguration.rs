//! Streams reset and added, TSNs reset (RFC 6525), for both sides.
//!
//! | file | job | source |
//! | --- | --- | --- |
//! | `asking` | our requests, and how they end | RFC 6525 §5.1, §5.2.7 |
//! | `answering` | the peer's requests | RFC 6525 §5.2 |
//!
//! One request of ours is under way at a time. It waits until it can be made: streams to be reset
//! are paused until none of their messages is half sent, TSNs until nothing is outstanding. The
//! same holds for what the peer asks: it is told that the request is in progress until all that
//! was sent before it has arrived, and gets its answer without asking again.
//!
//! The association hands in RE-CONFIG chunks, calls [`Reconfiguration::advance`] when data or
//! acknowledgements came, sends what [`Reconfiguration::poll_chunk`] gives, and calls
//! [`Reconfiguration::handle_timeout`] when [`Reconfiguration::next_timeout`] is due.

mod answering;
mod asking;

#[cfg(test)]
mod tests;

use alloc::collections::VecDeque;
use alloc::vec::Vec;
use core::time::Duration;

use crate::counters::Counters;
use crate::event::{Event, ReconfigurationOutcome};
use crate::identifier::{PathId, StreamId};
use crate::receive::Receiver;
use crate::send::Sender;
use crate::serial::{ReconfigurationNumber, Tsn};
use crate::wire::parameter::{ReconfigurationResponse, ReconfigurationResult};
use crate::wire::{Parameter, Parameters, ReconfigChunk};

/// The most streams that one request names; more of them can only be reset all together. A request
/// has to fit a packet of the smallest MTU of IPv6.
pub(crate) const MAX_STREAMS_NAMED: usize = 500;

/// The most requests that one RE-CONFIG chunk may hold (RFC 6525 §3.1); others are left out.
const MAX_REQUESTS: usize = 2;

/// The most answers that wait to be sent; the peer asks again for those that are left out.
const MAX_ANSWERS: usize = 4;

/// How often a request is made anew because the peer had one of its own under way.
const MAX_COLLISIONS: u32 = 5;

/// What can be asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Our streams are to start anew; all of them if none is named.
    ResetOutgoing(Vec<StreamId>),
    /// The peer's streams are to start anew; all of them if none is named.
    ResetIncoming(Vec<StreamId>),
    /// TSNs and streams of both sides are to start anew.
    ResetAssociation,
    /// More streams: for us to send on, for the peer to send on.
    AddStreams {
        /// Ours.
        outbound: u16,
        /// The peer's.
        inbound: u16,
    },
}

/// The two sides of the association's transfer, which are changed.
#[derive(Debug)]
pub(crate) struct Halves<'a> {
    pub(crate) sender: &'a mut Sender,
    pub(crate) receiver: &'a mut Receiver,
    /// The most streams that the peer may get to send on.
    pub(crate) max_inbound: u16,
}

/// Why a request is sent again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Again {
    /// The peer said nothing: that counts as an error of the path that the request was sent on
    /// (RFC 6525 §5.1.1).
    Unanswered,
    /// The peer asked for patience: that is no error (RFC 6525 §5.2.7, H2).
    AsAsked,
}

/// One request as it goes on the wire.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Task {
    /// `answers`: the peer's request that this fulfils.
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

impl Task {
    /// Whether all of these streams of ours start anew by it; no streams are all of them.
    fn resets(&self, wanted: &[StreamId]) -> bool {
        let Self::ResetOutgoing { streams, .. } = self else { return false };
        let named = |stream: &StreamId| streams.contains(stream);
        streams.is_empty() || (!wanted.is_empty() && wanted.iter().all(named))
    }
}

/// A request of ours that has been made.
#[derive(Debug)]
struct Asked {
    number: ReconfigurationNumber,
    task: Task,
    /// The last TSN that was used when it was made.
    last_assigned_tsn: Tsn,
    collisions: u32,
}

/// A request of the peer's that cannot be fulfilled yet.
#[derive(Debug)]
struct Deferred {
    number: ReconfigurationNumber,
    task: DeferredTask,
}

#[derive(Debug)]
enum DeferredTask {
    /// Until everything up to the TSN has arrived.
    ResetIncoming { last_assigned_tsn: Tsn, streams: Vec<StreamId> },
    /// Until nothing of ours is outstanding.
    ResetAssociation,
}

/// The re-configuration of one association.
#[derive(Debug)]
pub(crate) struct Reconfiguration {
    /// The number of our next request.
    next: ReconfigurationNumber,
    /// The number of the peer's next request.
    expected: ReconfigurationNumber,
    /// What is to be asked as soon as it can be.
    wanted: VecDeque<Task>,
    asked: Vec<Asked>,
    /// Whether what is asked has to be sent.
    due: bool,
    timer: Option<Duration>,
    /// Whether the timer runs because the peer asked for patience.
    is_patient: bool,
    asked_on: Option<PathId>,
    deferred: Option<Deferred>,
    /// The answers to the peer's last requests.
    answered: VecDeque<ReconfigurationResponse>,
    answers: VecDeque<ReconfigurationResponse>,
    events: VecDeque<Event>,
}

impl Reconfiguration {
    /// With the initial TSNs of both sides, which number the requests, too (RFC 6525 §4.1).
    pub(crate) fn new(own_initial_tsn: Tsn, peer_initial_tsn: Tsn) -> Self {
        Self {
            next: ReconfigurationNumber(own_initial_tsn.0),
            expected: ReconfigurationNumber(peer_initial_tsn.0),
            wanted: VecDeque::new(),
            asked: Vec::new(),
            due: false,
            timer: None,
            is_patient: false,
            asked_on: None,
            deferred: None,
            answered: VecDeque::new(),
            answers: VecDeque::new(),
            events: VecDeque::new(),
        }
    }

    /// Whether something waits for data or acknowledgements.
    #[inline]
    pub(crate) fn waits(&self) -> bool {
        self.deferred.is_some() || !self.wanted.is_empty()
    }

    /// The path that our requests were sent on last.
    pub(crate) fn asked_on(&self) -> Option<PathId> {
        self.asked_on
    }

    /// Whether a request of ours is under way or waits.
    pub(crate) fn is_busy(&self) -> bool {
        !self.asked.is_empty() || !self.wanted.is_empty()
    }

    /// What the user is to hear of.
    pub(crate) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop_front()
    }

    /// When to ask again.
    pub(crate) fn next_timeout(&self) -> Option<Duration> {
        self.timer
    }

    /// Whether a request is to be sent again, and why.
    pub(crate) fn handle_timeout(&mut self, now: Duration) -> Option<Again> {
        if self.timer.is_none_or(|timer| timer > now) {
            return None;
        }
        self.timer = None;
        self.due = !self.asked.is_empty();
        let why = if self.is_patient { Again::AsAsked } else { Again::Unanswered };
        self.due.then_some(why)
    }

    /// A RE-CONFIG chunk came; `rto` is how long to wait if the peer asks for patience.
    pub(crate) fn handle_chunk(
        &mut self,
        now: Duration,
        rto: Duration,
        chunk: &ReconfigChunk,
        halves: &mut Halves<'_>,
        counters: &mut Counters,
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

    /// Data or acknowledgements came: does what waited for them.
    pub(crate) fn advance(&mut self, halves: &mut Halves<'_>) {
        self.advance_deferred(halves);
        self.advance_wanted(halves);
    }

    /// A chunk to be sent now on `path`. The timer runs from now on if it holds requests of ours.
    pub(crate) fn poll_chunk(
        &mut self,
        now: Duration,
        rto: Duration,
        path: PathId,
    ) -> Option<ReconfigChunk> {
        if !self.answers.is_empty() {
            let count = self.answers.len().min(MAX_REQUESTS);
            let answers = self.answers.drain(..count);
            let parameters = answers.map(Parameter::ReconfigurationResponse).collect();
            return Some(ReconfigChunk { parameters });
        }
        if !self.due {
            return None;
        }
        self.due = false;
        self.timer = Some(now + rto);
        self.is_patient = false;
        self.asked_on = Some(path);
        let last_of_peer = ReconfigurationNumber(self.expected.0.wrapping_sub(1));
        let parameters: Parameters =
            self.asked.iter().map(|asked| asked.parameter(last_of_peer)).collect();
        Some(ReconfigChunk { parameters })
    }

    fn answer(&mut self, response: ReconfigurationResponse) {
        if self.answers.len() < MAX_ANSWERS {
            self.answers.push_back(response);
        }
    }
}

/// What the user hears of an answer.
fn outcome_of(result: ReconfigurationResult) -> ReconfigurationOutcome {
    match result {
        ReconfigurationResult::Performed | ReconfigurationResult::NothingToDo => {
            ReconfigurationOutcome::Performed
        }
        ReconfigurationResult::Denied => ReconfigurationOutcome::Denied,
        _ => ReconfigurationOutcome::Failed,
    }
}
