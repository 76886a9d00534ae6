//! The four-way handshake from the initiating side (RFC 9260 §5.1), with T1-init and T1-cookie.

use alloc::boxed::Box;
use bytes::Bytes;
use core::time::Duration;

use super::init_params::{InitParams, InitRefusal, ParsedInit};
use super::state::{
    AssociationPhase, CookieEchoed, CookieWait, HeldHandshake, RetransmissionTimer,
};
use super::{Association, AssociationEnding, PacketArrival, addresses};
use crate::counters::EndpointCounters;
use crate::event::{Event, LossReason};
use crate::identifier::{PathId, VerificationTag};
use crate::io::Unreachable;
use crate::path::{HEARTBEAT_CHUNK, PathState};
use crate::wire::{
    AbortChunk, Chunk, ChunkType, EncodeChunk, ErrorCause, InitChunk, PACKET_HEADER, Parameters,
    padded,
};

/// The maximum number of handshakes that are restarted because of a stale cookie (RFC 9260 §5.2.6).
const MAX_STALE_COOKIES: u32 = 3;

/// The longest extension of the cookie lifetime that a peer is asked for.
const MAX_PRESERVE: Duration = Duration::from_secs(60);

impl Association {
    /// Queues the INIT for T1-init's path.
    pub(super) fn send_init(&mut self) {
        let AssociationPhase::CookieWait(wait) = &self.state else { return };
        let family = self.paths.get(wait.t1.path).map(|path| path.remote.is_ipv4());
        let init = wait.own.to_init(wait.preserve, family.unwrap_or(true));
        self.queues.push_standalone(wait.t1.path, VerificationTag::ZERO, Chunk::Init(init));
    }

    /// Handles an INIT ACK (§5.1, C).
    pub(super) fn handle_init_ack(
        &mut self,
        now: Duration,
        arrival: &PacketArrival,
        init: &InitChunk,
        counters: &mut EndpointCounters,
    ) {
        if !matches!(self.state, AssociationPhase::CookieWait(_)) {
            // A delayed or duplicate INIT ACK (§5.2.3).
            counters.unexpected_chunks += 1;
            return;
        }
        let parsed = match ParsedInit::parse(init, arrival.remote.ip(), &self.config, counters) {
            Ok(parsed) => parsed,
            Err(refusal) => return self.refuse_init_ack(init, refusal),
        };
        let Some(cookie) = parsed.cookie.clone() else {
            return self.refuse_init_ack(init, InitRefusal::missing_cookie());
        };
        if parsed.lacks_i_forward_tsn && self.retry_without_interleaving(now) {
            return;
        }
        let AssociationPhase::CookieWait(wait) = &self.state else { return };
        let (own, t1) = (wait.own.clone(), wait.t1.clone());
        let (hold, stale, shutdown) = (wait.hold, wait.stale, wait.shutdown);
        let listed = &parsed.params.addresses;
        let listed = addresses::filter_families(&self.paths, listed, &own.addresses, counters);
        self.identity.set_peer(arrival);
        let answered =
            addresses::keep_listed(&mut self.paths, &listed, arrival.remote, &self.config);
        self.identity.addresses_changed();
        if answered == Some(t1.path) {
            self.paths.record_round_trip(now, t1.path, t1.round_trip(now), &self.config);
        }
        self.adopt_peer(&own, &parsed.params);
        for whole in parsed.unrecognized {
            let cause = ErrorCause::UnrecognizedParameters(Parameters::from_bytes(whole));
            self.queues.push_error(None, cause, counters);
        }
        self.events.push(Event::Answered);
        if hold {
            self.state = AssociationPhase::Held(Box::new(HeldHandshake { own, cookie, stale }));
        } else {
            self.echo_cookie(now, own, cookie, stale, shutdown);
        }
    }

    /// The peer assumes that I-DATA has been negotiated, but it cannot be used: the handshake
    /// restarts without the offer. That costs a round trip but leaves no state, as the peer has
    /// none yet. Returns whether the INIT ACK is to be ignored.
    fn retry_without_interleaving(&mut self, now: Duration) -> bool {
        let AssociationPhase::CookieWait(wait) = &mut self.state else { return false };
        if !core::mem::take(&mut wait.own.offers.interleaving) {
            // Another response to the INIT that offered it, unless the peer lists I-DATA in any
            // case.
            return self.config.extensions.interleaving && wait.t1.retransmissions == 0;
        }
        wait.t1 = RetransmissionTimer::new(now, self.config.rto_initial, wait.t1.path);
        self.send_init();
        true
    }

    /// Proceeds at the user's request (`hold_at_init_ack`), now or as soon as the INIT ACK arrives.
    pub(crate) fn proceed(&mut self, now: Duration) {
        match &mut self.state {
            AssociationPhase::CookieWait(wait) => wait.hold = false,
            AssociationPhase::Held(held) => {
                let (own, cookie, stale) = (held.own.clone(), held.cookie.clone(), held.stale);
                self.echo_cookie(now, own, cookie, stale, false);
            }
            _ => {}
        }
    }

    /// Handles a COOKIE ACK: the association is established (§5.1, E).
    pub(super) fn handle_cookie_ack(&mut self, now: Duration, counters: &mut EndpointCounters) {
        let AssociationPhase::CookieEchoed(echoed) = &self.state else {
            counters.unexpected_chunks += 1;
            return;
        };
        let (path, round_trip) = (echoed.t1.path, echoed.t1.round_trip(now));
        let shutdown = echoed.shutdown;
        self.paths.record_round_trip(now, path, round_trip, &self.config);
        self.state = AssociationPhase::Established;
        self.notify_up(false);
        if shutdown {
            self.state = AssociationPhase::ShutdownPending;
            self.advance_shutdown(now, counters);
        }
    }

    /// Restarts the handshake after the peer's cookie was stale by `staleness`, and asks for a
    /// longer lifetime (§5.2.6).
    pub(super) fn handle_stale_cookie(&mut self, now: Duration, staleness: Duration) {
        let AssociationPhase::CookieEchoed(echoed) = &self.state else { return };
        let stale = echoed.stale + 1;
        if stale > MAX_STALE_COOKIES {
            return self.end(AssociationEnding::DiscardQueued, Event::Lost(LossReason::NoAnswer));
        }
        // Another half, as the clocks of the two sides may run at different rates.
        let preserve = (staleness + staleness / 2).min(MAX_PRESERVE);
        let path = Some(echoed.t1.path).filter(|path| self.paths.is_confirmed(*path));
        let path = path.unwrap_or(self.paths.primary());
        let t1 = RetransmissionTimer::new(now, self.paths.timeout_of(path, &self.config), path);
        let (own, shutdown) = (echoed.own.clone(), echoed.shutdown);
        let wait = CookieWait { own, t1, hold: false, preserve, stale, shutdown };
        self.state = AssociationPhase::CookieWait(Box::new(wait));
        self.sender.requeue_all(now, &mut self.paths);
        self.send_init();
    }

    /// Handles the expiry of T1-init or T1-cookie: retransmits on the next path (§4, note 3; §5.1).
    pub(super) fn handle_t1(&mut self, now: Duration, counters: &mut EndpointCounters) {
        let t1 = match &self.state {
            AssociationPhase::CookieWait(wait) => &wait.t1,
            AssociationPhase::CookieEchoed(echoed) => &echoed.t1,
            _ => return,
        };
        if t1.retransmissions >= self.config.max_init_retransmits {
            return self.end(AssociationEnding::DiscardQueued, Event::Lost(LossReason::NoAnswer));
        }
        counters.retransmissions += 1;
        let path = match &self.state {
            AssociationPhase::CookieEchoed(echoed) => self.next_for_cookie(t1.path, &echoed.cookie),
            _ => self.paths.next_after(t1.path, |path| path.state() != PathState::Unconfirmed),
        };
        let largest = self.config.max_init_timeout.unwrap_or(self.config.rto_max);
        match &mut self.state {
            AssociationPhase::CookieWait(wait) => {
                wait.t1.retransmitted(now, path, largest);
                self.send_init();
            }
            AssociationPhase::CookieEchoed(echoed) => {
                echoed.t1.retransmitted(now, path, largest);
                echoed.unsent = true;
            }
            _ => {}
        }
    }

    /// Handles an ICMP error for an address of the peer (RFC 9260 §10). It is only trusted while
    /// nothing has been received from the peer; other addresses are tried first.
    pub(super) fn give_up_address(&mut self, now: Duration, path: PathId, reason: Unreachable) {
        let AssociationPhase::CookieWait(wait) = &mut self.state else { return };
        if self.paths.len() == 1 {
            return self
                .end(AssociationEnding::DiscardQueued, Event::Lost(LossReason::Refused(reason)));
        }
        self.paths.remove(path);
        self.identity.addresses_changed();
        if wait.t1.path == path {
            let next = self.paths.primary();
            wait.t1 = RetransmissionTimer::new(now, self.config.rto_initial, next);
            self.send_init();
        }
    }

    fn echo_cookie(
        &mut self,
        now: Duration,
        own: InitParams,
        cookie: Bytes,
        stale: u32,
        shutdown: bool,
    ) {
        let path = self.paths.default_path();
        let t1 = RetransmissionTimer::new(now, self.paths.timeout_of(path, &self.config), path);
        let echoed = CookieEchoed { own, cookie, t1, stale, shutdown, unsent: true };
        self.state = AssociationPhase::CookieEchoed(Box::new(echoed));
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

    /// Returns the path for the COOKIE ECHO after `last`: also an unconfirmed one if the heartbeat
    /// that it needs fits in the same packet (§5.4).
    fn next_for_cookie(&self, last: PathId, cookie: &Bytes) -> PathId {
        let auth = [ChunkType::COOKIE_ECHO, ChunkType::HEARTBEAT];
        let auth = auth.map(|kind| self.authentication.len_before(kind)).into_iter().max();
        let auth = auth.unwrap_or(0);
        let echo = padded(Chunk::CookieEcho(cookie.clone()).encoded_len());
        let size = PACKET_HEADER + auth + echo + HEARTBEAT_CHUNK;
        self.paths
            .next_after(last, |path| path.state() != PathState::Unconfirmed || size <= path.mtu())
    }

    /// Notifies the user that the association is up.
    pub(super) fn notify_up(&mut self, by_peer: bool) {
        self.paths.start();
        let (outbound, inbound) = (self.sender.terms().outbound, self.receiver.inbound_streams());
        self.events.push(Event::Up { outbound, inbound, by_peer });
    }
}
