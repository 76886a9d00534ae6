//! One association, as seen by its socket.

use alloc::vec::Vec;
use bytes::Bytes;
use core::net::SocketAddr;
use core::time::Duration;

use eyas_sctp::identifier::PathId;

use super::delivery::{DeliveryQueue, NoticePlace};
use super::ports::{AssociationKey, PortTable};
use crate::abi::Errno;
use crate::abi::number::event;
use crate::io::SocketId;
use crate::settings::AssocSettings;

/// The largest message that one packet carries whole where no path is known: IPv4, UDP, DATA.
const UNKNOWN_WHOLE: usize = 1424;

/// The phase of an association.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AssocPhase {
    Opening,
    Up,
    /// It is shutting down: `SHUTDOWN` was requested or received.
    Ending,
    Ended,
}

/// An association.
#[derive(Debug)]
pub(super) struct SocketAssociation {
    pub(super) key: AssociationKey,
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
    pub(super) paths: Vec<(PathId, SocketAddr)>,
    pub(super) streams: (u16, u16),
    /// The numbers of messages that were abandoned before and after any of their data was sent.
    pub(super) abandoned: (u64, u64),
    pub(super) delivery: DeliveryQueue,
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
        key: AssociationKey,
        peer: SocketAddr,
        settings: AssocSettings,
        now: Duration,
    ) -> Self {
        Self {
            key,
            socket: None,
            listener: None,
            phase: AssocPhase::Opening,
            failure: None,
            peer,
            paths: Vec::new(),
            streams: (0, 0),
            abandoned: (0, 0),
            delivery: DeliveryQueue::default(),
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

    /// Returns the socket that is notified about it: its own, or the listener on which it waits.
    pub(super) fn notified_socket(&self) -> Option<SocketId> {
        self.socket.or(self.listener)
    }

    /// Returns whether this is an address of the peer.
    pub(super) fn has_peer(&self, address: SocketAddr) -> bool {
        self.paths.iter().any(|(_, peer)| *peer == address)
    }

    /// Returns whether it has something to receive.
    pub(super) fn is_receivable(&self, ports: &PortTable) -> bool {
        !self.delivery.is_empty() || ports.receivable(self.key) > 0
    }

    /// Returns the maximum number of bytes of a message in one chunk.
    pub(super) fn fragmentation_point(&self, ports: &PortTable) -> usize {
        let status = ports.status(self.key);
        let whole = status.map_or(UNKNOWN_WHOLE, |status| status.largest_message());
        let max_segment = self.settings.max_segment;
        if max_segment == 0 { whole } else { whole.min(max_segment as usize) }
    }

    /// Returns whether the program has subscribed to a type of notification.
    fn wants(&self, kind: u16) -> bool {
        self.settings.events & 1 << (kind & 0xff) != 0
    }

    /// Returns whether the peer is shutting down and the program, having subscribed to it, must
    /// receive `SCTP_SHUTDOWN_COMP` before it reads the end. Linux rarely behaves otherwise on a
    /// single host, where it handles both packets at once.
    pub(super) fn awaits_shutdown_complete(&self) -> bool {
        self.wants(event::SCTP_ASSOC_CHANGE) && self.peer_ended && self.is_alive()
    }

    /// Queues a notification, if the program has subscribed to its type.
    pub(super) fn notify(&mut self, now: Duration, ports: &PortTable, kind: u16, parts: &[&[u8]]) {
        if !self.wants(kind) || self.notified_socket().is_none() {
            return;
        }
        let place = match kind {
            event::SCTP_ASSOC_CHANGE => NoticePlace::BeforeFailures(now),
            event::SCTP_SEND_FAILED | event::SCTP_SEND_FAILED_EVENT => {
                NoticePlace::LastAsFailure(now)
            }
            _ => NoticePlace::Last,
        };
        let in_endpoint = ports.receivable(self.key);
        self.delivery.add_notification(Bytes::from(parts.concat()), in_endpoint, place);
    }
}
