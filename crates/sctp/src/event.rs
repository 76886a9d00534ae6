//! What an association tells its user: the notifications of RFC 6458 §6.1.

use alloc::vec::Vec;
use bytes::Bytes;
use core::net::{IpAddr, SocketAddr};

use crate::identifier::{PathId, Ppid, StreamId};

/// One notification.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event {
    /// The peer sent its INIT ACK: it is there and speaks SCTP, but holds no state yet. With
    /// [`crate::config::ConnectOptions::hold_at_init_ack`] nothing more is sent until
    /// [`crate::endpoint::Endpoint::proceed`]; without, it is only for information.
    Answered,
    /// The association is up (`SCTP_COMM_UP`): streams outbound and inbound as negotiated.
    Up {
        /// Streams that this side may send on.
        outbound: u16,
        /// Streams that the peer may send on.
        inbound: u16,
        /// Whether the peer opened it.
        by_peer: bool,
    },
    /// The peer came back without having said goodbye (`SCTP_RESTART`); unsent messages are kept,
    /// what was under way is lost.
    Restarted,
    /// It could not be set up (`SCTP_CANT_STR_ASSOC`) or was lost (`SCTP_COMM_LOST`). The last event.
    Lost(LossReason),
    /// Closed in an orderly manner; all data arrived (`SCTP_SHUTDOWN_COMP`). The last event.
    Closed,
    /// The peer wants to end; no more can be sent, what is queued still goes (`SCTP_SHUTDOWN_EVENT`).
    PeerShutdown,
    /// There is something to receive, after there was nothing.
    Readable,
    /// There is room to send again, after there was none.
    Writable,
    /// A path changed (`SCTP_PEER_ADDR_CHANGE`).
    Path {
        /// Which one.
        path: PathId,
        /// The address of the peer at its end.
        remote: SocketAddr,
        /// What happened to it.
        change: PathChange,
    },
    /// The peer answered a wish to change which of our addresses it sends to (RFC 5061).
    OwnAddress {
        /// The address of ours.
        address: IpAddr,
        /// What was wished.
        change: OwnAddressChange,
        /// Why it was not done: the cause code (RFC 9260 §3.3.10, RFC 5061 §4.3). `None` if it was.
        cause: Option<u16>,
    },
    /// Messages that could not be delivered (`SCTP_SEND_FAILED_EVENT`, also for those given up by
    /// partial reliability).
    SendFailed {
        /// The stream.
        stream: StreamId,
        /// What the caller gave with the message.
        context: u32,
        /// Its payload protocol identifier.
        ppid: Ppid,
        /// Whether it could overtake the messages of its stream.
        unordered: bool,
        /// Whether a part of it may have reached the peer.
        sent: bool,
        /// The message, all of it.
        data: Bytes,
    },
    /// The peer gave up on a message of which a part was delivered (`SCTP_PARTIAL_DELIVERY_EVENT`).
    PartialDeliveryAborted {
        /// The stream.
        stream: StreamId,
    },
    /// Everything handed in has been acknowledged (`SCTP_SENDER_DRY_EVENT`).
    SenderDry,
    /// Streams were reset (`SCTP_STREAM_RESET_EVENT`, RFC 6525 §6.1.1).
    StreamsReset {
        /// Our streams, or the peer's.
        outgoing: bool,
        /// Which; all of them if empty.
        streams: Vec<StreamId>,
        /// How it ended.
        outcome: ReconfigurationOutcome,
    },
    /// Streams were added (`SCTP_STREAM_CHANGE_EVENT`, RFC 6525 §6.1.3).
    StreamsAdded {
        /// Streams that this side may send on now.
        outbound: u16,
        /// Streams that the peer may send on now.
        inbound: u16,
        /// How it ended.
        outcome: ReconfigurationOutcome,
    },
    /// TSNs and streams started anew (`SCTP_ASSOC_RESET_EVENT`, RFC 6525 §6.1.2).
    AssociationReset {
        /// How it ended.
        outcome: ReconfigurationOutcome,
    },
    /// The peer reported an error that does not end the association (`SCTP_REMOTE_ERROR`).
    RemoteError {
        /// The cause code (RFC 9260 §3.3.10).
        cause: u16,
    },
}

/// What happened to a path (RFC 6458 §6.1.2, RFC 7829 §7.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PathChange {
    /// Verified for the first time (`SCTP_ADDR_CONFIRMED`).
    Confirmed,
    /// Usable again (`SCTP_ADDR_AVAILABLE`).
    Active,
    /// Probably broken: used only if nothing better is there (`SCTP_ADDR_POTENTIALLY_FAILED`).
    PotentiallyFailed,
    /// Broken (`SCTP_ADDR_UNREACHABLE`).
    Inactive,
    /// New (`SCTP_ADDR_ADDED`).
    Added,
    /// Gone (`SCTP_ADDR_REMOVED`).
    Removed,
    /// It is the primary path now (`SCTP_ADDR_MADE_PRIM`).
    MadePrimary,
    /// The UDP port of the peer changed (a NAT gave it another one, RFC 6951 §5.4).
    Rebound,
}

impl PathChange {
    /// What JSON calls it.
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

/// What the peer was asked about an address of ours (RFC 5061 §4.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum OwnAddressChange {
    /// To send to it, too.
    Added,
    /// Not to send to it any more.
    Removed,
    /// To send to it first.
    MadePrimary,
}

impl OwnAddressChange {
    /// What JSON calls it.
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
    /// Too many retransmissions in a row (RFC 9260 §8.1).
    PeerUnreachable,
    /// Something on the way said that SCTP does not get through.
    Refused(crate::io::Unreachable),
    /// The peer aborted it.
    AbortedByPeer {
        /// The cause codes it gave (RFC 9260 §3.3.10).
        causes: Vec<u16>,
        /// Its own words, if it gave some (cause 12).
        reason: Bytes,
    },
    /// This side aborted it, as its user wished.
    Aborted,
    /// This side aborted it because the peer broke the protocol: the cause code that was sent.
    ProtocolViolation {
        /// RFC 9260 §3.3.10.
        cause: u16,
    },
    /// This side aborted it: it was to end, and the peer did not take what it still had to have
    /// ([`shutdown_stall`](crate::config::AssociationConfig::shutdown_stall)).
    Stalled,
}

/// How a request for re-configuration ended (RFC 6525 §4.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReconfigurationOutcome {
    /// It was done.
    Performed,
    /// The peer said no.
    Denied,
    /// The peer does not know the request, or found an error in it.
    Failed,
}

impl ReconfigurationOutcome {
    /// What JSON calls it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Performed => "performed",
            Self::Denied => "denied",
            Self::Failed => "failed",
        }
    }
}
