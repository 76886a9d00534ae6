//! Identifies flows: protocol, addresses and ports.

use core::net::IpAddr;

use crate::middlebox::Side;
use crate::packet::{Packet, protocol};

/// An address and a port.
pub(super) type Endpoint = (IpAddr, u16);

/// Packets between the same two endpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Flow {
    pub(super) protocol: u8,
    /// The endpoint on the inside.
    pub(super) inside: Endpoint,
    /// The endpoint on the outside.
    pub(super) outside: Endpoint,
}

impl Flow {
    /// Returns the flow of a packet from `side`.
    pub(super) fn of(side: Side, packet: &Packet) -> Self {
        let (from, to) = ports(packet).unwrap_or((0, 0));
        let (source, destination) = ((packet.source, from), (packet.destination, to));
        let (inside, outside) = match side {
            Side::Inside => (source, destination),
            Side::Outside => (destination, source),
        };
        Self { protocol: packet.protocol, inside, outside }
    }
}

/// Returns the source and destination ports, if there are any and the packet is long enough.
pub(super) fn ports(packet: &Packet) -> Option<(u16, u16)> {
    if !matches!(packet.protocol, protocol::TCP | protocol::UDP | protocol::SCTP) {
        return None;
    }
    let [a, b, c, d] = *packet.payload.first_chunk()?;
    Some((u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])))
}

/// Returns whether a packet may be the first one of its flow: any of UDP; a TCP SYN without ACK; an
/// SCTP packet with a verification tag of zero, which only an INIT has (RFC 9260 §8.5.1).
pub(super) fn opens(packet: &Packet) -> bool {
    match packet.protocol {
        protocol::TCP => packet.payload.get(13).is_some_and(|flags| flags & 0x12 == 0x02),
        protocol::SCTP => packet.payload.get(4..8) == Some(&[0; 4]),
        _ => true,
    }
}
