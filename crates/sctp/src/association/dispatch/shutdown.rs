//! Graceful termination: SHUTDOWN, SHUTDOWN ACK, SHUTDOWN COMPLETE (RFC 9260 §9.2), through the states
//! of the association.

use alloc::boxed::Box;
use core::time::Duration;

use crate::association::shutdown::{ShutdownTimeout, ShutdownTimers};
use crate::association::state::AssociationPhase;
use crate::association::{Association, AssociationEnding};
use crate::counters::EndpointCounters;
use crate::error::Error;
use crate::event::{Event, LossReason};
use crate::identifier::PathId;
use crate::serial::Tsn;
use crate::wire::{Causes, Chunk, ChunkType};

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
                self.begin_lingering(now);
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
    pub(super) fn advance_shutdown(&mut self, now: Duration, counters: &mut EndpointCounters) {
        match self.state {
            _ if !self.state.waits_for_drain() || !self.sender.is_drained() => {}
            AssociationPhase::ShutdownPending => {
                let timers = ShutdownTimers::start(now, &mut self.paths, &self.config);
                let path = timers.path();
                self.state = AssociationPhase::ShutdownSent(Box::new(timers));
                self.receiver.acknowledge_every_packet();
                self.queues.push_shutdown(path, self.receiver.cumulative_tsn(), counters);
            }
            AssociationPhase::ShutdownReceived => self.acknowledge_shutdown(now, counters),
            _ => {}
        }
    }

    /// Starts the deadline for data that delays the shutdown.
    fn begin_lingering(&mut self, now: Duration) {
        if let Some(stall) = self.config.shutdown_stall {
            self.lingering.begin(now, self.sender.queued_bytes(), stall);
        }
    }

    /// Handles a SHUTDOWN and its cumulative TSN ack.
    pub(super) fn handle_shutdown(
        &mut self,
        now: Duration,
        cumulative_tsn: Tsn,
        counters: &mut EndpointCounters,
    ) {
        match self.state {
            AssociationPhase::Established | AssociationPhase::ShutdownPending => {
                self.state = AssociationPhase::ShutdownReceived;
                self.begin_lingering(now);
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
        self.sender.handle_cumulative_tsn(now, cumulative_tsn, &mut self.paths, counters);
        self.advance_shutdown(now, counters);
    }

    /// Handles a SHUTDOWN ACK: the peer has no data left either.
    pub(super) fn handle_shutdown_ack(&mut self, path: PathId, counters: &mut EndpointCounters) {
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
    pub(super) fn handle_shutdown_complete(&mut self, counters: &mut EndpointCounters) {
        if matches!(self.state, AssociationPhase::ShutdownAckSent(_)) {
            self.end(AssociationEnding::DiscardQueued, Event::Closed);
        } else {
            counters.unexpected_chunks += 1;
        }
    }

    /// Handles the expiry of T2-shutdown or T5-shutdown-guard.
    pub(super) fn handle_t2(&mut self, now: Duration, counters: &mut EndpointCounters) {
        let (AssociationPhase::ShutdownSent(timers) | AssociationPhase::ShutdownAckSent(timers)) =
            &mut self.state
        else {
            return;
        };
        let path = match timers.handle_timeout(now, &mut self.paths, &self.config) {
            ShutdownTimeout::Retransmit(path) => path,
            ShutdownTimeout::Abort => {
                return self.abort_with(Causes::default(), LossReason::PeerUnreachable);
            }
            ShutdownTimeout::GiveUp => {
                let last = Event::Lost(LossReason::PeerUnreachable);
                return self.end(AssociationEnding::DiscardQueued, last);
            }
        };
        counters.retransmissions += 1;
        if matches!(self.state, AssociationPhase::ShutdownSent(_)) {
            self.queues.push_shutdown(path, self.receiver.cumulative_tsn(), counters);
        } else {
            self.queues.push(Some(path), Chunk::ShutdownAck, counters);
        }
    }

    fn acknowledge_shutdown(&mut self, now: Duration, counters: &mut EndpointCounters) {
        let timers = ShutdownTimers::start(now, &mut self.paths, &self.config);
        let path = timers.path();
        self.state = AssociationPhase::ShutdownAckSent(Box::new(timers));
        self.queues.withdraw(ChunkType::SHUTDOWN);
        self.queues.push(Some(path), Chunk::ShutdownAck, counters);
    }
}
