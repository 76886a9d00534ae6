//! Dispatches the chunks of a packet to their procedures.

mod abort;
mod collision;
mod handshake;
mod output;
mod reachability;
mod shutdown;
mod streams;
mod timing;
mod transfer;

use core::time::Duration;

use super::authentication::ChunkAdmission;
use super::dynamic_address::{AddressContext, DynamicAddress};
use super::report::{handle_unknown, report_chunk};
use super::state::AssociationPhase;
use super::{Association, PacketArrival};
use crate::counters::EndpointCounters;
use crate::event::Event;
use crate::identifier::{PathId, VerificationTag};
use crate::io::Ecn;
use crate::path::Path;
use crate::serial::Tsn;
use crate::wire::{Chunk, ChunkType, ErrorCause, ErrorChunk, PacketChunks};

use transfer::cause_of;

pub(crate) use collision::{CookieVerdict, InitVerdict};

/// The maximum number of an ERROR's causes that are reported to the user.
const MAX_CAUSES: usize = 16;

/// A packet that belongs to the association: when and where it arrived.
#[derive(Clone, Copy, Debug)]
struct IncomingPacket<'a> {
    now: Duration,
    arrival: &'a PacketArrival,
    path: PathId,
}

impl Association {
    /// Handles a packet with our tag, or the rest of one after a COOKIE ECHO. `authenticated` is
    /// whether a valid AUTH chunk preceded that.
    pub(crate) fn handle_packet(
        &mut self,
        now: Duration,
        arrival: &PacketArrival,
        mut chunks: PacketChunks<'_>,
        mut authenticated: bool,
        counters: &mut EndpointCounters,
    ) {
        let path = self.path_of(arrival);
        let incoming = IncomingPacket { now, arrival, path };
        let size = chunks.remaining();
        let mut first_tsn: Option<Tsn> = None;
        // A chunk stays where it was parsed: moving it costs more than parsing it.
        while let Some(chunk) = &mut chunks.next() {
            match self.authentication.admit(chunk, &mut authenticated, counters) {
                ChunkAdmission::Accepted => {}
                ChunkAdmission::Skipped => continue,
                ChunkAdmission::PacketDiscarded => break,
                ChunkAdmission::UnsupportedHmac(hmac_id) => {
                    let cause = ErrorCause::UnsupportedHmac { hmac_id };
                    self.queues.push_error(Some(path), cause, counters);
                    break;
                }
            }
            if let Chunk::Data(data) = chunk {
                first_tsn.get_or_insert(data.tsn);
            }
            if !self.handle_chunk(&incoming, chunk, counters) {
                break;
            }
        }
        self.end_of_packet(&incoming, first_tsn, size, counters);
    }

    /// Dispatches one chunk; the only place that knows every chunk type. Returns whether to
    /// continue with the packet.
    #[inline(always)]
    fn handle_chunk(
        &mut self,
        at: &IncomingPacket<'_>,
        chunk: &mut Chunk,
        counters: &mut EndpointCounters,
    ) -> bool {
        let &IncomingPacket { now, arrival, path } = at;
        if self.state.is_opening() && !is_allowed_before_established(chunk) {
            counters.unexpected_chunks += 1;
            return true;
        }
        match chunk {
            Chunk::Data(data) => return self.handle_data(path, data, counters),
            // Not negotiated, and of a type that is skipped without a report (RFC 9260 §3.2).
            Chunk::Sack(sack) if sack.is_nr && !self.agreed.nr_sack => {
                counters.unexpected_chunks += 1;
            }
            Chunk::Sack(sack) => self.handle_sack(now, sack, path, counters),
            Chunk::InitAck(init) => self.handle_init_ack(now, arrival, init, counters),
            Chunk::CookieAck => self.handle_cookie_ack(now, counters),
            Chunk::Heartbeat(heartbeat) => self.handle_heartbeat(now, path, heartbeat, counters),
            Chunk::HeartbeatAck(ack) => self.handle_heartbeat_ack(now, arrival, ack, counters),
            Chunk::Shutdown { cumulative_tsn: tsn } => self.handle_shutdown(now, *tsn, counters),
            Chunk::ShutdownAck => self.handle_shutdown_ack(path, counters),
            Chunk::ShutdownComplete { reflected: false } => self.handle_shutdown_complete(counters),
            Chunk::Abort(_) if self.is_at_deleted_address(arrival) => {
                counters.unexpected_chunks += 1;
                return false;
            }
            Chunk::Abort(abort) if !abort.reflected => {
                self.handle_abort(abort);
                return false;
            }
            Chunk::Error(error) => {
                counters.errors_in += 1;
                self.handle_error(now, error);
            }
            Chunk::ForwardTsn(_) | Chunk::IForwardTsn(_) => {
                return self.handle_forward_tsn(path, chunk, counters);
            }
            Chunk::Ecne { lowest_tsn } if self.agreed.ecn => {
                self.handle_ecne(now, path, *lowest_tsn, counters);
            }
            Chunk::Cwr { lowest_tsn } if self.agreed.ecn => self.paths.on_cwr(*lowest_tsn),
            Chunk::Reconfig(chunk) if self.agreed.reconfiguration => {
                counters.reconfigurations_in += 1;
                self.handle_reconfig(now, path, chunk, counters);
            }
            Chunk::Asconf(_) | Chunk::AsconfAck(_) => self.handle_asconf(at, chunk, counters),
            Chunk::Pad { .. } => {}
            Chunk::Unknown(chunk) => {
                return handle_unknown(&mut self.queues, path, chunk, counters);
            }
            Chunk::Malformed { .. } => {
                counters.malformed_chunks += 1;
                return false;
            }
            // Chunks with special rules for tags, which this packet does not meet (RFC 9260
            // §8.5.1), a second COOKIE ECHO, and extensions that were not negotiated.
            Chunk::Init(_)
            | Chunk::CookieEcho(_)
            | Chunk::Abort(_)
            | Chunk::ShutdownComplete { .. }
            | Chunk::Ecne { .. }
            | Chunk::Cwr { .. }
            | Chunk::Auth(_)
            | Chunk::Reconfig(_) => counters.unexpected_chunks += 1,
        }
        true
    }

    /// Handles FORWARD-TSN or I-FORWARD-TSN. Returns whether to continue with the packet.
    fn handle_forward_tsn(
        &mut self,
        path: PathId,
        chunk: &Chunk,
        counters: &mut EndpointCounters,
    ) -> bool {
        if !self.agreed.partial_reliability {
            counters.unexpected_chunks += 1;
            report_chunk(&mut self.queues, path, chunk, counters);
            return true;
        }
        let outcome = match chunk {
            Chunk::ForwardTsn(forward) => self.receiver.handle_forward_tsn(forward, counters),
            Chunk::IForwardTsn(forward) => self.receiver.handle_i_forward_tsn(forward, counters),
            _ => Ok(()),
        };
        if let Err(violation) = outcome {
            self.abort_for_violation(cause_of(violation));
        }
        outcome.is_ok()
    }

    /// Completes a packet after all of its chunks have been processed.
    fn end_of_packet(
        &mut self,
        at: &IncomingPacket<'_>,
        first_tsn: Option<Tsn>,
        size: usize,
        counters: &mut EndpointCounters,
    ) {
        if matches!(self.state, AssociationPhase::Closed) {
            return;
        }
        if let Some(tsn) = first_tsn
            && self.state.accepts_data()
        {
            if self.agreed.ecn
                && at.arrival.ecn == Ecn::CongestionExperienced
                && let Some(path) = self.paths.get_mut(at.path)
            {
                path.on_marked(tsn);
            }
            if self.sender.is_multipath()
                && let Some(path) = self.paths.get_mut(at.path)
            {
                path.on_data_received(at.now, size);
            }
            if let AssociationPhase::ShutdownSent(timers) = &mut self.state {
                // Data that arrives after our SHUTDOWN is answered with another one (RFC 9260 §9.2).
                timers.restart(at.now);
                self.queues.push_shutdown(at.path, self.receiver.cumulative_tsn(), counters);
            }
        }
        let rtt = self.paths.get(at.path).and_then(Path::min_rtt);
        let sends_bulk = self.sender.is_multipath() && self.paths.carry_bulk();
        self.receiver.end_of_packet(at.now, (at.path, rtt), size, sends_bulk);
        self.advance_reconfiguration(at.now, counters);
        self.advance_shutdown(at.now, counters);
        self.collect_events();
        self.collect_path_changes(at.now);
    }

    /// Handles a packet from the peer's address whose tag is not ours (§8.5). It is dropped, unless it
    /// contains a reflected ABORT or SHUTDOWN COMPLETE, or a SHUTDOWN ACK for an association that
    /// no longer exists.
    pub(crate) fn handle_foreign_tag(
        &mut self,
        arrival: &PacketArrival,
        tag: VerificationTag,
        first: Option<Chunk>,
        counters: &mut EndpointCounters,
    ) {
        let (remote, local) = (arrival.remote, arrival.local);
        match first {
            Some(Chunk::Abort(abort)) if abort.reflected && self.identity.is_reflected(tag) => {
                if self.is_at_deleted_address(arrival) {
                    counters.unexpected_chunks += 1;
                } else if !self.paths.is_unconfirmed_beside_others(remote, local) {
                    self.handle_abort(&abort);
                }
            }
            Some(Chunk::ShutdownComplete { reflected: true })
                if self.identity.is_reflected(tag) =>
            {
                self.handle_shutdown_complete(counters);
            }
            Some(Chunk::ShutdownAck) if matches!(&self.state, AssociationPhase::Opening(it) if !it.is_held()) =>
            {
                let path = self.paths.by_remote(remote, local).unwrap_or(self.paths.primary());
                let complete = Chunk::ShutdownComplete { reflected: true };
                self.queues.push_standalone(path, tag, complete);
            }
            _ => counters.bad_tags += 1,
        }
    }

    /// Handles an ERROR, which does not end the association.
    fn handle_error(&mut self, now: Duration, error: &ErrorChunk) {
        for cause in error.causes.iter().take(MAX_CAUSES) {
            match cause {
                ErrorCause::StaleCookie { staleness } => {
                    // In microseconds (§3.3.10.3).
                    let staleness = Duration::from_micros(u64::from(staleness));
                    self.handle_stale_cookie(now, staleness);
                }
                ErrorCause::UnrecognizedChunkType { chunk }
                    if chunk.first() == Some(&ChunkType::ASCONF.0) =>
                {
                    if let Some(dynamic) = self.dynamic_address.take() {
                        dynamic.cancel(&mut self.paths, &mut self.events);
                    }
                    self.agreed.dynamic_addresses = false;
                }
                other => self.events.push(Event::RemoteError { cause: other.code().0 }),
            }
        }
    }

    /// Handles an authenticated ASCONF or ASCONF-ACK.
    fn handle_asconf(
        &mut self,
        at: &IncomingPacket<'_>,
        chunk: &Chunk,
        counters: &mut EndpointCounters,
    ) {
        let Some((dynamic, mut context)) = self.dynamic_address_and_context(at.now) else {
            counters.unexpected_chunks += 1;
            return;
        };
        let handled = match chunk {
            Chunk::Asconf(asconf) => {
                dynamic.handle_asconf(at.arrival.remote, asconf, &mut context, counters)
            }
            Chunk::AsconfAck(ack) => dynamic.handle_ack(ack, &mut context, counters),
            _ => Ok(()),
        };
        if let Err(cause) = handled {
            self.abort_for_violation(cause);
        }
    }

    /// Returns the part for changes of addresses, if both sides support them and have state, with
    /// the parts that it concerns.
    pub(super) fn dynamic_address_and_context(
        &mut self,
        now: Duration,
    ) -> Option<(&mut DynamicAddress, AddressContext<'_>)> {
        let dynamic = self.dynamic_address.as_deref_mut().filter(|_| self.state.is_up())?;
        let context = AddressContext {
            now,
            config: &self.config,
            identity: &mut self.identity,
            paths: &mut self.paths,
            queues: &mut self.queues,
            events: &mut self.events,
        };
        Some((dynamic, context))
    }

    /// Returns whether a packet arrived at an address of ours that is being deleted.
    fn is_at_deleted_address(&self, arrival: &PacketArrival) -> bool {
        let dynamic = self.dynamic_address.as_ref().zip(arrival.local);
        dynamic.is_some_and(|(dynamic, local)| dynamic.is_being_deleted(local))
    }

    /// Handles ECNE: reduces the window of the path that carried the marked packet, and confirms
    /// that to the peer with CWR (RFC 9260 appendix A).
    fn handle_ecne(
        &mut self,
        now: Duration,
        path: PathId,
        tsn: Tsn,
        counters: &mut EndpointCounters,
    ) {
        let answer = self.sender.handle_ecne(now, tsn, path, &mut self.paths);
        if let Some(lowest_tsn) = answer {
            // One CWR answers all preceding echoes.
            self.queues.withdraw(ChunkType::CWR);
            self.queues.push(Some(path), Chunk::Cwr { lowest_tsn }, counters);
        }
    }

    /// Collects the events of sender, receiver and reconfiguration for the user.
    pub(super) fn collect_events(&mut self) {
        while let Some(event) = self.sender.poll_event() {
            self.events.push(event);
        }
        while let Some(event) = self.receiver.poll_event() {
            self.events.push(event);
        }
        while let Some(event) = self.reconfiguration.poll_event() {
            self.events.push(event);
        }
    }
}

/// Returns whether a chunk is processed before the association is established. Chunks of data
/// transfer are not: no response may be sent yet, so no timer may run for one (RFC 9260 §5.1 C).
fn is_allowed_before_established(chunk: &Chunk) -> bool {
    matches!(
        chunk,
        Chunk::Init(_)
            | Chunk::InitAck(_)
            | Chunk::CookieEcho(_)
            | Chunk::CookieAck
            | Chunk::Heartbeat(_)
            | Chunk::HeartbeatAck(_)
            | Chunk::Abort(_)
            | Chunk::Error(_)
            | Chunk::ShutdownAck
            | Chunk::ShutdownComplete { .. }
            | Chunk::Pad { .. }
            | Chunk::Unknown(_)
            | Chunk::Malformed { .. }
    )
}
