//! Graceful termination: SHUTDOWN, SHUTDOWN ACK, SHUTDOWN COMPLETE (RFC 9260 §9.2).

use alloc::boxed::Box;
use core::time::Duration;

use super::state::{AssociationPhase, ShutdownTimers};
use super::{Association, AssociationEnding};
use crate::counters::EndpointCounters;
use crate::error::Error;
use crate::event::{Event, LossReason};
use crate::identifier::PathId;
use crate::serial::Tsn;
use crate::wire::Chunk;

impl Association {
    /// Shuts down at the user's request; queued data is still sent.
    pub(crate) fn shutdown(
        &mut self,
        now: Duration,
        counters: &mut EndpointCounters,
    ) -> Result<(), Error> {
        match &mut self.state {
            AssociationPhase::Opening(handshake) => {
                if !handshake.request_shutdown() {
                    self.end(AssociationEnding::DiscardQueued, Event::Closed);
                }
            }
            AssociationPhase::Established => {
                self.state = AssociationPhase::ShutdownPending;
                self.linger(now);
                self.advance_shutdown(now, counters);
            }
            // Already under way, initiated by the peer or by this side.
            AssociationPhase::ShutdownPending
            | AssociationPhase::ShutdownSent(_)
            | AssociationPhase::ShutdownReceived
            | AssociationPhase::ShutdownAckSent(_) => {}
            AssociationPhase::Closed => return Err(Error::WrongState),
        }
        Ok(())
    }

    /// Sends SHUTDOWN or SHUTDOWN ACK once all data has been acknowledged.
    pub(crate) fn advance_shutdown(&mut self, now: Duration, counters: &mut EndpointCounters) {
        match self.state {
            _ if !self.state.waits_for_drain() || !self.sender.is_drained() => {}
            AssociationPhase::ShutdownPending => {
                let (path, timers) = self.start_shutdown_timers(now);
                self.state = AssociationPhase::ShutdownSent(timers);
                self.receiver.acknowledge_every_packet();
                self.send_shutdown(path, counters);
            }
            AssociationPhase::ShutdownReceived => self.acknowledge_shutdown(now, counters),
            _ => {}
        }
    }

    /// Handles a SHUTDOWN and its cumulative TSN ack.
    pub(crate) fn handle_shutdown(
        &mut self,
        now: Duration,
        cumulative_tsn: Tsn,
        counters: &mut EndpointCounters,
    ) {
        match self.state {
            AssociationPhase::Established | AssociationPhase::ShutdownPending => {
                self.state = AssociationPhase::ShutdownReceived;
                self.linger(now);
                self.events.push(Event::PeerShutdown);
            }
            AssociationPhase::ShutdownReceived => {}
            // Both sides shut down at once: this side has no data left.
            AssociationPhase::ShutdownSent(_) => return self.acknowledge_shutdown(now, counters),
            AssociationPhase::Opening(_)
            | AssociationPhase::ShutdownAckSent(_)
            | AssociationPhase::Closed => {
                counters.unexpected_chunks += 1;
                return;
            }
        }
        self.handle_cumulative_tsn(now, cumulative_tsn, counters);
        self.advance_shutdown(now, counters);
    }

    /// Handles a SHUTDOWN ACK: the peer has no data left either.
    pub(crate) fn handle_shutdown_ack(&mut self, path: PathId, counters: &mut EndpointCounters) {
        match &self.state {
            AssociationPhase::ShutdownSent(_) | AssociationPhase::ShutdownAckSent(_) => {
                let complete = Chunk::ShutdownComplete { reflected: false };
                self.queues.push_standalone(path, self.identity.peer_tag(), complete);
                self.end(AssociationEnding::SendQueued, Event::Closed);
            }
            // The peer is shutting down an association that no longer exists here (RFC 9260 §8.5.1
            // E).
            AssociationPhase::Opening(handshake) if !handshake.is_held() => {
                let complete = Chunk::ShutdownComplete { reflected: true };
                self.queues.push_standalone(path, self.identity.local_tag(), complete);
            }
            _ => counters.unexpected_chunks += 1,
        }
    }

    /// Handles a SHUTDOWN COMPLETE whose tag has been verified.
    pub(crate) fn handle_shutdown_complete(&mut self, counters: &mut EndpointCounters) {
        if matches!(self.state, AssociationPhase::ShutdownAckSent(_)) {
            self.end(AssociationEnding::DiscardQueued, Event::Closed);
        } else {
            counters.unexpected_chunks += 1;
        }
    }

    /// Answers data that arrives after our SHUTDOWN with another SHUTDOWN (RFC 9260 §9.2).
    pub(crate) fn repeat_shutdown(
        &mut self,
        now: Duration,
        path: PathId,
        counters: &mut EndpointCounters,
    ) {
        if let AssociationPhase::ShutdownSent(timers) = &mut self.state {
            timers.t2.due = now.saturating_add(timers.t2.timeout);
            self.send_shutdown(path, counters);
        }
    }

    /// Handles the expiry of T2-shutdown or T5-shutdown-guard.
    pub(crate) fn handle_t2(&mut self, now: Duration, counters: &mut EndpointCounters) {
        let (AssociationPhase::ShutdownSent(timers) | AssociationPhase::ShutdownAckSent(timers)) =
            &mut self.state
        else {
            return;
        };
        if now >= timers.guard {
            return self.abort_for(LossReason::PeerUnreachable);
        }
        let last = timers.t2.path;
        self.paths.on_error(last, &self.config);
        if self.paths.is_peer_unreachable(&self.config) {
            return self
                .end(AssociationEnding::DiscardQueued, Event::Lost(LossReason::PeerUnreachable));
        }
        let path = self.paths.for_retransmission(last);
        timers.t2.retransmitted(now, path, self.config.rto_max);
        counters.retransmissions += 1;
        if matches!(self.state, AssociationPhase::ShutdownSent(_)) {
            self.send_shutdown(path, counters);
        } else {
            self.queues.push(Some(path), Chunk::ShutdownAck, counters);
        }
    }

    fn send_shutdown(&mut self, path: PathId, counters: &mut EndpointCounters) {
        // The cumulative TSN is filled in when it is written; one that is queued already suffices.
        let is_queued =
            self.queues.control.iter().any(|c| matches!(c.chunk, Chunk::Shutdown { .. }));
        if !is_queued {
            let cumulative_tsn = self.receiver.cumulative_tsn();
            self.queues.push(Some(path), Chunk::Shutdown { cumulative_tsn }, counters);
        }
    }

    fn acknowledge_shutdown(&mut self, now: Duration, counters: &mut EndpointCounters) {
        let (path, timers) = self.start_shutdown_timers(now);
        self.state = AssociationPhase::ShutdownAckSent(timers);
        self.queues.control.retain(|control| !matches!(control.chunk, Chunk::Shutdown { .. }));
        self.queues.push(Some(path), Chunk::ShutdownAck, counters);
    }

    fn start_shutdown_timers(&mut self, now: Duration) -> (PathId, Box<ShutdownTimers>) {
        // No more heartbeats: T2 alone checks whether the peer is still there (§8.3).
        self.paths.stop();
        let path = self.paths.default_path();
        let timeout = self.paths.timeout_of(path, &self.config);
        let timers = ShutdownTimers::new(now, timeout, path, self.config.rto_max);
        (path, Box::new(timers))
    }
}
