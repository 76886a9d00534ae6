//! The header of a packet.

use std::net::IpAddr;

use etherparse::{Ipv4HeaderSlice, Ipv6HeaderSlice};

/// The source and the destination of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PacketHeader {
    /// The source address, which may be forged.
    pub source: IpAddr,
    /// The destination address.
    pub destination: IpAddr,
}

/// The length of the IPv6 header, which its payload length does not include (RFC 8200 §3).
const IPV6_HEADER: usize = 40;

impl PacketHeader {
    /// Reads the header of a packet. Returns `None` unless this is exactly one complete IP packet.
    pub fn read(packet: &[u8]) -> Option<Self> {
        let (length, source, destination) = match packet.first()? >> 4 {
            4 => {
                let ip = Ipv4HeaderSlice::from_slice(packet).ok()?;
                (usize::from(ip.total_len()), ip.source_addr().into(), ip.destination_addr().into())
            }
            6 => {
                let ip = Ipv6HeaderSlice::from_slice(packet).ok()?;
                let length = IPV6_HEADER + usize::from(ip.payload_length());
                (length, ip.source_addr().into(), ip.destination_addr().into())
            }
            _ => return None,
        };
        (length == packet.len()).then_some(Self { source, destination })
    }
}
