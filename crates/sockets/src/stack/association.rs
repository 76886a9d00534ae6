//! One association, as seen by its socket.

use alloc::collections::VecDeque;
use bytes::Bytes;
use core::net::SocketAddr;
use core::time::Duration;

use eyas_sctp::identifier::{AssociationId, PathId};
use eyas_sctp::message::Message;

use super::port::PortKey;
use crate::abi::Errno;
use crate::io::{AssocId, SocketId};
use crate::settings::AssocSettings;

/// The maximum number of queued notifications; further ones are dropped, except that of the end.
pub(super) const MAX_NOTIFICATIONS: usize = 256;

/// The phase of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AssocPhase {
    Opening,
    Up,
    /// It is shutting down: `SHUTDOWN` was requested or received.
    Ending,
    Ended,
}

/// A queued notification.
#[derive(Debug)]
pub(super) struct QueuedNotification {
    pub(super) bytes: Bytes,
    /// The number of messages that the program receives before it, because they arrived earlier.
    pub(super) after: u64,
    /// When it was queued, if it reports a message that could not be sent.
    pub(super) failed_at: Option<Duration>,
}

/// What the program is currently receiving, possibly in parts.
#[derive(Debug)]
pub(super) enum CurrentMessage {
    Notification(Bytes),
    Message(Message, Bytes),
}

/// An association.
#[derive(Debug)]
pub(super) struct SocketAssociation {
    pub(super) port: PortKey,
    pub(super) inner: AssociationId,
    /// Its socket; `None` if that was closed, or if it has not been accepted yet.
    pub(super) socket: Option<SocketId>,
    /// The listener on which it waits for `accept`.
    pub(super) listener: Option<SocketId>,
    pub(super) phase: AssocPhase,
    /// The error if it could not be established.
    pub(super) failure: Option<Errno>,
    /// The peer's primary address with its SCTP port.
    pub(super) peer: SocketAddr,
    /// All of the peer's addresses, as of the last refresh.
    pub(super) paths: alloc::vec::Vec<(PathId, SocketAddr)>,
    pub(super) streams: (u16, u16),
    /// The numbers of messages that were abandoned before and after any of their data was sent.
    pub(super) abandoned: (u64, u64),
    pub(super) notices: VecDeque<QueuedNotification>,
    /// The number of messages, or parts of them, taken from the endpoint.
    pub(super) taken: u64,
    /// What the program is currently receiving.
    pub(super) current: Option<CurrentMessage>,
    /// Messages taken from the endpoint in advance.
    pub(super) ahead: VecDeque<Message>,
    /// The number of messages, parts of them and notifications that the program has received.
    pub(super) delivered: u64,
    /// How many of those, plus the waiting ones, are accounted for in its socket's list of turns.
    pub(super) scheduled: u64,
    /// Whether the send buffer is full.
    pub(super) is_full: bool,
    /// Whether the peer has started to shut down.
    pub(super) peer_ended: bool,
    pub(super) settings: AssocSettings,
    /// How long it may be idle (`SCTP_AUTOCLOSE`), from its socket's settings when it was created.
    pub(super) autoclose: Option<Duration>,
    pub(super) idle_since: Duration,
}

impl SocketAssociation {
    pub(super) fn new(
        port: PortKey,
        inner: AssociationId,
        peer: SocketAddr,
        settings: AssocSettings,
        now: Duration,
    ) -> Self {
        Self {
            port,
            inner,
            socket: None,
            listener: None,
            phase: AssocPhase::Opening,
            failure: None,
            peer,
            paths: alloc::vec::Vec::new(),
            streams: (0, 0),
            abandoned: (0, 0),
            notices: VecDeque::new(),
            taken: 0,
            current: None,
            ahead: VecDeque::new(),
            delivered: 0,
            scheduled: 0,
            is_full: false,
            peer_ended: false,
            settings,
            autoclose: None,
            idle_since: now,
        }
    }

    /// Returns whether it is established or shutting down.
    pub(super) fn is_up(&self) -> bool {
        matches!(self.phase, AssocPhase::Up | AssocPhase::Ending)
    }

    /// Returns whether it was ever established.
    pub(super) fn was_up(&self) -> bool {
        self.streams != (0, 0)
    }

    /// Returns whether it has not ended, as `sctp_id2assoc` requires on a one-to-one socket.
    pub(super) fn is_alive(&self) -> bool {
        self.phase != AssocPhase::Ended
    }

    /// Returns whether it holds anything that the program has not received.
    pub(super) fn has_waiting(&self) -> bool {
        self.current.is_some() || !self.ahead.is_empty() || !self.notices.is_empty()
    }

    /// Returns the number of items that the program has not received, without those in the
    /// endpoint.
    pub(super) fn waiting(&self) -> usize {
        usize::from(self.current.is_some()) + self.ahead.len() + self.notices.len()
    }

    /// Returns whether it holds data, not only notifications, that the program has not received.
    pub(super) fn has_unread_data(&self) -> bool {
        matches!(self.current, Some(CurrentMessage::Message(..))) || !self.ahead.is_empty()
    }
}

/// Returns the socket that is notified about an association: its own, or the listener on which it
/// waits.
pub(super) fn notified_socket(assoc: &SocketAssociation) -> Option<SocketId> {
    assoc.socket.or(assoc.listener)
}

/// Returns the next association identifier.
pub(super) fn next_id(last: AssocId) -> AssocId {
    AssocId(last.0.checked_add(1).unwrap_or(FIRST))
}

/// The first usable identifier: those below are reserved.
const FIRST: i32 = 3;
