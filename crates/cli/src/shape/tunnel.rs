//! The object of `eyas tunnel status`: a tunnel sends it on request, and it is printed as described in
//! `docs/reference/json.md`.

use std::time::Duration;

use eyas_tunnel::ChannelPurpose;
use eyas_tunnel::ChannelReading;
use eyas_tunnel::PacketCounts;
use eyas_tunnel::{PathReading, SessionReading};
use serde::{Deserialize, Serialize};

use super::millis;

/// The object of `eyas tunnel status`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct TunnelStatusShape {
    /// The tunnels found.
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
    /// The server as given to the client, or the address that the server listens on.
    pub(crate) name: String,
    /// The forwards, as text.
    pub(crate) forwards: Vec<String>,
    /// How long it has been running.
    pub(crate) up_ms: f64,
    /// Its sessions.
    pub(crate) sessions: Vec<TunnelSessionShape>,
}

/// A session.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct TunnelSessionShape {
    /// The other end: a server's name, or the name of a key in `authorized_keys`.
    pub(crate) peer: String,
    /// The address of the other end when it was connected, or that of the proxy.
    pub(crate) remote: String,
    /// The transport.
    pub(crate) transport: String,
    /// The proxy that it leads through, if any.
    #[serde(default)]
    pub(crate) proxy: Option<String>,
    /// How long it has been up.
    pub(crate) up_ms: f64,
    /// Bytes of connections sent to the other end so far.
    pub(crate) sent: u64,
    /// Bytes of connections received from it.
    pub(crate) received: u64,
    /// Streams of the transport in use.
    pub(crate) streams: usize,
    /// Packets of an interface, if both ends have one.
    #[serde(default)]
    pub(crate) packets: Option<PacketsShape>,
    /// Its paths.
    pub(crate) paths: Vec<TunnelPathShape>,
    /// The number of channels.
    pub(crate) channels: usize,
    /// The channels that have carried the most data.
    pub(crate) busiest: Vec<ChannelShape>,
}

/// Packets of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct PacketsShape {
    /// Packets sent.
    pub(crate) sent: u64,
    /// Their bytes.
    pub(crate) sent_bytes: u64,
    /// How many of them were sent beside the streams.
    #[serde(default)]
    pub(crate) sent_as_datagrams: u64,
    /// Packets received.
    pub(crate) received: u64,
    /// Their bytes.
    pub(crate) received_bytes: u64,
    /// Packets dropped because they had waited too long.
    pub(crate) late: u64,
    /// Packets dropped because the queue was full.
    pub(crate) overflow: u64,
    /// Received packets with a source address that does not belong to the other end.
    pub(crate) forged: u64,
    /// Received data that is not a packet.
    pub(crate) malformed: u64,
    /// Received packets that the interface did not accept.
    pub(crate) refused: u64,
}

/// A path. The counts are of data sent by this end.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct TunnelPathShape {
    /// Our address, if it is known.
    pub(crate) local: Option<String>,
    /// The other end's address.
    pub(crate) remote: String,
    /// `active`, `inactive`, `potentially-failed` or `unconfirmed`.
    pub(crate) state: String,
    /// Whether it is the path in use, where only one is used.
    pub(crate) primary: bool,
    /// The smoothed round trip.
    pub(crate) rtt_ms: Option<f64>,
    /// The congestion window, in bytes.
    pub(crate) window: Option<u64>,
    /// Bytes delivered.
    pub(crate) delivered: u64,
    /// Bytes lost.
    pub(crate) lost: u64,
    /// The recent rate in bits per second. A tunnel does not report it; it follows from two reports.
    pub(crate) rate: Option<f64>,
}

/// A channel.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct ChannelShape {
    /// Its number.
    pub(crate) id: u32,
    /// Its stream.
    pub(crate) stream: u16,
    /// `connect`, `listen`, `accepted` or `packets`.
    pub(crate) kind: String,
    /// Its destination, listening address, connected peer, or the addresses of a client's interface.
    pub(crate) place: String,
    /// Whether this end opened it.
    pub(crate) own: bool,
    /// Whether it has not been answered yet.
    pub(crate) waiting: bool,
    /// Bytes sent.
    pub(crate) sent: u64,
    /// Bytes received.
    pub(crate) received: u64,
    /// Bytes waiting to be sent.
    pub(crate) unsent: usize,
    /// Bytes not read yet.
    pub(crate) unread: usize,
}

impl From<&SessionReading> for TunnelSessionShape {
    fn from(session: &SessionReading) -> Self {
        Self {
            peer: session.peer.clone(),
            remote: session.remote.to_string(),
            transport: session.transport.to_string(),
            proxy: session.proxy.clone(),
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
            sent_as_datagrams: counts.sent_as_datagrams,
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
            ChannelPurpose::Connect(to) => ("connect", to.to_string()),
            ChannelPurpose::Listen { bind, port } => ("listen", format!("{bind}:{port}")),
            ChannelPurpose::ConnectUnix(path) => ("connect", path.to_string()),
            ChannelPurpose::ListenUnix(path) => ("listen", path.to_string()),
            ChannelPurpose::Accepted { peer, .. } => ("accepted", peer.to_string()),
            ChannelPurpose::Packets { addresses } => {
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
    /// Computes the rate of each path since an earlier report of the same tunnel.
    pub(crate) fn compare(&mut self, before: &Self, passed: Duration) {
        for session in &mut self.sessions {
            let is_same = |candidate: &&TunnelSessionShape| {
                // Another session cannot be younger than an earlier report.
                (&candidate.peer, &candidate.remote, candidate.up_ms <= session.up_ms)
                    == (&session.peer, &session.remote, true)
            };
            let Some(old) = before.sessions.iter().find(is_same) else { continue };
            for path in &mut session.paths {
                let is_same = |candidate: &&TunnelPathShape| candidate.remote == path.remote;
                let Some(old) = old.paths.iter().find(is_same) else { continue };
                let bytes = path.delivered.saturating_sub(old.delivered) as f64;
                path.rate = Some((8.0 * bytes / passed.as_secs_f64().max(1e-3)).round());
            }
        }
    }
}
