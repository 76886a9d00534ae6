//! The states of an association (RFC 9260 §4). Each state owns the data that only it needs.

use alloc::boxed::Box;
use bytes::Bytes;
use core::time::Duration;

use super::init_params::InitParams;
use crate::endpoint::AssociationState;
use crate::identifier::PathId;

/// The duration of T5-shutdown-guard, in multiples of `RTO.Max` (RFC 9260 §9.2).
const GUARD: u32 = 5;

/// The states of RFC 9260 §4, and one in which a handshake waits for its user.
#[derive(Debug)]
pub(crate) enum AssociationPhase {
    /// The INIT has been sent.
    CookieWait(Box<CookieWait>),
    /// The INIT ACK has arrived, and the user has not yet proceeded. The peer has no state.
    Held(Box<HeldHandshake>),
    /// The COOKIE ECHO was sent.
    CookieEchoed(Box<CookieEchoed>),
    Established,
    /// The user has requested shutdown; data is outstanding.
    ShutdownPending,
    /// The SHUTDOWN was sent.
    ShutdownSent(Box<ShutdownTimers>),
    /// The peer has requested shutdown; our data is outstanding.
    ShutdownReceived,
    /// The SHUTDOWN ACK was sent.
    ShutdownAckSent(Box<ShutdownTimers>),
    /// The association has ended. Received data can still be read.
    Closed,
}

/// Waiting for the INIT ACK.
#[derive(Debug)]
pub(crate) struct CookieWait {
    /// The parameters of our INIT.
    pub(crate) own: InitParams,
    /// T1-init.
    pub(crate) t1: RetransmissionTimer,
    /// Whether to wait for the user after the INIT ACK.
    pub(crate) hold: bool,
    /// The extension of the cookie lifetime that the peer is asked for (RFC 9260 §5.2.6).
    pub(crate) preserve: Duration,
    /// How many cookies were stale.
    pub(crate) stale: u32,
    /// Whether to shut down once established: requested while a COOKIE ECHO with a stale cookie was
    /// outstanding.
    pub(crate) shutdown: bool,
}

/// Waiting for the user, with the cookie stored.
#[derive(Debug)]
pub(crate) struct HeldHandshake {
    /// The parameters of our INIT.
    pub(crate) own: InitParams,
    /// The peer's.
    pub(crate) cookie: Bytes,
    /// How many cookies were stale.
    pub(crate) stale: u32,
}

/// Waiting for the COOKIE ACK.
#[derive(Debug)]
pub(crate) struct CookieEchoed {
    /// The parameters of our INIT, in case the cookie is stale.
    pub(crate) own: InitParams,
    /// The peer's.
    pub(crate) cookie: Bytes,
    /// T1-cookie.
    pub(crate) t1: RetransmissionTimer,
    /// How many cookies were stale.
    pub(crate) stale: u32,
    /// Whether to shut down once established.
    pub(crate) shutdown: bool,
    /// Whether the COOKIE ECHO has to be sent.
    pub(crate) unsent: bool,
}

/// Waiting for the answer to a SHUTDOWN or SHUTDOWN ACK.
#[derive(Debug)]
pub(crate) struct ShutdownTimers {
    /// T2-shutdown.
    pub(crate) t2: RetransmissionTimer,
    /// When to give up regardless of what the peer sends (T5-shutdown-guard).
    pub(crate) guard: Duration,
}

impl ShutdownTimers {
    pub(crate) fn new(now: Duration, timeout: Duration, path: PathId, rto_max: Duration) -> Self {
        let guard = now.saturating_add(rto_max.saturating_mul(GUARD));
        Self { t2: RetransmissionTimer::new(now, timeout, path), guard }
    }

    pub(crate) fn due(&self) -> Duration {
        self.t2.due.min(self.guard)
    }
}

/// A retransmission timer: T1-init, T1-cookie, T2-shutdown.
#[derive(Clone, Debug)]
pub(crate) struct RetransmissionTimer {
    /// When to retransmit.
    pub(crate) due: Duration,
    /// The last timeout.
    pub(crate) timeout: Duration,
    /// The number of retransmissions.
    pub(crate) retransmissions: u32,
    /// The path of the last transmission.
    pub(crate) path: PathId,
    /// The time of the first transmission.
    pub(crate) sent: Duration,
}

impl RetransmissionTimer {
    /// Starts the timer after the first transmission.
    pub(crate) fn new(now: Duration, timeout: Duration, path: PathId) -> Self {
        Self { due: now.saturating_add(timeout), timeout, retransmissions: 0, path, sent: now }
    }

    /// Restarts the timer after a retransmission on `path`: the timeout doubles up to `max` (RFC
    /// 9260 §6.3.3 E2).
    pub(crate) fn retransmitted(&mut self, now: Duration, path: PathId, max: Duration) {
        self.timeout = self.timeout.saturating_mul(2).min(max);
        self.due = now.saturating_add(self.timeout);
        self.retransmissions += 1;
        self.path = path;
    }

    /// Returns the round-trip time, if nothing was retransmitted (RFC 9260 §6.3.1 C5).
    pub(crate) fn round_trip(&self, now: Duration) -> Option<Duration> {
        (self.retransmissions == 0).then(|| now.saturating_sub(self.sent))
    }
}

impl AssociationPhase {
    /// Returns the state as reported to the user.
    pub(crate) fn public(&self) -> AssociationState {
        match self {
            Self::CookieWait(_) => AssociationState::CookieWait,
            Self::Held(_) => AssociationState::Held,
            Self::CookieEchoed(_) => AssociationState::CookieEchoed,
            Self::Established => AssociationState::Established,
            Self::ShutdownPending => AssociationState::ShutdownPending,
            Self::ShutdownSent(_) => AssociationState::ShutdownSent,
            Self::ShutdownReceived => AssociationState::ShutdownReceived,
            Self::ShutdownAckSent(_) => AssociationState::ShutdownAckSent,
            Self::Closed => AssociationState::Closed,
        }
    }

    /// Returns whether both sides have state: the handshake has completed, and the association has
    /// not ended.
    pub(crate) fn is_up(&self) -> bool {
        !self.is_opening() && !matches!(self, Self::Closed)
    }

    /// Returns whether the shutdown goes on once all data has been acknowledged.
    pub(crate) fn waits_for_drain(&self) -> bool {
        matches!(self, Self::ShutdownPending | Self::ShutdownReceived)
    }

    /// Returns whether the handshake is under way.
    pub(crate) fn is_opening(&self) -> bool {
        matches!(self, Self::CookieWait(_) | Self::Held(_) | Self::CookieEchoed(_))
    }

    /// Returns whether to shut down once the handshake has completed.
    pub(crate) fn shutdown_requested(&self) -> bool {
        match self {
            Self::CookieWait(wait) => wait.shutdown,
            Self::CookieEchoed(echoed) => echoed.shutdown,
            _ => false,
        }
    }

    /// Returns whether the user may send messages (RFC 9260 §9.2).
    pub(crate) fn accepts_messages(&self) -> bool {
        let is_open = self.is_opening() && !self.shutdown_requested();
        is_open || matches!(self, Self::Established)
    }

    /// Returns whether data may be sent or retransmitted.
    pub(crate) fn sends_data(&self) -> bool {
        matches!(self, Self::Established | Self::ShutdownPending | Self::ShutdownReceived)
    }

    /// Returns whether the peer's DATA is accepted (RFC 9260 §6).
    pub(crate) fn accepts_data(&self) -> bool {
        matches!(self, Self::Established | Self::ShutdownPending | Self::ShutdownSent(_))
    }

    /// Returns the deadline of the state's timer, if it has one.
    pub(crate) fn due(&self) -> Option<Duration> {
        match self {
            Self::CookieWait(wait) => Some(wait.t1.due),
            Self::CookieEchoed(echoed) => Some(echoed.t1.due),
            Self::ShutdownSent(timers) | Self::ShutdownAckSent(timers) => Some(timers.due()),
            Self::Held(_)
            | Self::Established
            | Self::ShutdownPending
            | Self::ShutdownReceived
            | Self::Closed => None,
        }
    }
}
