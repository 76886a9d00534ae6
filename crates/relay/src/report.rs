//! What became of a client.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use eyas::{ConnectionInfo, Recording};

use crate::associate::Dropped;
use crate::handshake::{Destination, Protocol, Refusal};

/// What became of one client, told once it has gone.
#[derive(Debug)]
#[non_exhaustive]
pub struct Report {
    /// When it came.
    pub at: SystemTime,
    /// For how long it was there.
    pub took: Duration,
    /// Who it is.
    pub client: SocketAddr,
    /// The user that it has shown to be.
    pub user: Option<String>,
    /// What it spoke, if that came out.
    pub protocol: Option<Protocol>,
    /// Where it wanted to go, if it came to say so.
    pub destination: Option<Destination>,
    /// The connection to there, if there was one.
    pub connection: Option<Arc<ConnectionInfo>>,
    /// What decided the race, if it was won.
    pub won_by: Option<WonBy>,
    /// How the race ran, if there was one.
    pub race: Option<Recording>,
    /// Bytes from the client to the destination.
    pub sent: u64,
    /// Bytes from the destination to the client.
    pub received: u64,
    /// What became of its datagrams, if it asked for UDP.
    pub datagrams: Option<Datagrams>,
    /// How it ended.
    pub end: Ending,
}

/// What became of the datagrams of an association.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Datagrams {
    /// From the client.
    pub sent: u64,
    /// To the client.
    pub received: u64,
    /// Either way, by the reason, in the order of [`Dropped::NAMES`].
    pub dropped: [u64; Dropped::NAMES.len()],
}

/// What decided a race.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WonBy {
    /// The transport was up: what the client says first is not as good said to several, or it waits
    /// for the server.
    Transport,
    /// The server spoke: it answered a ClientHello, or spoke first.
    FirstByte,
}

impl WonBy {
    /// The name used in JSON.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Transport => "transport",
            Self::FirstByte => "first-byte",
        }
    }
}

/// How it ended.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Ending {
    /// Both sides had said everything.
    Done,
    /// The client got nothing, and was told why.
    Refused(Refusal),
    /// The client was told that it is connected, and then nobody answered it.
    Unanswered(Refusal),
    /// The client left before there was a connection.
    Left,
    /// The client broke the connection.
    Client(String),
    /// The destination did.
    Destination(String),
    /// Nothing moved for as long as that may be.
    Idle,
    /// The proxy was stopped.
    Stopped,
}

impl Ending {
    /// The name used in JSON and metrics.
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

    /// What there is to say about it, for people.
    pub fn detail(&self) -> Option<String> {
        match self {
            Self::Refused(why) | Self::Unanswered(why) => Some(why.to_string()),
            Self::Client(why) | Self::Destination(why) => Some(why.clone()),
            Self::Done | Self::Left | Self::Idle | Self::Stopped => None,
        }
    }
}
