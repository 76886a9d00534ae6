//! The object of `eyas sctp status`, read as a supervisor shows itself and printed as `docs/json.md` has
//! it.

use serde::{Deserialize, Serialize};

/// The object of `eyas sctp status`.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct SctpStatusShape {
    /// Those that were found.
    pub(crate) supervisors: Vec<SupervisorShape>,
}

/// Who has the sockets of programs.
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
    /// The UDP port at which peers are spoken to first.
    pub(crate) peer_udp_port: Option<u16>,
    /// Whether new data takes all paths.
    pub(crate) multipath: bool,
    /// The addresses that sockets may use now.
    pub(crate) addresses: Vec<String>,
    /// How long it has been serving.
    pub(crate) up_ms: f64,
    /// Its sockets.
    pub(crate) sockets: Vec<SocketShape>,
    /// Its associations, those whose socket was closed included.
    pub(crate) associations: Vec<AssociationShape>,
    /// What was counted over all associations.
    pub(crate) counters: CountersShape,
    /// Options that programs asked for and did not get (`ENOPROTOOPT`).
    pub(crate) unknown_options: Vec<OptionShape>,
}

/// A socket.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct SocketShape {
    /// Its number there.
    pub(crate) id: u64,
    /// Which addresses it takes.
    pub(crate) domain: DomainShape,
    /// What it is to its program.
    pub(crate) style: StyleShape,
    /// `closed`, `bound`, `listening`, `connecting`, `connected` or `ended`.
    pub(crate) state: String,
    /// Its SCTP port, 0 if it has none yet.
    pub(crate) port: u16,
    /// The addresses that it is bound to; none if to all.
    pub(crate) addresses: Vec<String>,
    /// Its associations.
    pub(crate) associations: Vec<i32>,
    /// Connections that wait for `accept`.
    pub(crate) backlog: u64,
    /// Bytes of notifications and messages that wait here, beside those of the associations.
    pub(crate) queued: u64,
    /// What `poll` says, such as `IN|OUT`.
    pub(crate) readiness: String,
}

/// Which addresses a socket takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) enum DomainShape {
    /// `AF_INET`.
    #[serde(rename(deserialize = "Inet", serialize = "ipv4"))]
    Inet,
    /// `AF_INET6`.
    #[serde(rename(deserialize = "Inet6", serialize = "ipv6"))]
    Inet6,
}

/// What a socket is to its program.
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
    /// As programs know it.
    pub(crate) id: i32,
    /// Its socket; none once that was closed.
    pub(crate) socket: Option<u64>,
    /// RFC 9260 §4, such as `ESTABLISHED`.
    pub(crate) state: String,
    /// Our SCTP port.
    pub(crate) local_port: u16,
    /// The peer's.
    pub(crate) remote_port: u16,
    /// Streams to send on.
    pub(crate) outbound_streams: u16,
    /// Streams to receive on.
    pub(crate) inbound_streams: u16,
    /// The peer's window, in bytes.
    pub(crate) peer_window: u32,
    /// Our window, in bytes.
    pub(crate) window: u32,
    /// Bytes handed in and not yet acknowledged.
    pub(crate) send_queue: u64,
    /// Its paths.
    pub(crate) paths: Vec<SocketPathShape>,
}

/// A path of an association.
#[derive(Clone, Debug, PartialEq, Deserialize, Serialize)]
pub(crate) struct SocketPathShape {
    /// The peer's address; the port is that of the UDP encapsulation, 0 without.
    pub(crate) remote: String,
    /// Our address, if it is not left to the routing.
    pub(crate) local: Option<String>,
    /// `active`, `inactive`, `potentially-failed` or `unconfirmed`.
    pub(crate) state: String,
    /// Whether new data takes it.
    pub(crate) primary: bool,
    /// Congestion window, in bytes.
    pub(crate) congestion_window: u64,
    /// Bytes under way.
    pub(crate) outstanding: u64,
    /// Smoothed round-trip time, once measured.
    pub(crate) smoothed_rtt_ms: Option<f64>,
    /// Retransmission timeout.
    pub(crate) rto_ms: f64,
    /// Bytes of the largest SCTP packet.
    pub(crate) mtu: u64,
}

/// What was counted over all associations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct CountersShape {
    /// Packets taken in.
    pub(crate) packets_in: u64,
    /// Packets given out.
    pub(crate) packets_out: u64,
    /// Packets for a port that nobody has there.
    pub(crate) packets_for_others: u64,
    /// Packets for no association.
    pub(crate) out_of_the_blue: u64,
    /// Packets too short, malformed, or with a wrong checksum.
    pub(crate) broken_packets: u64,
    /// Packets with a wrong verification tag.
    pub(crate) bad_tags: u64,
    /// Chunks retransmitted.
    pub(crate) retransmissions: u64,
    /// Chunks received again.
    pub(crate) duplicate_data: u64,
    /// Associations that were opened or taken in.
    pub(crate) associations: u64,
}

/// An option that was not there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize)]
pub(crate) struct OptionShape {
    /// `SOL_SCTP` is 132.
    pub(crate) level: i32,
    /// Its number.
    pub(crate) name: i32,
    /// How often it was asked for.
    pub(crate) count: u64,
}

impl SupervisorShape {
    /// Reads what a supervisor shows of itself.
    pub(crate) fn read(shown: &[u8]) -> serde_json::Result<Self> {
        let mut shape: Self = serde_json::from_slice(shown)?;
        for path in shape.associations.iter_mut().flat_map(|one| &mut one.paths) {
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
