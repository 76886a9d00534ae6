//! Notifications about an association (RFC 6458 §6.1).

use alloc::vec::Vec;
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};

use crate::identifier::{PathId, Ppid, StreamId};
use crate::serial::Tsn;

/// A notification about an association.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The peer sent its INIT ACK: it is reachable and speaks SCTP, but keeps no state yet. With
    /// [`crate::config::ConnectOptions::hold_at_init_ack`] nothing more is sent until
    /// [`crate::endpoint::Endpoint::proceed`]; otherwise this is only informational.
    Answered,
    /// The association is established (`SCTP_COMM_UP`), with the negotiated numbers of streams.
    Up {
        /// The number of outbound streams.
        outbound: u16,
        /// The number of inbound streams.
        inbound: u16,
        /// Whether the peer opened it.
        by_peer: bool,
    },
    /// The peer restarted without closing the association (`SCTP_RESTART`); unsent messages are
    /// kept, data in flight is lost.
    Restarted,
    /// The association could not be established (`SCTP_CANT_STR_ASSOC`) or was lost
    /// (`SCTP_COMM_LOST`). The last event.
    Lost(LossReason),
    /// The association was shut down gracefully; all data arrived (`SCTP_SHUTDOWN_COMP`). The last
    /// event.
    Closed,
    /// The peer is shutting down; nothing more can be sent, but queued data still is
    /// (`SCTP_SHUTDOWN_EVENT`).
    PeerShutdown,
    /// There is something to receive, after there was nothing.
    Readable,
    /// There is space to send again, after there was none.
    Writable,
    /// A path changed (`SCTP_PEER_ADDR_CHANGE`).
    Path {
        /// The path.
        path: PathId,
        /// The peer's address of the path.
        remote: SocketAddr,
        /// The change.
        change: PathChange,
    },
    /// The peer answered a request about one of our addresses (RFC 5061).
    OwnAddress {
        /// Our address.
        address: IpAddr,
        /// The requested change.
        change: OwnAddressChange,
        /// Why the request failed: the cause code (RFC 9260 §3.3.10, RFC 5061 §4.3). `None` if it
        /// succeeded.
        cause: Option<u16>,
    },
    /// A message could not be delivered (`SCTP_SEND_FAILED_EVENT`), or was abandoned by partial
    /// reliability.
    SendFailed {
        /// The stream.
        stream: StreamId,
        /// The context that was given with the message.
        context: u32,
        /// Its payload protocol identifier.
        ppid: Ppid,
        /// Whether it was sent unordered.
        unordered: bool,
        /// Whether a part of it may have reached the peer.
        sent: bool,
        /// The whole message.
        data: Bytes,
    },
    /// The peer abandoned a message that was partly delivered (`SCTP_PARTIAL_DELIVERY_EVENT`).
    PartialDeliveryAborted {
        /// The stream.
        stream: StreamId,
    },
    /// All data has been acknowledged (`SCTP_SENDER_DRY_EVENT`).
    SenderDry,
    /// Streams were reset (`SCTP_STREAM_RESET_EVENT`, RFC 6525 §6.1.1).
    StreamsReset {
        /// Whether these are our outgoing streams or the peer's.
        outgoing: bool,
        /// The streams; all of them if empty.
        streams: Vec<StreamId>,
        /// The outcome.
        outcome: ReconfigurationOutcome,
    },
    /// Streams were added (`SCTP_STREAM_CHANGE_EVENT`, RFC 6525 §6.1.3).
    StreamsAdded {
        /// The new number of outbound streams.
        outbound: u16,
        /// The new number of inbound streams.
        inbound: u16,
        /// The outcome.
        outcome: ReconfigurationOutcome,
    },
    /// TSNs and streams were reset (`SCTP_ASSOC_RESET_EVENT`, RFC 6525 §6.1.2).
    AssociationReset {
        /// The outcome.
        outcome: ReconfigurationOutcome,
        /// The TSN of the next DATA chunk that is sent.
        next_tsn: Tsn,
        /// The TSN of the next DATA chunk that is expected from the peer.
        expected_tsn: Tsn,
    },
    /// The peer reported an error that does not end the association (`SCTP_REMOTE_ERROR`).
    RemoteError {
        /// The cause code (RFC 9260 §3.3.10).
        cause: u16,
    },
}

/// A change of a path (RFC 6458 §6.1.2, RFC 7829 §7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathChange {
    /// Verified for the first time (`SCTP_ADDR_CONFIRMED`).
    Confirmed,
    /// Usable again (`SCTP_ADDR_AVAILABLE`).
    Active,
    /// Probably broken: used only if there is nothing better (`SCTP_ADDR_POTENTIALLY_FAILED`).
    PotentiallyFailed,
    /// Broken (`SCTP_ADDR_UNREACHABLE`).
    Inactive,
    /// New (`SCTP_ADDR_ADDED`).
    Added,
    /// Gone (`SCTP_ADDR_REMOVED`).
    Removed,
    /// It is now the primary path (`SCTP_ADDR_MADE_PRIM`).
    MadePrimary,
    /// The UDP port of the peer changed (assigned by a NAT, RFC 6951 §5.4).
    Rebound,
}

impl PathChange {
    /// Returns the name used in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Confirmed => "confirmed",
            Self::Active => "active",
            Self::PotentiallyFailed => "potentially-failed",
            Self::Inactive => "inactive",
            Self::Added => "added",
            Self::Removed => "removed",
            Self::MadePrimary => "made-primary",
            Self::Rebound => "rebound",
        }
    }
}

/// A request to the peer about one of our addresses (RFC 5061 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OwnAddressChange {
    /// To add it.
    Added,
    /// To remove it.
    Removed,
    /// To use it as the primary destination.
    MadePrimary,
}

impl OwnAddressChange {
    /// Returns the name used in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Added => "added",
            Self::Removed => "removed",
            Self::MadePrimary => "made-primary",
        }
    }
}

/// Why an association ended without a shutdown.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum LossReason {
    /// The peer did not answer the INIT or the COOKIE ECHO (RFC 9260 §5.1).
    NoAnswer,
    /// Too many consecutive retransmissions (RFC 9260 §8.1).
    PeerUnreachable,
    /// An ICMP message reported that SCTP does not get through.
    Refused(crate::io::Unreachable),
    /// The peer aborted it.
    AbortedByPeer {
        /// The cause codes (RFC 9260 §3.3.10).
        causes: Vec<u16>,
        /// The reason given by the peer's user, if any (cause 12).
        reason: Bytes,
    },
    /// The local user aborted it.
    Aborted,
    /// This side aborted it because the peer violated the protocol, with this cause code.
    ProtocolViolation {
        /// RFC 9260 §3.3.10.
        cause: u16,
    },
    /// This side aborted it during a shutdown, because the peer did not accept the remaining data
    /// ([`shutdown_stall`](crate::config::AssociationConfig::shutdown_stall)).
    Stalled,
}

/// The outcome of a re-configuration request (RFC 6525 §4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReconfigurationOutcome {
    /// It was performed.
    Performed,
    /// The peer denied it.
    Denied,
    /// The peer does not support the request, or found an error in it.
    Failed,
}

impl ReconfigurationOutcome {
    /// Returns the name used in JSON.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Performed => "performed",
            Self::Denied => "denied",
            Self::Failed => "failed",
        }
    }
}
