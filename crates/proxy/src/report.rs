//! The outcome of a client.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use eyas::{ConnectionInfo, RaceRecording};
use eyas_relay::destination::{Destination, RequestRefusal};
use eyas_relay::handshake::HandshakeProtocol;

/// The outcome of one client, reported when it has disconnected.
#[derive(Debug)]
#[non_exhaustive]
pub struct ProxyClientReport {
    /// When it connected.
    pub at: SystemTime,
    /// How long it was connected.
    pub took: Duration,
    /// Its address.
    pub client: SocketAddr,
    /// The authenticated user.
    pub user: Option<String>,
    /// Its protocol, if detected.
    pub protocol: Option<HandshakeProtocol>,
    /// Its destination, if it named one.
    pub destination: Option<Destination>,
    /// The connection to the destination, if there was one.
    pub connection: Option<Arc<ConnectionInfo>>,
    /// What decided the race, if it was won.
    pub won_by: Option<WonBy>,
    /// The record of the race, if there was one.
    pub race: Option<RaceRecording>,
    /// Bytes from the client to the destination.
    pub sent: u64,
    /// Bytes from the destination to the client.
    pub received: u64,
    /// The counts of its datagrams, if it requested UDP.
    pub datagrams: Option<DatagramReport>,
    /// How it ended.
    pub end: ClientEnding,
}

/// The datagrams of an association.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DatagramReport {
    /// From the client.
    pub sent: u64,
    /// To the client.
    pub received: u64,
    /// In either direction, by reason, in the order of [`DropReason::NAMES`].
    pub dropped: [u64; DropReason::NAMES.len()],
    /// Why another proxy last refused to forward them to a destination.
    pub refusal: Option<RequestRefusal>,
}

/// Why a datagram was dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum DropReason {
    /// Its sender is not the client of the association.
    NotTheClient,
    /// It is a fragment (RFC 1928 §7).
    Fragment,
    /// It is malformed.
    Malformed,
    /// A rule forbids its destination.
    NotAllowed,
    /// Its destination has no address, or none that this machine can send to.
    Unreachable,
    /// A queue is full.
    Full,
    /// The client has sent nothing to its source, nor to another address of the same name.
    Unsolicited,
}

impl DropReason {
    /// All names, in the order of the variants.
    pub const NAMES: [&str; 7] =
        ["stranger", "fragment", "malformed", "not-allowed", "no-way", "full", "unsolicited"];
}

/// What decided a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WonBy {
    /// The transport was established: the client's first bytes cannot be sent to several servers,
    /// or the client waits for the server.
    Transport,
    /// The server's first byte: it answered a ClientHello, or sent first.
    FirstByte,
}

impl WonBy {
    /// Returns the name used in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transport => "transport",
            Self::FirstByte => "first-byte",
        }
    }
}

/// How a client ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ClientEnding {
    /// Both sides ended their streams.
    Done,
    /// The client was refused, with this reason.
    Refused(RequestRefusal),
    /// The client got a success reply, and then no server answered.
    Unanswered(RequestRefusal),
    /// The client left before there was a connection.
    Left,
    /// The client broke the connection.
    Client(String),
    /// The destination broke the connection.
    Destination(String),
    /// It was idle for too long.
    Idle,
    /// The proxy was stopped.
    Stopped,
}

impl ClientEnding {
    /// Returns the name used in JSON and metrics.
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::Refused(_) => "refused",
            Self::Unanswered(_) => "unanswered",
            Self::Left => "left",
            Self::Client(_) => "client-broke",
            Self::Destination(_) => "destination-broke",
            Self::Idle => "idle",
            Self::Stopped => "stopped",
        }
    }

    /// All names, in the order of the variants.
    pub const NAMES: [&str; 8] = [
        "done",
        "refused",
        "unanswered",
        "left",
        "client-broke",
        "destination-broke",
        "idle",
        "stopped",
    ];

    /// Returns details as text for people.
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::Refused(why) | Self::Unanswered(why) => Some(why.to_string()),
            Self::Client(why) | Self::Destination(why) => Some(why.clone()),
            Self::Done | Self::Left | Self::Idle | Self::Stopped => None,
        }
    }
}
