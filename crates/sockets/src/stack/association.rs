//! One association, as its socket knows it.

use alloc::collections::VecDeque;
use bytes::Bytes;
use core::net::SocketAddr;
use core::time::Duration;

use eyas_sctp::identifier::{AssociationId, PathId};
use eyas_sctp::message::Message;

use super::port::PortKey;
use crate::abi::Errno;
use crate::io::{AssocId, SocketId};
use crate::settings::Settings;

/// The most notifications that wait for a program; of what is beyond, it hears nothing, except of the
/// end.
pub(super) const MAX_NOTIFICATIONS: usize = 256;

/// Where an association stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Phase {
    Opening,
    Up,
    /// It is shutting down: `SHUTDOWN` was requested or received.
    Ending,
    Ended,
}

/// A notification that waits.
#[derive(Debug)]
pub(super) struct Notice {
    pub(super) bytes: Bytes,
    /// How many messages the program takes before it: those that came before it.
    pub(super) after: u64,
    /// When it came, and whether it tells of a message that could not be sent.
    pub(super) failed_at: Option<Duration>,
}

/// What the program has the first part of.
#[derive(Debug)]
pub(super) enum Current {
    Notification(Bytes),
    Message(Message, Bytes),
}

/// An association.
#[derive(Debug)]
pub(super) struct Assoc {
    pub(super) port: PortKey,
    pub(super) inner: AssociationId,
    /// Its socket; none when it was closed, or not accepted yet.
    pub(super) socket: Option<SocketId>,
    /// The listener whose `accept` it waits for.
    pub(super) listener: Option<SocketId>,
    pub(super) phase: Phase,
    /// Why it could not be opened.
    pub(super) failure: Option<Errno>,
    /// The peer's primary address with its SCTP port.
    pub(super) peer: SocketAddr,
    /// All of the peer's addresses, as they were when it was opened or last asked.
    pub(super) paths: alloc::vec::Vec<(PathId, SocketAddr)>,
    pub(super) streams: (u16, u16),
    /// Messages that were given up: before anything of them was sent, and after.
    pub(super) given_up: (u64, u64),
    pub(super) notices: VecDeque<Notice>,
    /// Messages, or parts of them, taken from the endpoint.
    pub(super) taken: u64,
    /// What the program is at.
    pub(super) current: Option<Current>,
    /// Messages that were looked at already.
    pub(super) ahead: VecDeque<Message>,
    /// Messages, parts of them and notifications that the program has had.
    pub(super) given: u64,
    /// How many of them, with those that wait, have a place in its socket's list of turns.
    pub(super) announced: u64,
    /// Whether the send buffer is full.
    pub(super) is_full: bool,
    /// Whether the peer has announced its end.
    pub(super) peer_ended: bool,
    pub(super) settings: Settings,
    /// How long it may be without traffic (`SCTP_AUTOCLOSE`), as its socket was set when it began.
    pub(super) autoclose: Option<Duration>,
    pub(super) idle_since: Duration,
}

impl Assoc {
    pub(super) fn new(
        port: PortKey,
        inner: AssociationId,
        peer: SocketAddr,
        settings: Settings,
        now: Duration,
    ) -> Self {
        Self {
            port,
            inner,
            socket: None,
            listener: None,
            phase: Phase::Opening,
            failure: None,
            peer,
            paths: alloc::vec::Vec::new(),
            streams: (0, 0),
            given_up: (0, 0),
            notices: VecDeque::new(),
            taken: 0,
            current: None,
            ahead: VecDeque::new(),
            given: 0,
            announced: 0,
            is_full: false,
            peer_ended: false,
            settings,
            autoclose: None,
            idle_since: now,
        }
    }

    /// Whether the handshake is over and the end has not come.
    pub(super) fn is_up(&self) -> bool {
        matches!(self.phase, Phase::Up | Phase::Ending)
    }

    /// Whether the handshake was ever over.
    pub(super) fn was_up(&self) -> bool {
        self.streams != (0, 0)
    }

    /// Whether it is what `sctp_id2assoc` finds on a one-to-one socket.
    pub(super) fn is_alive(&self) -> bool {
        self.phase != Phase::Ended
    }

    /// Whether something of it was not received.
    pub(super) fn has_waiting(&self) -> bool {
        self.current.is_some() || !self.ahead.is_empty() || !self.notices.is_empty()
    }

    /// How much of that there is, besides what the endpoint has.
    pub(super) fn waiting(&self) -> usize {
        usize::from(self.current.is_some()) + self.ahead.len() + self.notices.len()
    }

    /// Whether data, and not only notifications, was not received.
    pub(super) fn has_unread_data(&self) -> bool {
        matches!(self.current, Some(Current::Message(..))) || !self.ahead.is_empty()
    }
}

/// The socket that hears of an association: its own, or the listener that it waits at.
pub(super) fn hearer(assoc: &Assoc) -> Option<SocketId> {
    assoc.socket.or(assoc.listener)
}

/// The next number for an association.
pub(super) fn next_id(last: AssocId) -> AssocId {
    AssocId(last.0.checked_add(1).unwrap_or(FIRST))
}

/// Those below have a meaning of their own.
const FIRST: i32 = 3;
