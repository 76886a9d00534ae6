//! The interface of an endpoint: inputs, outputs, and time as an argument.
//!
//! Pass in an input or call one of the endpoint's methods, then call `poll_output` until it returns
//! [`Output::Timeout`], then wait for the next input or for that time. `now` is a duration since an
//! epoch that the driver chooses for the endpoint; it must not go back (if it does, the latest
//! value seen is used). Nothing here blocks, and nothing that a peer sends causes a panic or an
//! error; invalid input is counted ([`crate::counters`]).

use bytes::Bytes;
use core::{
    net::{IpAddr, SocketAddr},
    time::Duration,
};

use crate::event::Event;
use crate::identifier::AssociationId;
pub use crate::wire::StructPacket;
use crate::wire::{ChecksumKind, PacketParser};

/// The ECN field of the IP header (RFC 3168 §5).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Ecn {
    /// Not-ECT: the sender does not support ECN.
    #[default]
    NotCapable,
    /// ECT(1).
    Capable1,
    /// ECT(0).
    Capable0,
    /// CE: a router on the path is congested.
    CongestionExperienced,
}

impl Ecn {
    /// Returns the two bits of the IP header.
    #[must_use]
    pub const fn bits(self) -> u8 {
        match self {
            Self::NotCapable => 0,
            Self::Capable1 => 1,
            Self::Capable0 => 2,
            Self::CongestionExperienced => 3,
        }
    }

    /// Returns the codepoint in the lowest two bits of `traffic_class`.
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

/// What the driver passes to the endpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Input {
    /// Time has passed; nothing else happened.
    Tick,
    /// One or more SCTP packets from one address.
    Packets(Received),
    /// A packet that was never encoded, from [`Output::TransmitStructs`] of another endpoint in
    /// this process. Every endpoint accepts it, whatever the form of its own packets.
    Struct(Received<StructPacket>),
    /// The network reported that packets to this address do not arrive.
    Unreachable {
        /// The destination of the packets; the port is that of the UDP encapsulation, 0 without.
        remote: SocketAddr,
        /// The report.
        reason: Unreachable,
        /// The beginning of the SCTP packet in question, as quoted by the ICMP message. Since
        /// anyone can send an ICMP message, the verification tag in it must match (RFC 9260 §10,
        /// RFC 6951 §5.5). 8 bytes are needed, 20 for an INIT. `None` if the report is from the
        /// local host.
        quoted: Option<Bytes>,
    },
    /// All local addresses that have a route, most preferred first. From now on these are announced
    /// to new peers ([`crate::config::EndpointConfig::addresses`]), and to existing ones if that
    /// was negotiated ([`crate::config::AssociationConfig::auto_asconf`]).
    LocalAddresses(alloc::vec::Vec<IpAddr>),
}

/// Who sent packets, as the layer below authenticated it, such as DTLS with certificates on both
/// sides: equal values are one peer. Opaque to the protocol; a driver can use the hash of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerIdentity(pub [u8; 16]);

/// Packets as received from a socket: one datagram, or a train coalesced by the kernel (GRO).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received<C = Bytes> {
    /// The destination address of the packets, if known to the driver.
    pub local: Option<IpAddr>,
    /// The source address. The port is that of the UDP encapsulation (RFC 6951), 0 without.
    pub remote: SocketAddr,
    /// The ECN codepoint of the IP header.
    pub ecn: Ecn,
    /// The packets, back to back, without IP and UDP headers.
    pub contents: C,
    /// The size in bytes of each packet but the last, which may be shorter. At least 1.
    pub segment_size: usize,
    /// Who sent the packets, if the layer below authenticates peers. An association accepts packets
    /// only from the peer that it began with, whatever their addresses and tags are.
    pub peer: Option<PeerIdentity>,
}

/// The content of an ICMP message about a path (RFC 9260 §10).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unreachable {
    /// The host does not speak SCTP, or the UDP port is closed.
    Protocol,
    /// There is no route, or the packets are prohibited.
    Route,
    /// The local host did not send the packets: its firewall forbids them, or it lacks an address,
    /// an interface or memory. This says nothing about the peer.
    Local,
    /// A packet was too big; the path MTU, in bytes of IP packet.
    TooBig(u16),
}

/// What the endpoint asks the driver to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send these packets.
    Transmit(Transmit),
    /// Send these packets, which are values: only from an endpoint configured with
    /// [`crate::config::PacketForm::Struct`].
    TransmitStructs(Transmit<alloc::vec::Vec<StructPacket>>),
    /// An event of an association.
    Event(AssociationId, Event),
    /// Nothing more for now; call again at this time at the latest, if one is given.
    Timeout(Option<Duration>),
}

/// Whether packets may be fragmented by IP (RFC 8899 §3, RFC 9260 §6.9).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Fragmentation {
    /// Not on the path: the packets have the believed path MTU, and should be dropped if they
    /// exceed it. The local host may fragment them if its own link requires it.
    #[default]
    Avoided,
    /// Not at all: the packets probe for the path MTU. Those that are too large are dropped.
    Forbidden,
    /// Anywhere: the packets were built for a larger path MTU, or belong to a handshake.
    Allowed,
}

/// Fields of packets that have no meaning for the protocol, as the user asked for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Marking {
    /// The upper six bits of the traffic class, in their place: the DSCP times four (RFC 2474).
    pub dscp_bits: u8,
    /// The hop limit or time to live; `None` is the host's default.
    pub hop_limit: Option<u8>,
    /// The mark by which this host's routing and firewall treat packets (`SO_MARK`).
    pub mark: u32,
}

/// Packets to send from one address to another: one, or a train of equal sizes that a driver can
/// pass to the kernel in one call (GSO).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transmit<C = Bytes> {
    /// The local address to send from; if `None`, it is left to the routing table.
    pub local: Option<IpAddr>,
    /// The destination. The port is that of the UDP encapsulation (RFC 6951), 0 without.
    pub remote: SocketAddr,
    /// The ECN codepoint for the IP header.
    pub ecn: Ecn,
    /// Further fields of the IP header.
    pub marking: Marking,
    /// Whether the packets may be fragmented.
    pub fragmentation: Fragmentation,
    /// The packets, back to back, without IP and UDP headers.
    pub contents: C,
    /// The size in bytes of each packet but the last, which may be shorter.
    pub segment_size: usize,
    /// Who may receive the packets ([`Received::peer`]). `None` if the layer below does not
    /// authenticate peers, and in a handshake before the peer has answered.
    pub peer: Option<PeerIdentity>,
}

/// Returns whether a datagram is an SCTP packet for this port with a correct checksum (CRC32c), for
/// drivers that share a socket with another protocol.
#[must_use]
pub fn is_packet_for(datagram: &[u8], port: u16) -> bool {
    PacketParser::header(datagram).is_ok_and(|header| header.destination_port == port)
        && ChecksumKind::Crc32c.accepts(datagram)
}
