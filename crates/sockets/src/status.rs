//! What a stack can show of itself: for `eyas sctp status`.

use alloc::{string::String, vec::Vec};
use core::net::{IpAddr, SocketAddr};

use serde::Serialize;

use crate::io::{AssocId, Domain, Style};

/// A stack at one moment.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct StackStatus {
    /// Its sockets, in the order in which they were made.
    pub sockets: Vec<SocketStatus>,
    /// Its associations, those without a socket included.
    pub associations: Vec<AssociationStatus>,
    /// Packets and what was wrong with them.
    pub counters: CounterStatus,
    /// Options that programs asked for and that are not known here.
    pub unknown_options: Vec<UnknownOption>,
}

/// A socket.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SocketStatus {
    /// Its number in this stack.
    pub id: u64,
    /// IPv4 or IPv6.
    pub domain: Domain,
    /// One-to-one or one-to-many.
    pub style: Style,
    /// `closed`, `bound`, `listening`, `connecting`, `connected`, `ended`.
    pub state: &'static str,
    /// Its SCTP port, 0 if it has none yet.
    pub port: u16,
    /// The addresses that it is bound to; none if to all.
    pub addresses: Vec<IpAddr>,
    /// Its associations.
    pub associations: Vec<AssocId>,
    /// Connections that wait for `accept`.
    pub backlog: usize,
    /// Bytes of notifications and messages that wait here, beside those of the associations.
    pub queued: usize,
    /// What `poll` says.
    pub readiness: String,
}

/// An association.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct AssociationStatus {
    /// As programs know it.
    pub id: AssocId,
    /// Its socket; none once that was closed.
    pub socket: Option<u64>,
    /// RFC 9260 §4.
    pub state: &'static str,
    /// Our SCTP port.
    pub local_port: u16,
    /// The peer's.
    pub remote_port: u16,
    /// Streams to send on.
    pub outbound_streams: u16,
    /// Streams to receive on.
    pub inbound_streams: u16,
    /// The peer's window, in bytes.
    pub peer_window: u32,
    /// Our window, in bytes.
    pub window: u32,
    /// Bytes handed in and not yet acknowledged.
    pub send_queue: usize,
    /// Its paths.
    pub paths: Vec<PathStatus>,
}

/// A path of an association.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct PathStatus {
    /// The peer's address; the port is that of the UDP encapsulation, 0 without.
    pub remote: SocketAddr,
    /// Our address, if it is not left to the routing.
    pub local: Option<IpAddr>,
    /// `active`, `inactive`, `potentially failed`, `unconfirmed`.
    pub state: &'static str,
    /// Whether new data takes it.
    pub primary: bool,
    /// Congestion window, in bytes.
    pub congestion_window: usize,
    /// Bytes under way.
    pub outstanding: usize,
    /// Smoothed round-trip time, in milliseconds, once measured.
    pub smoothed_rtt_ms: Option<f64>,
    /// Retransmission timeout, in milliseconds.
    pub rto_ms: f64,
    /// Bytes of the largest SCTP packet.
    pub mtu: usize,
}

/// What was counted over all associations.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct CounterStatus {
    /// Packets taken in.
    pub packets_in: u64,
    /// Packets given out.
    pub packets_out: u64,
    /// Packets directly over IP for a port that nobody has here: another program's, or nobody's.
    pub packets_for_others: u64,
    /// Packets for no association.
    pub out_of_the_blue: u64,
    /// Packets too short, malformed, or with a wrong checksum.
    pub broken_packets: u64,
    /// Packets with a wrong verification tag.
    pub bad_tags: u64,
    /// Chunks retransmitted.
    pub retransmissions: u64,
    /// Chunks received again.
    pub duplicate_data: u64,
    /// Associations that were opened or taken in.
    pub associations: u64,
}

/// An option that is not known here.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct UnknownOption {
    /// `SOL_SCTP`, …
    pub level: i32,
    /// Its number.
    pub name: i32,
    /// How often it was asked for.
    pub count: u64,
}
