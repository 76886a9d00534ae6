//! The chunks of the handshake (RFC 9260 §5.1), between the part that has its state and those that the
//! peer's parameters set up.

use core::time::Duration;

use crate::association::handshake::{Handshake, HandshakeContext};
use crate::association::init_params::{InitRefusal, ParsedInit};
use crate::association::state::AssociationPhase;
use crate::association::{Association, AssociationEnding, PacketArrival, addresses};
use crate::counters::EndpointCounters;
use crate::event::{Event, LossReason};
use crate::identifier::VerificationTag;
use crate::wire::{AbortChunk, Chunk, ErrorCause, InitChunk, Parameters};

impl Association {
    /// Returns the handshake, if it is under way, with the parts that it uses.
    pub(in crate::association) fn handshake_and_context(
        &mut self,
        now: Duration,
    ) -> Option<(&mut Handshake, HandshakeContext<'_>)> {
        let AssociationPhase::Opening(handshake) = &mut self.state else { return None };
        let context = HandshakeContext {
            now,
            config: &self.config,
            paths: &self.paths,
            authentication: &self.authentication,
            queues: &mut self.queues,
        };
        Some((handshake, context))
    }

    /// Handles an INIT ACK (§5.1, C).
    pub(super) fn handle_init_ack(
        &mut self,
        now: Duration,
        arrival: &PacketArrival,
        init: &InitChunk,
        counters: &mut EndpointCounters,
    ) {
        if !self.state.awaits_init_ack() {
            // A delayed or duplicate INIT ACK (§5.2.3).
            counters.unexpected_chunks += 1;
            return;
        }
        let parsed = match ParsedInit::parse(init, arrival.remote.ip(), &self.config, counters) {
            Ok(parsed) => parsed,
            Err(refusal) => return self.refuse_init_ack(init, refusal),
        };
        let Some(cookie) = parsed.cookie else {
            return self.refuse_init_ack(init, InitRefusal::missing_cookie());
        };
        let Some((handshake, mut context)) = self.handshake_and_context(now) else { return };
        if parsed.lacks_i_forward_tsn && handshake.retry_without_interleaving(&mut context) {
            return;
        }
        let (own, round_trip) = (handshake.own().clone(), handshake.round_trip(now));
        let listed = &parsed.params.addresses;
        let listed = addresses::filter_families(&self.paths, listed, &own.addresses, counters);
        self.identity.set_peer(arrival);
        let answered =
            addresses::keep_listed(&mut self.paths, &listed, arrival.remote, &self.config);
        self.identity.addresses_changed();
        if let Some((path, round_trip)) = round_trip.filter(|(path, _)| answered == Some(*path)) {
            self.paths.record_round_trip(now, path, round_trip, &self.config);
        }
        self.adopt_peer(&own, &parsed.params);
        for whole in parsed.unrecognized {
            let cause = ErrorCause::UnrecognizedParameters(Parameters::from_bytes(whole));
            self.queues.push_error(None, cause, counters);
        }
        self.events.push(Event::Answered);
        if let Some((handshake, context)) = self.handshake_and_context(now) {
            handshake.accept_cookie(cookie, &context);
        }
    }

    /// Refuses an INIT ACK that no association can be built from.
    fn refuse_init_ack(&mut self, init: &InitChunk, refusal: InitRefusal) {
        // The peer has no state, but is notified of the error (§3.3.3, §5.1).
        let (tag, cause) = match refusal {
            // The tag of the peer's own packet, with the T bit.
            InitRefusal::NoTag => {
                (self.identity.local_tag(), ErrorCause::InvalidMandatoryParameter)
            }
            InitRefusal::Abort(cause) => (init.initiate_tag, cause),
        };
        let code = cause.code().0;
        let reflected = init.initiate_tag == VerificationTag::ZERO;
        let abort = AbortChunk { reflected, causes: [cause].into_iter().collect() };
        self.queues.push_standalone(self.paths.primary(), tag, Chunk::Abort(abort));
        let reason = LossReason::ProtocolViolation { cause: code };
        self.end(AssociationEnding::SendQueued, Event::Lost(reason));
    }

    /// Handles a COOKIE ACK: the association is established (§5.1, E).
    pub(super) fn handle_cookie_ack(&mut self, now: Duration, counters: &mut EndpointCounters) {
        let AssociationPhase::Opening(handshake) = &self.state else {
            counters.unexpected_chunks += 1;
            return;
        };
        let Some((path, round_trip)) =
            handshake.round_trip(now).filter(|_| handshake.has_echoed_cookie())
        else {
            counters.unexpected_chunks += 1;
            return;
        };
        self.paths.record_round_trip(now, path, round_trip, &self.config);
        self.establish();
        self.advance_shutdown(now, counters);
    }

    /// Ends the handshake: the association is established, or shuts down if that was requested.
    pub(super) fn establish(&mut self) {
        let shutdown = self.state.shutdown_requested();
        self.state = AssociationPhase::Established;
        self.notify_up(false);
        if shutdown {
            self.state = AssociationPhase::ShutdownPending;
        }
    }

    /// Notifies the user that the association is up.
    pub(in crate::association) fn notify_up(&mut self, by_peer: bool) {
        self.paths.start();
        let outbound = self.sender.terms().outbound;
        let inbound = self.receiver.inbound_streams();
        self.events.push(Event::Up { outbound, inbound, by_peer });
    }

    /// Handles a report that the peer's cookie was stale by `staleness` (§5.2.6).
    pub(super) fn handle_stale_cookie(&mut self, now: Duration, staleness: Duration) {
        let handshake = self.handshake_and_context(now);
        let Some((handshake, mut context)) =
            handshake.filter(|(handshake, _)| handshake.has_echoed_cookie())
        else {
            return;
        };
        match handshake.restart(staleness, &mut context) {
            Ok(()) => self.sender.requeue_all(now, &mut self.paths),
            Err(reason) => self.end(AssociationEnding::DiscardQueued, Event::Lost(reason)),
        }
    }
}
