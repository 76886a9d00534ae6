//! Where an association stands (RFC 9260 §4). Each state owns what only it needs.

use alloc::boxed::Box;
use bytes::Bytes;
use core::time::Duration;

use super::init_params::InitParams;
use crate::endpoint::AssociationState;
use crate::identifier::PathId;

/// How long T5-shutdown-guard runs, in multiples of `RTO.Max` (RFC 9260 §9.2).
const GUARD: u32 = 5;

/// RFC 9260 §4, with a state of our own in which a handshake waits for its user.
#[derive(Debug)]
pub(crate) enum State {
    /// The INIT was sent.
    CookieWait(Box<CookieWait>),
    /// The INIT ACK came, and the user has not yet said to go on. The peer holds nothing.
    Held(Box<Held>),
    /// The COOKIE ECHO was sent.
    CookieEchoed(Box<CookieEchoed>),
    Established,
    /// The user wants to end; data is on its way.
    ShutdownPending,
    /// The SHUTDOWN was sent.
    ShutdownSent(Farewell),
    /// The peer wants to end; data is on its way.
    ShutdownReceived,
    /// The SHUTDOWN ACK was sent.
    ShutdownAckSent(Farewell),
    /// It is over. Only what came in can still be taken.
    Closed,
}

/// Waiting for the INIT ACK.
#[derive(Debug)]
pub(crate) struct CookieWait {
    /// What our INIT says.
    pub(crate) own: InitParams,
    /// T1-init.
    pub(crate) t1: Retry,
    /// Whether to wait for the user once the INIT ACK came.
    pub(crate) hold: bool,
    /// By how much the peer is asked to make its cookies live longer (RFC 9260 §5.2.6).
    pub(crate) preserve: Duration,
    /// How many cookies were stale.
    pub(crate) stale: u32,
    /// Whether the user wants to end as soon as it is up: said while a cookie was on its way that
    /// was stale.
    pub(crate) shutdown: bool,
}

/// Waiting for the user, with the cookie in hand.
#[derive(Debug)]
pub(crate) struct Held {
    /// What our INIT said.
    pub(crate) own: InitParams,
    /// The peer's.
    pub(crate) cookie: Bytes,
    /// How many cookies were stale.
    pub(crate) stale: u32,
}

/// Waiting for the COOKIE ACK.
#[derive(Debug)]
pub(crate) struct CookieEchoed {
    /// What our INIT said, in case the cookie is stale.
    pub(crate) own: InitParams,
    /// The peer's.
    pub(crate) cookie: Bytes,
    /// T1-cookie.
    pub(crate) t1: Retry,
    /// How many cookies were stale.
    pub(crate) stale: u32,
    /// Whether the user wants to end as soon as it is up.
    pub(crate) shutdown: bool,
    /// Whether the COOKIE ECHO is to be written.
    pub(crate) wanted: bool,
}

/// Waiting for the answer to a SHUTDOWN or SHUTDOWN ACK.
#[derive(Debug)]
pub(crate) struct Farewell {
    /// T2-shutdown.
    pub(crate) t2: Retry,
    /// When to lose patience, whatever the peer still sends (T5-shutdown-guard).
    pub(crate) guard: Duration,
}

impl Farewell {
    pub(crate) fn new(now: Duration, timeout: Duration, path: PathId, rto_max: Duration) -> Self {
        let guard = now.saturating_add(rto_max.saturating_mul(GUARD));
        Self { t2: Retry::new(now, timeout, path), guard }
    }

    pub(crate) fn due(&self) -> Duration {
        self.t2.due.min(self.guard)
    }
}

/// Something that is sent again until it is answered: T1-init, T1-cookie, T2-shutdown.
#[derive(Clone, Debug)]
pub(crate) struct Retry {
    /// When to send it again.
    pub(crate) due: Duration,
    /// How long was waited the last time.
    pub(crate) timeout: Duration,
    /// How often it was sent again.
    pub(crate) retransmissions: u32,
    /// Where it was sent.
    pub(crate) path: PathId,
    /// When it was first sent.
    pub(crate) sent: Duration,
}

impl Retry {
    /// It is sent for the first time.
    pub(crate) fn new(now: Duration, timeout: Duration, path: PathId) -> Self {
        Self { due: now.saturating_add(timeout), timeout, retransmissions: 0, path, sent: now }
    }

    /// It is sent again, on `path`: the timeout doubles up to `largest` (RFC 9260 §6.3.3 E2).
    pub(crate) fn again(&mut self, now: Duration, path: PathId, largest: Duration) {
        self.timeout = self.timeout.saturating_mul(2).min(largest);
        self.due = now.saturating_add(self.timeout);
        self.retransmissions += 1;
        self.path = path;
    }

    /// The round trip, if it was sent only once (RFC 9260 §6.3.1 C5).
    pub(crate) fn round_trip(&self, now: Duration) -> Option<Duration> {
        (self.retransmissions == 0).then(|| now.saturating_sub(self.sent))
    }
}

impl State {
    /// As the user knows it.
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

    /// Whether both sides hold state: the handshake is over, and the end has not come.
    pub(crate) fn is_up(&self) -> bool {
        !self.is_opening() && !matches!(self, Self::Closed)
    }

    /// Whether the handshake is under way.
    pub(crate) fn is_opening(&self) -> bool {
        matches!(self, Self::CookieWait(_) | Self::Held(_) | Self::CookieEchoed(_))
    }

    /// Whether the user wants to end as soon as the handshake is over.
    pub(crate) fn ends_when_up(&self) -> bool {
        match self {
            Self::CookieWait(wait) => wait.shutdown,
            Self::CookieEchoed(echoed) => echoed.shutdown,
            _ => false,
        }
    }

    /// Whether the user may hand in messages (RFC 9260 §9.2).
    pub(crate) fn takes_messages(&self) -> bool {
        let opens = self.is_opening() && !self.ends_when_up();
        opens || matches!(self, Self::Established)
    }

    /// Whether data may be sent for the first time or again.
    pub(crate) fn sends_data(&self) -> bool {
        matches!(self, Self::Established | Self::ShutdownPending | Self::ShutdownReceived)
    }

    /// Whether DATA of the peer is taken (RFC 9260 §6).
    pub(crate) fn takes_data(&self) -> bool {
        matches!(self, Self::Established | Self::ShutdownPending | Self::ShutdownSent(_))
    }

    /// The timer of the state, if it has one.
    pub(crate) fn due(&self) -> Option<Duration> {
        match self {
            Self::CookieWait(wait) => Some(wait.t1.due),
            Self::CookieEchoed(echoed) => Some(echoed.t1.due),
            Self::ShutdownSent(farewell) | Self::ShutdownAckSent(farewell) => Some(farewell.due()),
            Self::Held(_)
            | Self::Established
            | Self::ShutdownPending
            | Self::ShutdownReceived
            | Self::Closed => None,
        }
    }
}
