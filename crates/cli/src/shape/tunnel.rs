//! The object of `eyas tunnel status`: a tunnel writes it to who asks, and it is printed as `docs/json.md`
//! has it.

use std::time::Duration;

use eyas_relay::tunnel::frame::Purpose;
use eyas_relay::tunnel::packets::PacketCounts;
use eyas_relay::tunnel::session::ChannelReading;
use eyas_relay::tunnel::{PathReading, SessionReading};
use serde::{Deserialize, Serialize};

use super::millis;

/// The object of `eyas tunnel status`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct TunnelStatusShape {
    /// Those that were found.
    pub(crate) tunnels: Vec<TunnelShape>,
}

/// A process of `eyas tunnel`.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct TunnelShape {
    /// Its process.
    pub(crate) process: u32,
    /// Its version.
    pub(crate) version: String,
    /// `client` or `server`.
    pub(crate) role: String,
    /// The server as the client was told of it, or where the server listens.
    pub(crate) name: String,
    /// What is forwarded, in words.
    pub(crate) forwards: Vec<String>,
    /// How long it has been running.
    pub(crate) up_ms: f64,
    /// Its sessions.
    pub(crate) sessions: Vec<TunnelSessionShape>,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct TunnelSessionShape {
    /// Who is at the other end: a server's name, or what `authorized_keys` calls a key.
    pub(crate) peer: String,
    /// Where the other end was when it was connected.
    pub(crate) remote: String,
    /// What carries it.
    pub(crate) transport: String,
    /// How long it has been up.
    pub(crate) up_ms: f64,
    /// Bytes of connections so far, to the other end.
    pub(crate) sent: u64,
    /// The same, from it.
    pub(crate) received: u64,
    /// Streams of the transport in use.
    pub(crate) streams: usize,
    /// Packets of an interface, if both ends have one.
    #[serde(default)]
    pub(crate) packets: Option<PacketsShape>,
    /// The lines.
    pub(crate) paths: Vec<TunnelPathShape>,
    /// How many channels there are.
    pub(crate) channels: usize,
    /// Those of them that have carried most.
    pub(crate) busiest: Vec<ChannelShape>,
}

/// Packets of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct PacketsShape {
    /// Packets that were sent.
    pub(crate) sent: u64,
    /// Their bytes.
    pub(crate) sent_bytes: u64,
    /// Packets that have come.
    pub(crate) received: u64,
    /// Their bytes.
    pub(crate) received_bytes: u64,
    /// Packets that waited for too long.
    pub(crate) late: u64,
    /// Packets that were too many to wait.
    pub(crate) overflow: u64,
    /// Packets that came with a source that is not the other end's.
    pub(crate) forged: u64,
    /// What came and is no packet.
    pub(crate) malformed: u64,
    /// Packets that came and that the interface did not take.
    pub(crate) refused: u64,
}

/// A path. What is counted is what this end sends.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct TunnelPathShape {
    /// Our address, if it is known.
    pub(crate) local: Option<String>,
    /// The other end's.
    pub(crate) remote: String,
    /// `active`, `inactive`, `potentially-failed` or `unconfirmed`.
    pub(crate) state: String,
    /// Whether it is the one that is used where only one is.
    pub(crate) primary: bool,
    /// The smoothed round trip.
    pub(crate) rtt_ms: Option<f64>,
    /// The congestion window, in bytes.
    pub(crate) window: Option<u64>,
    /// Bytes that have arrived.
    pub(crate) delivered: u64,
    /// Bytes that were lost.
    pub(crate) lost: u64,
    /// Bits that arrived in a second, of late. A tunnel does not say so: who asks twice knows.
    pub(crate) rate: Option<f64>,
}

/// A channel.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct ChannelShape {
    /// Its number.
    pub(crate) id: u32,
    /// The stream that it is on.
    pub(crate) stream: u16,
    /// `connect`, `listen`, `accepted` or `packets`.
    pub(crate) kind: String,
    /// Where it leads, where is listened, who has connected, or what a client's interface has.
    pub(crate) place: String,
    /// Whether this end has opened it.
    pub(crate) own: bool,
    /// Whether it was not answered yet.
    pub(crate) waiting: bool,
    /// Bytes that were sent.
    pub(crate) sent: u64,
    /// Bytes that have come.
    pub(crate) received: u64,
    /// Bytes that wait to be sent.
    pub(crate) unsent: usize,
    /// Bytes that nobody has read yet.
    pub(crate) unread: usize,
}

impl From<&SessionReading> for TunnelSessionShape {
    fn from(session: &SessionReading) -> Self {
        Self {
            peer: session.peer.clone(),
            remote: session.remote.to_string(),
            transport: session.transport.to_string(),
            up_ms: millis(session.up),
            sent: session.traffic.sent,
            received: session.traffic.received,
            streams: session.streams,
            packets: session.packets.as_ref().map(PacketsShape::from),
            paths: session.paths.iter().map(TunnelPathShape::from).collect(),
            channels: session.channels,
            busiest: session.busiest.iter().map(ChannelShape::from).collect(),
        }
    }
}

impl From<&PacketCounts> for PacketsShape {
    fn from(counts: &PacketCounts) -> Self {
        Self {
            sent: counts.sent,
            sent_bytes: counts.sent_bytes,
            received: counts.received,
            received_bytes: counts.received_bytes,
            late: counts.late,
            overflow: counts.overflow,
            forged: counts.forged,
            malformed: counts.malformed,
            refused: counts.refused,
        }
    }
}

impl From<&PathReading> for TunnelPathShape {
    fn from(path: &PathReading) -> Self {
        Self {
            local: path.local.map(|local| local.to_string()),
            remote: path.remote.to_string(),
            state: path.state.to_owned(),
            primary: path.is_primary,
            rtt_ms: path.rtt.map(millis),
            window: path.window,
            delivered: path.delivered,
            lost: path.lost,
            rate: None,
        }
    }
}

impl From<&ChannelReading> for ChannelShape {
    fn from(channel: &ChannelReading) -> Self {
        let (kind, place) = match &channel.purpose {
            Purpose::Connect(to) => ("connect", to.to_string()),
            Purpose::Listen { bind, port } => ("listen", format!("{bind}:{port}")),
            Purpose::Accepted { peer, .. } => ("accepted", peer.to_string()),
            Purpose::Packets { addresses } => {
                let addresses: Vec<_> = addresses.iter().map(ToString::to_string).collect();
                ("packets", addresses.join(" and "))
            }
        };
        Self {
            id: channel.id,
            stream: channel.lane.0,
            kind: kind.to_owned(),
            place,
            own: channel.is_own,
            waiting: channel.is_waiting,
            sent: channel.traffic.sent,
            received: channel.traffic.received,
            unsent: channel.unsent,
            unread: channel.unread,
        }
    }
}

impl TunnelShape {
    /// Says of each path at which rate it was used since the same tunnel looked like this.
    pub(crate) fn compare(&mut self, before: &Self, passed: Duration) {
        for session in &mut self.sessions {
            let is_same = |one: &&TunnelSessionShape| {
                // Another session cannot be younger and have come before.
                (&one.peer, &one.remote, one.up_ms <= session.up_ms)
                    == (&session.peer, &session.remote, true)
            };
            let Some(old) = before.sessions.iter().find(is_same) else { continue };
            for path in &mut session.paths {
                let is_same = |one: &&TunnelPathShape| one.remote == path.remote;
                let Some(old) = old.paths.iter().find(is_same) else { continue };
                let bytes = path.delivered.saturating_sub(old.delivered) as f64;
                path.rate = Some((8.0 * bytes / passed.as_secs_f64().max(1e-3)).round());
            }
        }
    }
}
