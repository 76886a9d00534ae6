//! The states of an association (RFC 9260 §4). Each state owns the data that only it needs.

use alloc::boxed::Box;
use core::time::Duration;

use super::handshake::Handshake;
use super::shutdown::ShutdownTimers;
use crate::endpoint::AssociationState;

/// The states of RFC 9260 §4; those of the handshake are [`Handshake`]'s.
#[derive(Debug)]
pub(crate) enum AssociationPhase {
    /// The handshake is under way.
    Opening(Box<Handshake>),
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

impl AssociationPhase {
    /// Returns the state as reported to the user.
    pub(crate) fn public(&self) -> AssociationState {
        match self {
            Self::Opening(handshake) => handshake.state(),
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
        matches!(self, Self::Opening(_))
    }

    /// Returns whether our INIT has not been answered.
    pub(crate) fn awaits_init_ack(&self) -> bool {
        matches!(self, Self::Opening(handshake) if handshake.awaits_init_ack())
    }

    /// Returns whether a COOKIE ECHO was sent, so that the peer may have state to end.
    pub(crate) fn peer_has_state(&self) -> bool {
        match self {
            Self::Opening(handshake) => handshake.has_echoed_cookie(),
            Self::Closed => false,
            _ => true,
        }
    }

    /// Returns whether to shut down once the handshake has completed.
    pub(crate) fn shutdown_requested(&self) -> bool {
        matches!(self, Self::Opening(handshake) if handshake.shutdown_requested())
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
            Self::Opening(handshake) => handshake.due(),
            Self::ShutdownSent(timers) | Self::ShutdownAckSent(timers) => Some(timers.due()),
            Self::Established | Self::ShutdownPending | Self::ShutdownReceived | Self::Closed => {
                None
            }
        }
    }
}
