//! The state and events of associations as JSON, as the Python and C packages return them. Times
//! are in milliseconds, with at most three decimals.

use std::net::IpAddr;
use std::time::Duration;

use eyas_sctp::endpoint::{PathStatus, Status};
use eyas_sctp::event::Event;
use eyas_sctp::identifier::StreamId;
use serde::Serialize;

use super::SctpError;

/// Converts a duration to milliseconds, with whole microseconds as decimals: more digits are noise.
fn milliseconds(span: Duration) -> f64 {
    span.as_micros() as f64 / 1000.0
}

/// A snapshot of an association: see [`Status`].
#[derive(Clone, Debug, Serialize)]
pub struct AssociationJson {
    /// The state of the association (RFC 9260 §4).
    state: &'static str,
    /// Our SCTP port.
    local_port: u16,
    /// The peer's SCTP port.
    remote_port: u16,
    /// Streams that this side may send on.
    outbound_streams: u16,
    /// Streams that the peer may send on.
    inbound_streams: u16,
    /// Our window, in bytes of user data.
    window: u32,
    /// The peer's window, in bytes of user data.
    peer_window: u32,
    /// Bytes of user data that were accepted for sending and are not yet acknowledged.
    queued: usize,
    /// The number of the path that new data is sent on.
    primary: u16,
    /// All paths, ordered by number.
    paths: Vec<Path>,
}

/// A path at one moment, as `eyas race --json` has it, with its number and more: see
/// [`PathStatus`].
#[derive(Clone, Debug, Serialize)]
struct Path {
    /// Its number.
    path: u16,
    /// The peer's address.
    remote: IpAddr,
    /// Our address, unless routing chooses it.
    local: Option<IpAddr>,
    /// The peer's UDP port, if the path uses UDP encapsulation (RFC 6951).
    udp_port: Option<u16>,
    /// Whether it is verified and works.
    state: &'static str,
    /// The smoothed round-trip time, once measured.
    rtt_ms: Option<f64>,
    /// The retransmission timeout.
    rto_ms: f64,
    /// The congestion window, in bytes of user data.
    window: usize,
    /// Bytes of user data in flight.
    outstanding: usize,
    /// The size in bytes of the largest SCTP packet that can be sent on it.
    mtu: usize,
}

/// A notification (RFC 6458 §6.1), with its name as `event`: see [`Event`].
#[derive(Clone, Debug, Serialize)]
#[serde(transparent)]
pub struct EventJson(Notification);

/// The names and members are those of [`Event`].
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Notification {
    Up {
        outbound: u16,
        inbound: u16,
        by_peer: bool,
    },
    Answered,
    Restarted,
    Lost {
        /// A description.
        reason: String,
    },
    Closed,
    PeerShutdown,
    Path {
        path: u16,
        remote: IpAddr,
        change: &'static str,
    },
    OwnAddress {
        address: IpAddr,
        change: &'static str,
        cause: Option<u16>,
    },
    SendFailed {
        stream: u16,
        context: u32,
        ppid: u32,
        unordered: bool,
        sent: bool,
        /// The size of the message in bytes; the message itself is not included.
        size: usize,
    },
    PartialDeliveryAborted {
        stream: u16,
    },
    SenderDry,
    StreamsReset {
        outgoing: bool,
        streams: Vec<u16>,
        outcome: &'static str,
    },
    StreamsAdded {
        outbound: u16,
        inbound: u16,
        outcome: &'static str,
    },
    AssociationReset {
        outcome: &'static str,
    },
    RemoteError {
        cause: u16,
    },
    /// An event that this version does not know.
    Other,
}

impl From<&Status> for AssociationJson {
    fn from(status: &Status) -> Self {
        Self {
            state: status.state.name(),
            local_port: status.local_port,
            remote_port: status.remote_port,
            outbound_streams: status.outbound_streams,
            inbound_streams: status.inbound_streams,
            window: status.window,
            peer_window: status.peer_window,
            queued: status.queued,
            primary: status.primary.0,
            paths: status.paths.iter().map(Path::from).collect(),
        }
    }
}

impl From<&PathStatus> for Path {
    fn from(path: &PathStatus) -> Self {
        Self {
            path: path.id.0,
            remote: path.remote.ip(),
            local: path.local,
            udp_port: Some(path.remote.port()).filter(|port| *port != 0),
            state: path.state.name(),
            rtt_ms: path.smoothed_rtt.map(milliseconds),
            rto_ms: milliseconds(path.rto),
            window: path.congestion_window,
            outstanding: path.outstanding,
            mtu: path.mtu,
        }
    }
}

impl From<&Event> for EventJson {
    fn from(event: &Event) -> Self {
        Self(Notification::from(event))
    }
}

impl From<&Event> for Notification {
    fn from(event: &Event) -> Self {
        match *event {
            Event::Up { outbound, inbound, by_peer } => Self::Up { outbound, inbound, by_peer },
            Event::Answered => Self::Answered,
            Event::Restarted => Self::Restarted,
            Event::Lost(ref reason) => {
                Self::Lost { reason: SctpError::Lost(reason.clone()).to_string() }
            }
            Event::Closed => Self::Closed,
            Event::PeerShutdown => Self::PeerShutdown,
            Event::Path { path, remote, change } => {
                Self::Path { path: path.0, remote: remote.ip(), change: change.name() }
            }
            Event::OwnAddress { address, change, cause } => {
                Self::OwnAddress { address, change: change.name(), cause }
            }
            Event::SendFailed { stream, context, ppid, unordered, sent, ref data } => {
                let (stream, ppid, size) = (stream.0, ppid.0, data.len());
                Self::SendFailed { stream, context, ppid, unordered, sent, size }
            }
            Event::PartialDeliveryAborted { stream } => {
                Self::PartialDeliveryAborted { stream: stream.0 }
            }
            Event::SenderDry => Self::SenderDry,
            Event::StreamsReset { outgoing, ref streams, outcome } => {
                let streams = streams.iter().map(|StreamId(stream)| *stream).collect();
                Self::StreamsReset { outgoing, streams, outcome: outcome.name() }
            }
            Event::StreamsAdded { outbound, inbound, outcome } => {
                Self::StreamsAdded { outbound, inbound, outcome: outcome.name() }
            }
            Event::AssociationReset { outcome, .. } => {
                Self::AssociationReset { outcome: outcome.name() }
            }
            Event::RemoteError { cause } => Self::RemoteError { cause },
            _ => Self::Other,
        }
    }
}
