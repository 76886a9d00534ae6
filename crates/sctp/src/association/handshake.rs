//! The four-way handshake from the initiating side (RFC 9260 §5.1): its states, with T1-init and
//! T1-cookie.

use bytes::Bytes;
use core::time::Duration;

use super::authentication::PacketAuthentication;
use super::control::ChunkQueues;
use super::init_params::InitParams;
use super::retransmission_timer::RetransmissionTimer;
use crate::config::AssociationConfig;
use crate::counters::EndpointCounters;
use crate::endpoint::AssociationState;
use crate::event::LossReason;
use crate::identifier::{PathId, VerificationTag};
use crate::path::{AssociationPaths, HEARTBEAT_CHUNK, PathState};
use crate::wire::{Chunk, ChunkType, EncodeChunk, PACKET_HEADER, padded};

/// The maximum number of handshakes that are restarted because of a stale cookie (RFC 9260 §5.2.6).
const MAX_STALE_COOKIES: u32 = 3;

/// The longest extension of the cookie lifetime that a peer is asked for.
const MAX_PRESERVE: Duration = Duration::from_secs(60);

/// A handshake that this side has initiated.
#[derive(Debug)]
pub(crate) struct Handshake {
    /// The parameters of our INIT; needed after the INIT ACK too, in case the cookie is stale.
    own: InitParams,
    /// How many cookies were stale.
    stale: u32,
    /// Whether to shut down once established: requested while a COOKIE ECHO was outstanding.
    shutdown: bool,
    step: HandshakeStep,
}

#[derive(Debug)]
enum HandshakeStep {
    /// The INIT has been sent.
    CookieWait {
        /// T1-init.
        t1: RetransmissionTimer,
        /// Whether to wait for the user after the INIT ACK.
        hold: bool,
        /// The extension of the cookie lifetime that the peer is asked for (RFC 9260 §5.2.6).
        preserve: Duration,
    },
    /// The INIT ACK has arrived, and the user has not yet proceeded. The peer has no state.
    Held { cookie: Bytes },
    /// The COOKIE ECHO was sent.
    CookieEchoed {
        cookie: Bytes,
        /// T1-cookie.
        t1: RetransmissionTimer,
        /// Whether the COOKIE ECHO has to be sent.
        unsent: bool,
    },
}

/// The other parts of the association that a handshake uses.
#[derive(Debug)]
pub(super) struct HandshakeContext<'a> {
    pub(super) now: Duration,
    pub(super) config: &'a AssociationConfig,
    pub(super) paths: &'a AssociationPaths,
    pub(super) authentication: &'a PacketAuthentication,
    pub(super) queues: &'a mut ChunkQueues,
}

impl Handshake {
    /// Creates a handshake whose INIT goes over `path`. `hold`: whether to wait for the user after
    /// the INIT ACK.
    pub(super) fn new(
        now: Duration,
        own: InitParams,
        path: PathId,
        hold: bool,
        config: &AssociationConfig,
    ) -> Self {
        let t1 = RetransmissionTimer::new(now, config.rto_initial, path);
        let step = HandshakeStep::CookieWait { t1, hold, preserve: Duration::ZERO };
        Self { own, stale: 0, shutdown: false, step }
    }

    /// Returns the state as reported to the user.
    pub(super) const fn state(&self) -> AssociationState {
        match self.step {
            HandshakeStep::CookieWait { .. } => AssociationState::CookieWait,
            HandshakeStep::Held { .. } => AssociationState::Held,
            HandshakeStep::CookieEchoed { .. } => AssociationState::CookieEchoed,
        }
    }

    /// Returns the parameters of our INIT.
    pub(super) const fn own(&self) -> &InitParams {
        &self.own
    }

    /// Returns whether the INIT has not been answered.
    pub(super) const fn awaits_init_ack(&self) -> bool {
        matches!(self.step, HandshakeStep::CookieWait { .. })
    }

    /// Returns whether the COOKIE ECHO was sent.
    pub(super) const fn has_echoed_cookie(&self) -> bool {
        matches!(self.step, HandshakeStep::CookieEchoed { .. })
    }

    /// Returns whether the user has to proceed.
    pub(super) const fn is_held(&self) -> bool {
        matches!(self.step, HandshakeStep::Held { .. })
    }

    /// Returns whether to shut down once the handshake has completed.
    pub(super) const fn shutdown_requested(&self) -> bool {
        self.shutdown
    }

    /// Requests a shutdown once the handshake has completed. Returns whether it is to complete: not
    /// while the peer has no state.
    pub(super) fn request_shutdown(&mut self) -> bool {
        self.shutdown |= self.has_echoed_cookie();
        self.shutdown
    }

    const fn t1(&self) -> Option<&RetransmissionTimer> {
        match &self.step {
            HandshakeStep::CookieWait { t1, .. } | HandshakeStep::CookieEchoed { t1, .. } => {
                Some(t1)
            }
            HandshakeStep::Held { .. } => None,
        }
    }

    /// Returns when T1-init or T1-cookie expires.
    pub(super) fn due(&self) -> Option<Duration> {
        self.t1().map(|t1| t1.due)
    }

    /// Returns the path of the outstanding INIT or COOKIE ECHO, and the round-trip time if it is
    /// answered now, unless it was retransmitted.
    pub(super) fn round_trip(&self, now: Duration) -> Option<(PathId, Option<Duration>)> {
        self.t1().map(|t1| (t1.path, t1.round_trip(now)))
    }

    /// Queues the INIT for T1-init's path.
    pub(super) fn send_init(&self, context: &mut HandshakeContext<'_>) {
        let HandshakeStep::CookieWait { t1, preserve, .. } = &self.step else { return };
        let family = context.paths.get(t1.path).map(|path| path.remote.is_ipv4());
        let init = self.own.to_init(*preserve, family.unwrap_or(true));
        context.queues.push_standalone(t1.path, VerificationTag::ZERO, Chunk::Init(init));
    }

    /// The peer assumes that I-DATA has been negotiated, but it cannot be used: the handshake
    /// restarts without the offer. That costs a round trip but leaves no state, as the peer has
    /// none yet. Returns whether the INIT ACK is to be ignored.
    pub(super) fn retry_without_interleaving(
        &mut self,
        context: &mut HandshakeContext<'_>,
    ) -> bool {
        let HandshakeStep::CookieWait { t1, .. } = &mut self.step else { return false };
        if !core::mem::take(&mut self.own.offers.interleaving) {
            // Another response to the INIT that offered it, unless the peer lists I-DATA in any
            // case.
            return context.config.extensions.interleaving && t1.retransmissions == 0;
        }
        *t1 = RetransmissionTimer::new(context.now, context.config.rto_initial, t1.path);
        self.send_init(context);
        true
    }

    /// Echoes the cookie of an INIT ACK, unless the user is to proceed first.
    pub(super) fn accept_cookie(&mut self, cookie: Bytes, context: &HandshakeContext<'_>) {
        match self.step {
            HandshakeStep::CookieWait { hold: true, .. } => {
                self.step = HandshakeStep::Held { cookie };
            }
            _ => self.echo(cookie, context),
        }
    }

    /// Proceeds at the user's request, now or as soon as the INIT ACK arrives.
    pub(super) fn proceed(&mut self, context: &HandshakeContext<'_>) {
        match &mut self.step {
            HandshakeStep::CookieWait { hold, .. } => *hold = false,
            HandshakeStep::Held { cookie } => {
                let cookie = cookie.clone();
                self.echo(cookie, context);
            }
            HandshakeStep::CookieEchoed { .. } => {}
        }
    }

    fn echo(&mut self, cookie: Bytes, context: &HandshakeContext<'_>) {
        let path = context.paths.default_path();
        let timeout = context.paths.timeout_of(path, context.config);
        let t1 = RetransmissionTimer::new(context.now, timeout, path);
        self.step = HandshakeStep::CookieEchoed { cookie, t1, unsent: true };
    }

    /// Returns the COOKIE ECHO and its path, if it has to be sent.
    pub(super) fn poll_cookie_echo(&mut self) -> Option<(PathId, Chunk)> {
        let HandshakeStep::CookieEchoed { cookie, t1, unsent } = &mut self.step else {
            return None;
        };
        core::mem::take(unsent).then(|| (t1.path, Chunk::CookieEcho(cookie.clone())))
    }

    /// Restarts the handshake after the peer's cookie was stale by `staleness`, and asks for a
    /// longer lifetime (§5.2.6). Returns an error if the peer is given up.
    pub(super) fn restart(
        &mut self,
        staleness: Duration,
        context: &mut HandshakeContext<'_>,
    ) -> Result<(), LossReason> {
        self.stale += 1;
        if self.stale > MAX_STALE_COOKIES {
            return Err(LossReason::NoAnswer);
        }
        // Another half, as the clocks of the two sides may run at different rates.
        let preserve = (staleness + staleness / 2).min(MAX_PRESERVE);
        let last = self.t1().map(|t1| t1.path).filter(|path| context.paths.is_confirmed(*path));
        let path = last.unwrap_or(context.paths.primary());
        let timeout = context.paths.timeout_of(path, context.config);
        let t1 = RetransmissionTimer::new(context.now, timeout, path);
        self.step = HandshakeStep::CookieWait { t1, hold: false, preserve };
        self.send_init(context);
        Ok(())
    }

    /// Handles the expiry of T1-init or T1-cookie: retransmits on the next path (§4, note 3; §5.1).
    /// Returns an error if the peer is given up.
    pub(super) fn handle_t1(
        &mut self,
        context: &mut HandshakeContext<'_>,
        counters: &mut EndpointCounters,
    ) -> Result<(), LossReason> {
        let Some(t1) = self.t1() else { return Ok(()) };
        if t1.retransmissions >= context.config.max_init_retransmits {
            return Err(LossReason::NoAnswer);
        }
        counters.retransmissions += 1;
        let largest = context.config.max_init_timeout.unwrap_or(context.config.rto_max);
        match &mut self.step {
            HandshakeStep::CookieWait { t1, .. } => {
                let is_confirmed = |path: PathState| path != PathState::Unconfirmed;
                let path = context.paths.next_after(t1.path, |path| is_confirmed(path.state()));
                t1.retransmitted(context.now, path, largest);
                self.send_init(context);
            }
            HandshakeStep::CookieEchoed { cookie, t1, unsent } => {
                let path = next_for_cookie(t1.path, cookie, context);
                t1.retransmitted(context.now, path, largest);
                *unsent = true;
            }
            HandshakeStep::Held { .. } => {}
        }
        Ok(())
    }

    /// Sends the INIT over the primary path, if `path`, which is none any more, was its path.
    pub(super) fn leave(&mut self, path: PathId, context: &mut HandshakeContext<'_>) {
        if let HandshakeStep::CookieWait { t1, .. } = &mut self.step
            && t1.path == path
        {
            let next = context.paths.primary();
            *t1 = RetransmissionTimer::new(context.now, context.config.rto_initial, next);
            self.send_init(context);
        }
    }
}

/// Returns the path for the COOKIE ECHO after `last`: also an unconfirmed one if the heartbeat that
/// it needs fits in the same packet (§5.4).
fn next_for_cookie(last: PathId, cookie: &Bytes, context: &HandshakeContext<'_>) -> PathId {
    let auth = context.authentication;
    let auth = auth.len_before(ChunkType::COOKIE_ECHO).max(auth.len_before(ChunkType::HEARTBEAT));
    let echo = padded(Chunk::CookieEcho(cookie.clone()).encoded_len());
    let size = PACKET_HEADER + auth + echo + HEARTBEAT_CHUNK;
    let fits = |mtu: usize| size <= mtu;
    let paths = context.paths;
    paths.next_after(last, |path| path.state() != PathState::Unconfirmed || fits(path.mtu()))
}
