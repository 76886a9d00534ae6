//! The object of `eyas sctp status`, read from a supervisor and printed as described in
//! `docs/reference/json.md`.

use serde::{Deserialize, Serialize};

/// The object of `eyas sctp status`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct SctpStatusShape {
    /// The supervisors found.
    pub(crate) supervisors: Vec<SupervisorShape>,
}

/// A supervisor, which owns the sockets of programs.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct SupervisorShape {
    /// Its process.
    pub(crate) process: u32,
    /// Its version.
    pub(crate) version: String,
    /// The command that it was started for, or the path of its socket.
    pub(crate) serves: String,
    /// `udp` or `ip`.
    pub(crate) carrier: String,
    /// Its own UDP port.
    pub(crate) udp_port: Option<u16>,
    /// The UDP port of peers that packets are sent to initially.
    pub(crate) peer_udp_port: Option<u16>,
    /// Whether new data is sent on all paths.
    pub(crate) multipath: bool,
    /// The addresses that sockets may use now.
    pub(crate) addresses: Vec<String>,
    /// How long it has been serving.
    pub(crate) up_ms: f64,
    /// Its sockets.
    pub(crate) sockets: Vec<SocketShape>,
    /// Its associations, including those whose socket was closed.
    pub(crate) associations: Vec<AssociationShape>,
    /// Counters over all associations.
    pub(crate) counters: CountersShape,
    /// Options that programs asked for and that are not supported (`ENOPROTOOPT`).
    pub(crate) unknown_options: Vec<OptionShape>,
}

/// A socket.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct SocketShape {
    /// Its number in the supervisor.
    pub(crate) id: u64,
    /// The address family that it accepts.
    pub(crate) domain: DomainShape,
    /// Its type, as its program sees it.
    pub(crate) style: StyleShape,
    /// `closed`, `bound`, `listening`, `connecting`, `connected` or `ended`.
    pub(crate) state: String,
    /// Its SCTP port, 0 if it has none yet.
    pub(crate) port: u16,
    /// The addresses that it is bound to; empty if to all.
    pub(crate) addresses: Vec<String>,
    /// Its associations.
    pub(crate) associations: Vec<i32>,
    /// Connections waiting for `accept`.
    pub(crate) backlog: u64,
    /// Bytes of notifications and messages waiting here, in addition to those of the associations.
    pub(crate) queued: u64,
    /// The result of `poll`, such as `IN|OUT`.
    pub(crate) readiness: String,
}

/// The address family of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum DomainShape {
    /// `AF_INET`.
    #[serde(rename(deserialize = "Inet", serialize = "ipv4"))]
    Inet,
    /// `AF_INET6`.
    #[serde(rename(deserialize = "Inet6", serialize = "ipv6"))]
    Inet6,
}

/// The type of a socket, as its program sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum StyleShape {
    /// `SOCK_STREAM`.
    #[serde(rename(deserialize = "OneToOne", serialize = "one-to-one"))]
    OneToOne,
    /// `SOCK_SEQPACKET`.
    #[serde(rename(deserialize = "OneToMany", serialize = "one-to-many"))]
    OneToMany,
}

/// An association.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct AssociationShape {
    /// Its identifier, as programs see it.
    pub(crate) id: i32,
    /// Its socket; none once it was closed.
    pub(crate) socket: Option<u64>,
    /// The state (RFC 9260 §4), such as `ESTABLISHED`.
    pub(crate) state: String,
    /// Our SCTP port.
    pub(crate) local_port: u16,
    /// The peer's SCTP port.
    pub(crate) remote_port: u16,
    /// Streams to send on.
    pub(crate) outbound_streams: u16,
    /// Streams to receive on.
    pub(crate) inbound_streams: u16,
    /// The peer's window, in bytes.
    pub(crate) peer_window: u32,
    /// Our window, in bytes.
    pub(crate) window: u32,
    /// Bytes submitted and not yet acknowledged.
    pub(crate) send_queue: u64,
    /// Its paths.
    pub(crate) paths: Vec<SocketPathShape>,
}

/// A path of an association.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct SocketPathShape {
    /// The peer's address; the port is that of the UDP encapsulation, 0 without it.
    pub(crate) remote: String,
    /// Our address, if it is not left to the routing.
    pub(crate) local: Option<String>,
    /// `active`, `inactive`, `potentially-failed` or `unconfirmed`.
    pub(crate) state: String,
    /// Whether new data is sent on it.
    pub(crate) primary: bool,
    /// Congestion window, in bytes.
    pub(crate) congestion_window: u64,
    /// Bytes in flight.
    pub(crate) outstanding: u64,
    /// Smoothed round-trip time, once measured.
    pub(crate) smoothed_rtt_ms: Option<f64>,
    /// Retransmission timeout.
    pub(crate) rto_ms: f64,
    /// Bytes of the largest SCTP packet.
    pub(crate) mtu: u64,
}

/// Counters over all associations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct CountersShape {
    /// Packets received.
    pub(crate) packets_in: u64,
    /// Packets sent.
    pub(crate) packets_out: u64,
    /// Packets for an unused port.
    pub(crate) packets_for_others: u64,
    /// Packets that belong to no association.
    pub(crate) out_of_the_blue: u64,
    /// Packets too short, malformed, or with a wrong checksum.
    pub(crate) broken_packets: u64,
    /// Packets with a wrong verification tag.
    pub(crate) bad_tags: u64,
    /// Chunks retransmitted.
    pub(crate) retransmissions: u64,
    /// Chunks received again.
    pub(crate) duplicate_data: u64,
    /// Associations opened or accepted.
    pub(crate) associations: u64,
}

/// An unsupported option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct OptionShape {
    /// The level; `SOL_SCTP` is 132.
    pub(crate) level: i32,
    /// Its number.
    pub(crate) name: i32,
    /// How often it was requested.
    pub(crate) count: u64,
}

impl SupervisorShape {
    /// Reads the report of a supervisor.
    pub(crate) fn read(shown: &[u8]) -> serde_json::Result<Self> {
        let mut shape: Self = serde_json::from_slice(shown)?;
        for path in shape.associations.iter_mut().flat_map(|association| &mut association.paths) {
            path.state = path.state.replace(' ', "-");
            path.rto_ms = micros(path.rto_ms);
            path.smoothed_rtt_ms = path.smoothed_rtt_ms.map(micros);
        }
        Ok(shape)
    }
}

/// Rounds to at most three decimals.
fn micros(millis: f64) -> f64 {
    (millis * 1e3).round() / 1e3
}
