//! The peer's requests (RFC 6525 §5.2).
//!
//! A repeated request gets the same response again. Requests that need one of ours in turn, to
//! reset our streams or to add some, are accepted if none of ours is queued; ours is sent once the
//! outstanding one has been answered, so requests may cross.

use alloc::boxed::Box;
use alloc::vec::Vec;

use super::requests::is_idle;
use super::{
    DeferredRequest, DeferredTask, ReconfigurationState, ReconfigurationTask, SenderAndReceiver,
};
use crate::counters::EndpointCounters;
use crate::event::{Event, ReconfigurationOutcome};
use crate::identifier::StreamId;
use crate::serial::{ReconfigurationNumber, Tsn};
use crate::wire::Parameter;
use crate::wire::parameter::{
    AddStreams, IncomingSsnReset, OutgoingSsnReset, ReconfigurationResponse, ReconfigurationResult,
    StreamList,
};

/// The maximum number of stored responses: as many as one chunk can ask for.
const MAX_STORED: usize = super::MAX_REQUESTS;

/// How far the peer's TSNs jump on an association reset (RFC 6525 §5.2.4).
const PEER_JUMP: u32 = 1 << 31;

/// How far our TSNs jump. Data sent then may overtake our response; it must not be taken for data
/// from before the reset, which the peer would acknowledge and discard.
const OWN_JUMP: u32 = 1 << 30;

/// Returns the streams that are named, unless one of them does not exist.
fn named(list: &StreamList, count: u16) -> Option<Vec<StreamId>> {
    let mut streams: Vec<StreamId> = list.iter().collect();
    streams.sort_unstable();
    streams.dedup();
    streams.last().is_none_or(|last| last.0 < count).then_some(streams)
}

fn response(
    number: ReconfigurationNumber,
    result: ReconfigurationResult,
) -> ReconfigurationResponse {
    ReconfigurationResponse { response: number, result, next_tsns: None }
}

impl ReconfigurationState {
    pub(super) fn handle_request(
        &mut self,
        request: &Parameter,
        halves: &mut SenderAndReceiver<'_>,
        counters: &mut EndpointCounters,
    ) {
        let number = match request {
            Parameter::OutgoingSsnReset(OutgoingSsnReset { request, .. })
            | Parameter::IncomingSsnReset(IncomingSsnReset { request, .. })
            | Parameter::SsnTsnReset { request }
            | Parameter::AddOutgoingStreams(AddStreams { request, .. })
            | Parameter::AddIncomingStreams(AddStreams { request, .. }) => *request,
            _ => {
                counters.malformed_chunks += 1;
                return;
            }
        };
        if number != self.expected {
            let before =
                self.past_responses.iter().find(|response| response.response == number).copied();
            let bad = response(number, ReconfigurationResult::BadSequenceNumber);
            counters.unexpected_chunks += u64::from(before.is_none());
            return self.queue_response(before.unwrap_or(bad));
        }
        if self.is_resetting_for_peer() {
            halves.sender.resume_streams(&[]);
        }
        self.deferred = None;
        let response = match request {
            Parameter::OutgoingSsnReset(reset) => self.handle_outgoing_reset(reset, halves),
            Parameter::IncomingSsnReset(reset) => self.handle_incoming_reset(reset, halves),
            Parameter::AddOutgoingStreams(add) => self.handle_add_outgoing(*add, halves),
            Parameter::AddIncomingStreams(add) => self.handle_add_incoming(*add, halves),
            _ => self.handle_association_reset(number, halves),
        };
        self.respond(response);
    }

    /// Sends a response, and stores it if it is final.
    fn respond(&mut self, response: ReconfigurationResponse) {
        if response.result != ReconfigurationResult::InProgress {
            self.expected = response.response.next();
            if self.past_responses.len() >= MAX_STORED {
                self.past_responses.pop_front();
            }
            self.past_responses.push_back(response);
        }
        self.queue_response(response);
    }

    /// Performs the deferred request if possible, and responds to the peer.
    pub(super) fn advance_deferred(&mut self, halves: &mut SenderAndReceiver<'_>) {
        let Some(deferred) = self.deferred.take() else { return };
        let number = deferred.number;
        let response = match deferred.task {
            DeferredTask::ResetIncoming { last_assigned_tsn, streams } => {
                self.reset_incoming(number, last_assigned_tsn, streams, halves)
            }
            DeferredTask::ResetAssociation => self.handle_association_reset(number, halves),
        };
        if response.result != ReconfigurationResult::InProgress {
            self.respond(response);
        }
    }

    /// Resets the peer's streams once all data sent on them has arrived (RFC 6525 §5.2.2).
    fn handle_outgoing_reset(
        &mut self,
        reset: &OutgoingSsnReset,
        halves: &mut SenderAndReceiver<'_>,
    ) -> ReconfigurationResponse {
        let fulfils = reset.response;
        self.fulfilled(|outstanding| {
            outstanding.number == fulfils
                && matches!(outstanding.task, ReconfigurationTask::ResetIncoming { .. })
        });
        let Some(streams) = named(&reset.streams, halves.receiver.inbound_streams()) else {
            return response(reset.request, ReconfigurationResult::WrongSsn);
        };
        self.reset_incoming(reset.request, reset.last_assigned_tsn, streams, halves)
    }

    fn reset_incoming(
        &mut self,
        number: ReconfigurationNumber,
        last_assigned_tsn: Tsn,
        streams: Vec<StreamId>,
        halves: &mut SenderAndReceiver<'_>,
    ) -> ReconfigurationResponse {
        if halves.receiver.cumulative_tsn().is_before(last_assigned_tsn) {
            let task = DeferredTask::ResetIncoming { last_assigned_tsn, streams };
            self.deferred = Some(Box::new(DeferredRequest { number, task }));
            return response(number, ReconfigurationResult::InProgress);
        }
        halves.receiver.reset_streams(&streams);
        let outcome = ReconfigurationOutcome::Performed;
        self.events.push_back(Event::StreamsReset { outgoing: false, streams, outcome });
        response(number, ReconfigurationResult::Performed)
    }

    /// Handles a request to reset our streams: queues a request of ours, unless an outstanding one
    /// already covers it (RFC 6525 §5.2.3).
    fn handle_incoming_reset(
        &mut self,
        reset: &IncomingSsnReset,
        halves: &mut SenderAndReceiver<'_>,
    ) -> ReconfigurationResponse {
        let number = reset.request;
        let Some(streams) = named(&reset.streams, halves.sender.terms().outbound) else {
            return response(number, ReconfigurationResult::WrongSsn);
        };
        if self.outstanding.iter().any(|outstanding| outstanding.task.resets(&streams)) {
            return response(number, ReconfigurationResult::NothingToDo);
        }
        if !self.queued.is_empty() {
            return response(number, ReconfigurationResult::RequestInProgress);
        }
        halves.sender.pause_streams(&streams);
        self.queued
            .push_back(ReconfigurationTask::ResetOutgoing { streams, answers: Some(number) });
        response(number, ReconfigurationResult::Performed)
    }

    /// Resets the TSNs and the streams of both sides once none of our data is outstanding (RFC 6525
    /// §5.2.4).
    fn handle_association_reset(
        &mut self,
        number: ReconfigurationNumber,
        halves: &mut SenderAndReceiver<'_>,
    ) -> ReconfigurationResponse {
        if self.is_busy() {
            return response(number, ReconfigurationResult::RequestInProgress);
        }
        let next = halves.sender.next_tsn().plus(OWN_JUMP);
        if !is_idle(halves.sender) || !halves.sender.reset_tsns(next) {
            halves.sender.pause_streams(&[]);
            let task = DeferredTask::ResetAssociation;
            self.deferred = Some(Box::new(DeferredRequest { number, task }));
            return response(number, ReconfigurationResult::InProgress);
        }
        let expected = halves.receiver.cumulative_tsn().next().plus(PEER_JUMP);
        halves.receiver.reset_tsns(expected);
        self.report_association_reset(ReconfigurationOutcome::Performed, halves);
        ReconfigurationResponse {
            response: number,
            result: ReconfigurationResult::Performed,
            next_tsns: Some((next, expected)),
        }
    }

    /// Handles the peer's request to send on more streams (RFC 6525 §5.2.5).
    fn handle_add_outgoing(
        &mut self,
        add: AddStreams,
        halves: &mut SenderAndReceiver<'_>,
    ) -> ReconfigurationResponse {
        self.fulfilled(|outstanding| {
            matches!(outstanding.task, ReconfigurationTask::AddIncoming(_))
        });
        let sum = halves.receiver.inbound_streams().checked_add(add.count);
        match sum.filter(|sum| *sum <= halves.max_inbound) {
            _ if add.count == 0 => response(add.request, ReconfigurationResult::NothingToDo),
            None => response(add.request, ReconfigurationResult::Denied),
            Some(sum) => {
                halves.receiver.set_inbound_streams(sum);
                self.report_streams_added(halves, ReconfigurationOutcome::Performed);
                response(add.request, ReconfigurationResult::Performed)
            }
        }
    }

    /// Handles the peer's request that we send on more streams: queues a request of ours (RFC 6525
    /// §5.2.6).
    fn handle_add_incoming(
        &mut self,
        add: AddStreams,
        halves: &mut SenderAndReceiver<'_>,
    ) -> ReconfigurationResponse {
        let number = add.request;
        if add.count == 0 {
            return response(number, ReconfigurationResult::NothingToDo);
        }
        if halves.sender.terms().outbound.checked_add(add.count).is_none() {
            return response(number, ReconfigurationResult::Denied);
        }
        if !self.queued.is_empty() {
            return response(number, ReconfigurationResult::RequestInProgress);
        }
        self.queued.push_back(ReconfigurationTask::AddOutgoing(add.count));
        response(number, ReconfigurationResult::Performed)
    }
}
