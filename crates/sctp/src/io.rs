//! The contract of an endpoint: inputs in, outputs out, time as an argument.
//!
//! Hand in an input or call one of the endpoint's methods, then drain `poll_output` until it gives
//! [`Output::Timeout`], then wait for the next input or for that time. `now` is a duration since an
//! epoch that the driver chose once for the endpoint; it never goes back (if it does, the latest
//! value seen counts). Nothing here blocks, and nothing that a peer sends makes it panic or gives
//! an error: it is counted ([`crate::counters`]).

use bytes::Bytes;
use core::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use crate::event::Event;
use crate::identifier::AssociationId;
pub use crate::wire::StructPacket;
use crate::wire::{Checksum, Packet};

/// Explicit congestion notification as the IP header carries it (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// The sender does not take part.
    #[default]
    NotCapable,
    /// ECT(1).
    Capable1,
    /// ECT(0).
    Capable0,
    /// A router on the path is congested.
    CongestionExperienced,
}

impl Ecn {
    /// The two bits of the IP header.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotCapable => 0,
            Self::Capable1 => 1,
            Self::Capable0 => 2,
            Self::CongestionExperienced => 3,
        }
    }

    /// What the lowest two bits of `traffic_class` say.
    #[must_use]
    pub const fn from_bits(traffic_class: u8) -> Self {
        match traffic_class & 3 {
            0 => Self::NotCapable,
            1 => Self::Capable1,
            2 => Self::Capable0,
            _ => Self::CongestionExperienced,
        }
    }
}

/// What the driver tells the endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Time has passed; nothing else happened.
    Tick,
    /// One or more SCTP packets came from one address.
    Packets(Received),
    /// A packet came that was never encoded: what [`Output::TransmitStructs`] gave out elsewhere in
    /// this process. Any endpoint takes it, whatever the form of its own packets.
    Struct(Received<StructPacket>),
    /// The network reported that packets to this address do not arrive.
    Unreachable {
        /// Where the packets were sent; the port is that of the UDP encapsulation, 0 without.
        remote: SocketAddr,
        /// What was reported.
        reason: Unreachable,
        /// The beginning of the SCTP packet in question, as the ICMP message quotes it: anybody can
        /// send one, and only who saw the packet knows its tag (RFC 9260 §10, RFC 6951 §5.5). 8
        /// bytes are needed, 20 for an INIT. `None`: this host itself says so.
        quoted: Option<Bytes>,
    },
    /// The addresses of this host that have a route, all of them, most wanted first. From now on
    /// new peers are told of these ([`crate::config::EndpointConfig::addresses`]), and those that
    /// there are, if that was agreed on ([`crate::config::AssociationConfig::auto_asconf`]).
    LocalAddresses(alloc::vec::Vec<IpAddr>),
}

/// Packets as a socket gives them: one datagram, or a train of them that the kernel glued together
/// (GRO).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received<C = Bytes> {
    /// The address that the packets were sent to, if the driver knows it.
    pub local: Option<IpAddr>,
    /// Where they came from. The port is that of the UDP encapsulation (RFC 6951), 0 without.
    pub remote: SocketAddr,
    /// The congestion mark of the IP header.
    pub ecn: Ecn,
    /// The packets, one after the other, without IP and UDP headers.
    pub contents: C,
    /// Bytes of each packet but the last, which may be shorter. At least 1.
    pub segment_size: usize,
}

/// What an ICMP message said of a path (RFC 9260 §10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unreachable {
    /// The host does not speak SCTP, or nobody has the UDP port.
    Protocol,
    /// There is no route, or the packets are forbidden.
    Route,
    /// A packet was too big; the largest that passes, in bytes of IP packet.
    TooBig(u16),
}

/// What the endpoint tells the driver.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send these packets.
    Transmit(Transmit),
    /// Send these packets, which are values: only from an endpoint that was asked for them
    /// ([`crate::config::PacketForm::Struct`]).
    TransmitStructs(Transmit<alloc::vec::Vec<StructPacket>>),
    /// Something happened to an association.
    Event(AssociationId, Event),
    /// Nothing more for now; call again at this time at the latest, if one is given.
    Timeout(Option<Duration>),
}

/// Whether packets may be cut into IP fragments (RFC 8899 §3, RFC 9260 §6.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fragmentation {
    /// Not on the way: they have the size that the path is believed to take, and it shows if it
    /// does not. This host may cut them where its own link takes less.
    #[default]
    Avoided,
    /// By nobody: they probe for the path's MTU. Those that are too large are dropped.
    Forbidden,
    /// By anybody: they were made when the path took larger ones, or belong to a handshake.
    Allowed,
}

/// Packets to send from one address to another: one, or a train of equal sizes that a driver can
/// hand to the kernel in one call (GSO).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit<C = Bytes> {
    /// The address to send from; the routing's choice if none is given.
    pub local: Option<IpAddr>,
    /// Where to send. The port is that of the UDP encapsulation (RFC 6951), 0 without.
    pub remote: SocketAddr,
    /// The congestion mark for the IP header.
    pub ecn: Ecn,
    /// Whether the packets may be cut.
    pub fragmentation: Fragmentation,
    /// The packets, one after the other, without IP and UDP headers.
    pub contents: C,
    /// Bytes of each packet but the last, which may be shorter.
    pub segment_size: usize,
}

/// Whether a datagram is an SCTP packet for this port with the right checksum (CRC32c): for drivers that
/// share a socket with another protocol.
#[must_use]
pub fn is_packet_for(datagram: &[u8], port: u16) -> bool {
    Packet::header(datagram).is_ok_and(|header| header.destination_port == port)
        && Checksum::Crc32c.accepts(datagram)
}
