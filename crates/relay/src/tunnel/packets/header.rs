//! What a packet says of itself.

use std::net::IpAddr;

use etherparse::{Ipv4HeaderSlice, Ipv6HeaderSlice};

/// Where a packet comes from, and where it goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Whose it is, as it says.
    pub source: IpAddr,
    /// Whom it is for.
    pub destination: IpAddr,
}

/// Bytes of IPv6's header, which its payload length does not count (RFC 8200 §3).
const IPV6_HEADER: usize = 40;

impl Header {
    /// Reads the header of a packet; `None` unless it is one packet of IP, whole and with nothing behind it.
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
