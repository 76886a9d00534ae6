//! The status of a stack, for `eyas sctp status`.

use alloc::{string::String, vec::Vec};
use core::net::{IpAddr, SocketAddr};

use eyas_sctp::counters::EndpointCounters;
use serde::Serialize;

use crate::io::{AssocId, SocketDomain, SocketStyle};

/// A snapshot of a stack.
#[derive(Clone, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct StackStatus {
    /// Its sockets, in the order of creation.
    pub sockets: Vec<SocketStatus>,
    /// Its associations, including those without a socket.
    pub associations: Vec<AssociationStatus>,
    /// Counters of packets and errors.
    pub counters: CounterStatus,
    /// Unsupported options that programs have used.
    pub unknown_options: Vec<UnknownOption>,
}

/// A socket.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct SocketStatus {
    /// Its number in this stack.
    pub id: u64,
    /// IPv4 or IPv6.
    pub domain: SocketDomain,
    /// One-to-one or one-to-many.
    pub style: SocketStyle,
    /// `closed`, `bound`, `listening`, `connecting`, `connected`, `ended`.
    pub state: &'static str,
    /// Its SCTP port, 0 if it has none yet.
    pub port: u16,
    /// The bound addresses; empty if bound to all.
    pub addresses: Vec<IpAddr>,
    /// Its associations.
    pub associations: Vec<AssocId>,
    /// Connections that wait for `accept`.
    pub backlog: usize,
    /// Bytes of notifications and messages queued here, in addition to those of the associations.
    pub queued: usize,
    /// The result of `poll`.
    pub readiness: String,
}

/// An association.
#[derive(Clone, Debug, Serialize)]
#[non_exhaustive]
pub struct AssociationStatus {
    /// The identifier used by programs.
    pub id: AssocId,
    /// Its socket; `None` once that was closed.
    pub socket: Option<u64>,
    /// The state (RFC 9260 §4).
    pub state: &'static str,
    /// Our SCTP port.
    pub local_port: u16,
    /// The peer's.
    pub remote_port: u16,
    /// The number of outbound streams.
    pub outbound_streams: u16,
    /// The number of inbound streams.
    pub inbound_streams: u16,
    /// The peer's window, in bytes.
    pub peer_window: u32,
    /// Our window, in bytes.
    pub window: u32,
    /// Bytes that are not acknowledged yet.
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
    /// The local address, unless it is left to the routing table.
    pub local: Option<IpAddr>,
    /// `active`, `inactive`, `potentially failed`, `unconfirmed`.
    pub state: &'static str,
    /// Whether new data is sent on it.
    pub primary: bool,
    /// Congestion window, in bytes.
    pub congestion_window: usize,
    /// Bytes in flight.
    pub outstanding: usize,
    /// Smoothed round-trip time, in milliseconds, once measured.
    pub smoothed_rtt_ms: Option<f64>,
    /// Retransmission timeout, in milliseconds.
    pub rto_ms: f64,
    /// The size of the largest SCTP packet in bytes.
    pub mtu: usize,
}

/// Counters over all associations.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[non_exhaustive]
pub struct CounterStatus {
    /// Packets received.
    pub packets_in: u64,
    /// Packets sent.
    pub packets_out: u64,
    /// Packets directly over IP for a port that is not bound here, whether or not another program
    /// uses it.
    pub packets_for_others: u64,
    /// Packets without an association.
    pub out_of_the_blue: u64,
    /// Packets too short, malformed, or with a wrong checksum.
    pub broken_packets: u64,
    /// Packets with a wrong verification tag.
    pub bad_tags: u64,
    /// Chunks retransmitted.
    pub retransmissions: u64,
    /// Duplicate chunks.
    pub duplicate_data: u64,
    /// Associations opened or accepted.
    pub associations: u64,
}

impl CounterStatus {
    /// Adds the counters of one endpoint.
    pub(crate) fn add(&mut self, endpoint: &EndpointCounters) {
        self.packets_in += endpoint.packets_in;
        self.packets_out += endpoint.packets_out;
        self.out_of_the_blue += endpoint.out_of_the_blue;
        self.broken_packets += endpoint.malformed_packets + endpoint.bad_checksums;
        self.bad_tags += endpoint.bad_tags;
        self.retransmissions += endpoint.retransmissions;
        self.duplicate_data += endpoint.duplicate_data;
    }
}

/// An unsupported option.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct UnknownOption {
    /// `SOL_SCTP`, …
    pub level: i32,
    /// Its number.
    pub name: i32,
    /// How often it was used.
    pub count: u64,
}
