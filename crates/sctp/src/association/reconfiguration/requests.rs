//! Our requests (RFC 6525 §5.1), and the peer's responses (§5.2.7).

use alloc::vec::Vec;
use core::time::Duration;

use super::{
    DeferredTask, MAX_COLLISIONS, MAX_STREAMS_NAMED, OutstandingRequest, ReconfigurationRequest,
    ReconfigurationState, ReconfigurationTask, SenderAndReceiver, outcome_of,
};
use crate::counters::EndpointCounters;
use crate::error::Error;
use crate::event::{Event, ReconfigurationOutcome};
use crate::identifier::StreamId;
use crate::send::AssociationSender;
use crate::serial::ReconfigurationNumber;
use crate::wire::Parameter;
use crate::wire::parameter::{
    AddStreams, IncomingSsnReset, OutgoingSsnReset, ReconfigurationResponse, ReconfigurationResult,
    StreamList,
};

impl OutstandingRequest {
    /// Returns the request's parameter; `last_of_peer` is the number of the last request received.
    pub(super) fn parameter(&self, last_of_peer: ReconfigurationNumber) -> Parameter {
        let request = self.number;
        match &self.task {
            ReconfigurationTask::ResetOutgoing { streams, answers } => {
                Parameter::OutgoingSsnReset(OutgoingSsnReset {
                    request,
                    response: answers.unwrap_or(last_of_peer),
                    last_assigned_tsn: self.last_assigned_tsn,
                    streams: StreamList::new(streams),
                })
            }
            ReconfigurationTask::ResetIncoming { streams } => {
                Parameter::IncomingSsnReset(IncomingSsnReset {
                    request,
                    streams: StreamList::new(streams),
                })
            }
            ReconfigurationTask::ResetAssociation => Parameter::SsnTsnReset { request },
            ReconfigurationTask::AddOutgoing(count) => {
                Parameter::AddOutgoingStreams(AddStreams { request, count: *count })
            }
            ReconfigurationTask::AddIncoming(count) => {
                Parameter::AddIncomingStreams(AddStreams { request, count: *count })
            }
        }
    }
}

/// Returns the streams sorted and without duplicates.
fn sorted_unique(mut streams: Vec<StreamId>, count: u16) -> Result<Vec<StreamId>, Error> {
    streams.sort_unstable();
    streams.dedup();
    if streams.last().is_some_and(|last| last.0 >= count) {
        return Err(Error::NoSuchStream);
    }
    if streams.len() > MAX_STREAMS_NAMED {
        return Err(Error::TooManyStreams { limit: MAX_STREAMS_NAMED });
    }
    Ok(streams)
}

/// Returns whether all data has been acknowledged.
pub(super) fn is_idle(sender: &AssociationSender) -> bool {
    sender.cumulative_tsn_acked() == sender.last_assigned_tsn() && sender.are_streams_quiet(&[])
}

impl ReconfigurationState {
    /// Queues a request; an event reports the outcome.
    pub(crate) fn submit(
        &mut self,
        request: ReconfigurationRequest,
        halves: &mut SenderAndReceiver<'_>,
    ) -> Result<(), Error> {
        if self.is_busy() || self.is_resetting_for_peer() {
            return Err(Error::Busy);
        }
        let (outbound, inbound) =
            (halves.sender.terms().outbound, halves.receiver.inbound_streams());
        match request {
            ReconfigurationRequest::ResetOutgoing(streams) => {
                let streams = sorted_unique(streams, outbound)?;
                halves.sender.pause_streams(&streams);
                self.queued
                    .push_back(ReconfigurationTask::ResetOutgoing { streams, answers: None });
            }
            ReconfigurationRequest::ResetIncoming(streams) => {
                let streams = sorted_unique(streams, inbound)?;
                self.queued.push_back(ReconfigurationTask::ResetIncoming { streams });
            }
            ReconfigurationRequest::ResetAssociation => {
                halves.sender.pause_streams(&[]);
                self.queued.push_back(ReconfigurationTask::ResetAssociation);
            }
            ReconfigurationRequest::AddStreams { outbound: more_out, inbound: more_in } => {
                let fits = outbound.checked_add(more_out).is_some()
                    && inbound.checked_add(more_in).is_some_and(|sum| sum <= halves.max_inbound);
                if !fits || (more_out == 0 && more_in == 0) {
                    return Err(Error::NoSuchStream);
                }
                let tasks = [
                    ReconfigurationTask::AddOutgoing(more_out),
                    ReconfigurationTask::AddIncoming(more_in),
                ];
                let tasks = tasks.into_iter().zip([more_out, more_in]);
                self.queued.extend(tasks.filter(|(_, more)| *more > 0).map(|(task, _)| task));
            }
        }
        self.advance_queued(halves);
        Ok(())
    }

    /// Returns whether our streams are paused for an association reset that the peer requested.
    pub(super) fn is_resetting_for_peer(&self) -> bool {
        let task = self.deferred.as_ref().map(|deferred| &deferred.task);
        matches!(task, Some(DeferredTask::ResetAssociation))
    }

    /// Sends the queued requests if they can be sent now.
    pub(super) fn advance_queued(&mut self, halves: &mut SenderAndReceiver<'_>) {
        if self.queued.is_empty() || !self.outstanding.is_empty() {
            return;
        }
        // Paused again, as the previous request may have resumed the same streams.
        let mut is_ready = |task: &ReconfigurationTask| match task {
            ReconfigurationTask::ResetOutgoing { streams, .. } => {
                halves.sender.pause_streams(streams);
                halves.sender.are_streams_quiet(streams)
            }
            ReconfigurationTask::ResetAssociation => is_idle(halves.sender),
            _ => true,
        };
        if !self.queued.iter().all(&mut is_ready) {
            return;
        }
        let last_assigned_tsn = halves.sender.last_assigned_tsn();
        for task in self.queued.drain(..) {
            self.outstanding.push(OutstandingRequest {
                number: self.next,
                task,
                last_assigned_tsn,
                collisions: 0,
            });
            self.next = self.next.next();
        }
        self.due = true;
    }

    /// Handles a response; `later` is when to send the request again if it is "in progress".
    pub(super) fn handle_response(
        &mut self,
        later: Duration,
        response: &ReconfigurationResponse,
        halves: &mut SenderAndReceiver<'_>,
        counters: &mut EndpointCounters,
    ) {
        let found = self
            .outstanding
            .iter_mut()
            .position(|outstanding| outstanding.number == response.response);
        let Some(index) = found else {
            counters.unexpected_chunks += 1;
            return;
        };
        let collided = response.result == ReconfigurationResult::RequestInProgress;
        if let Some(outstanding) = self.outstanding.get_mut(index) {
            if response.result == ReconfigurationResult::InProgress {
                self.wait_until(later);
                return;
            }
            if collided && outstanding.collisions < MAX_COLLISIONS {
                outstanding.collisions += 1;
                outstanding.number = self.next;
                self.next = self.next.next();
                self.wait_until(later);
                return;
            }
        }
        let outstanding = self.outstanding.remove(index);
        self.stop_if_answered();
        self.finish(outstanding.task, response, halves);
    }

    /// Drops requests of ours that the peer fulfilled by one of its own, without a response.
    pub(super) fn fulfilled(&mut self, by: impl Fn(&OutstandingRequest) -> bool) {
        self.outstanding.retain(|outstanding| !by(outstanding));
        self.stop_if_answered();
    }

    fn wait_until(&mut self, later: Duration) {
        self.timer = Some(later);
        self.is_in_progress = true;
    }

    pub(super) fn report_association_reset(
        &mut self,
        outcome: ReconfigurationOutcome,
        halves: &SenderAndReceiver<'_>,
    ) {
        let next_tsn = halves.sender.next_tsn();
        let expected_tsn = halves.receiver.cumulative_tsn().next();
        self.events.push_back(Event::AssociationReset { outcome, next_tsn, expected_tsn });
    }

    fn stop_if_answered(&mut self) {
        if self.outstanding.is_empty() {
            self.due = false;
            self.timer = None;
        }
    }

    fn finish(
        &mut self,
        task: ReconfigurationTask,
        response: &ReconfigurationResponse,
        halves: &mut SenderAndReceiver<'_>,
    ) {
        let mut outcome = outcome_of(response.result);
        let done = outcome == ReconfigurationOutcome::Performed;
        match task {
            ReconfigurationTask::ResetOutgoing { streams, .. } => {
                if done {
                    halves.sender.reset_streams(&streams);
                } else {
                    halves.sender.resume_streams(&streams);
                }
                self.events.push_back(Event::StreamsReset { outgoing: true, streams, outcome });
            }
            // An accepted request is reported when the peer performs it.
            ReconfigurationTask::ResetIncoming { .. } | ReconfigurationTask::AddIncoming(_)
                if done => {}
            ReconfigurationTask::ResetIncoming { streams } => {
                self.events.push_back(Event::StreamsReset { outgoing: false, streams, outcome });
            }
            ReconfigurationTask::ResetAssociation => {
                match response.next_tsns.filter(|_| done) {
                    Some((sends, expects)) if halves.sender.reset_tsns(expects) => {
                        halves.receiver.reset_tsns(sends);
                    }
                    _ => {
                        halves.sender.resume_streams(&[]);
                        if done {
                            outcome = ReconfigurationOutcome::Failed;
                        }
                    }
                }
                self.report_association_reset(outcome, halves);
            }
            ReconfigurationTask::AddOutgoing(count) => {
                if done {
                    let outbound = halves.sender.terms().outbound;
                    halves.sender.set_outbound_streams(outbound.saturating_add(count));
                }
                self.report_streams_added(halves, outcome);
            }
            ReconfigurationTask::AddIncoming(_) => self.report_streams_added(halves, outcome),
        }
    }

    pub(super) fn report_streams_added(
        &mut self,
        halves: &SenderAndReceiver<'_>,
        outcome: ReconfigurationOutcome,
    ) {
        self.events.push_back(Event::StreamsAdded {
            outbound: halves.sender.terms().outbound,
            inbound: halves.receiver.inbound_streams(),
            outcome,
        });
    }
}
