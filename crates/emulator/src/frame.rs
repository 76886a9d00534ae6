//! An IP packet of a real host, byte for byte.

use std::net::IpAddr;

use eyas_netem::packet::{IPV4_HEADER, IPV6_HEADER, LinkPacket, Packet, ecn};

/// The size of `struct virtio_net_hdr`, in which a TUN device describes what is incomplete in a
/// packet.
pub(super) const PREFIX: usize = 10;
/// "More fragments" and the offset of a fragment, in an IPv4 header (RFC 791 §3.1).
const FRAGMENT: u16 = 0x3fff;
const DONT_FRAGMENT: u16 = 0x4000;
/// The protocol number of a fragment's header in IPv6 (RFC 8200 §4.5).
const IPV6_FRAGMENT: u8 = 44;

/// An IP packet, preceded by the header from the device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TunFrame {
    bytes: Vec<u8>,
    header: usize,
}

impl TunFrame {
    /// Parses a frame as read from a device; `None` if it does not contain an IP packet.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let header = header_len(bytes.get(PREFIX..)?)?;
        Some(Self { bytes: bytes.to_vec(), header })
    }

    /// Creates a frame from a packet that was created here.
    pub(super) fn from_packet(packet: &Packet, identification: u16) -> Self {
        let mut bytes = vec![0; PREFIX];
        packet.write_header(identification, &mut bytes);
        bytes.extend_from_slice(&packet.payload);
        Self { bytes, header: packet.header_len() }
    }

    /// Returns the packet with the header that a device expects before it.
    pub(super) fn with_prefix(&self) -> &[u8] {
        &self.bytes
    }

    /// Returns the IP packet without that header.
    pub(super) fn ip(&self) -> &[u8] {
        &self.bytes[PREFIX..]
    }

    fn ip_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[PREFIX..]
    }

    fn is_v4(&self) -> bool {
        self.ip()[0] >> 4 == 4
    }

    fn word(&self, at: usize) -> u16 {
        u16::from_be_bytes([self.ip()[at], self.ip()[at + 1]])
    }

    /// Returns whether it is a fragment, so that the ports are missing or only part of the payload
    /// is present.
    pub(super) fn is_fragment(&self) -> bool {
        if self.is_v4() { self.word(6) & FRAGMENT != 0 } else { self.ip()[6] == IPV6_FRAGMENT }
    }

    /// Converts it for a middlebox; `None` if its length fields are inconsistent.
    pub(super) fn to_packet(&self) -> Option<Packet> {
        Packet::parse(self.ip())
    }

    /// Returns this frame with the changes of a middlebox: other addresses, another payload. Other
    /// header fields, such as the time to live, are kept.
    pub(super) fn changed(&self, packet: &Packet) -> Self {
        let mut bytes = self.bytes[..PREFIX + self.header].to_vec();
        bytes.extend_from_slice(&packet.payload);
        let mut frame = Self { bytes, header: self.header };
        match (packet.source, packet.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) if frame.is_v4() => {
                let length = frame.ip().len().min(usize::from(u16::MAX)) as u16;
                frame.ip_mut()[2..4].copy_from_slice(&length.to_be_bytes());
                frame.ip_mut()[12..16].copy_from_slice(&source.octets());
                frame.ip_mut()[16..20].copy_from_slice(&destination.octets());
                frame.update_checksum();
                frame
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) if !frame.is_v4() => {
                frame.ip_mut()[8..24].copy_from_slice(&source.octets());
                frame.ip_mut()[24..40].copy_from_slice(&destination.octets());
                frame
            }
            _ => Self::from_packet(packet, 0),
        }
    }

    /// Writes the checksum of an IPv4 header (RFC 791 §3.1, RFC 1071).
    fn update_checksum(&mut self) {
        self.ip_mut()[10..12].fill(0);
        let header = &self.ip()[..self.header];
        let words = header.chunks_exact(2).map(|pair| u16::from_be_bytes([pair[0], pair[1]]));
        let sum = words.fold(0_u32, |sum, word| sum + u32::from(word));
        let folded = (sum & 0xffff) + (sum >> 16);
        let checksum = !(((folded & 0xffff) + (folded >> 16)) as u16);
        self.ip_mut()[10..12].copy_from_slice(&checksum.to_be_bytes());
    }
}

/// Returns the length of the IP header, if there is one.
fn header_len(ip: &[u8]) -> Option<usize> {
    let length = match ip.first()? >> 4 {
        4 => usize::from(ip[0] & 0xf) * 4,
        6 => IPV6_HEADER,
        _ => return None,
    };
    (length >= IPV4_HEADER && length <= ip.len()).then_some(length)
}

impl LinkPacket for TunFrame {
    fn len(&self) -> usize {
        self.bytes.len() - PREFIX
    }

    fn header_len(&self) -> usize {
        self.header
    }

    fn is_whole(&self) -> bool {
        !self.is_v4() || self.word(6) & DONT_FRAGMENT != 0
    }

    fn is_ecn_capable(&self) -> bool {
        let bits = if self.is_v4() { self.ip()[1] } else { self.ip()[1] >> 4 };
        bits & 3 != ecn::NOT_CAPABLE
    }

    fn mark(&mut self) {
        if self.is_v4() {
            self.ip_mut()[1] |= ecn::CONGESTION_EXPERIENCED;
            self.update_checksum();
        } else {
            self.ip_mut()[1] |= ecn::CONGESTION_EXPERIENCED << 4;
        }
    }

    fn corrupt(&mut self, bits: &[u64]) {
        let begin = self.header;
        for bit in bits {
            if let Some(octet) = self.ip_mut().get_mut(begin + (bit / 8) as usize) {
                *octet ^= 1 << (bit % 8);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn packet(source: &str, destination: &str) -> Packet {
        Packet {
            source: source.parse().unwrap(),
            destination: destination.parse().unwrap(),
            protocol: 17,
            ecn: ecn::CAPABLE_0,
            dont_fragment: true,
            payload: vec![1, 2, 3, 4, 5, 6, 7, 8].into(),
        }
    }

    #[test]
    fn ecn_marks_are_readable_and_the_checksum_is_valid() {
        for packet in [packet("192.0.2.1", "192.0.2.2"), packet("2001:db8::1", "2001:db8::2")] {
            let mut frame = TunFrame::from_packet(&packet, 9);
            assert!(frame.is_ecn_capable() && frame.is_whole());
            assert_eq!(frame.len(), packet.len());
            frame.mark();
            let marked = Packet { ecn: ecn::CONGESTION_EXPERIENCED, ..packet };
            assert_eq!(frame.to_packet(), Some(marked.clone()));
            assert_eq!(frame, TunFrame::from_packet(&marked, 9), "as if created with the mark");
        }
    }

    #[test]
    fn changing_addresses_keeps_the_ttl() {
        let before = packet("192.0.2.1", "192.0.2.2");
        let mut bytes = TunFrame::from_packet(&before, 9).with_prefix().to_vec();
        bytes[PREFIX + 8] = 3;
        let frame = TunFrame::read(&bytes).unwrap();
        let after = Packet { source: "198.51.100.7".parse().unwrap(), ..before };
        let changed = frame.changed(&after);
        assert_eq!(changed.ip()[8], 3);
        assert_eq!(changed.to_packet(), Some(after));
    }

    #[test]
    fn bit_errors_are_after_the_header() {
        let mut frame = TunFrame::from_packet(&packet("192.0.2.1", "192.0.2.2"), 9);
        frame.corrupt(&[0, 9, 64]);
        assert_eq!(frame.to_packet().unwrap().payload[..], [0, 0, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn invalid_packets_are_ignored() {
        assert_eq!(TunFrame::read(&[0; PREFIX]), None);
        assert_eq!(TunFrame::read(&[0x45; PREFIX + 8]), None, "too short");
        assert_eq!(TunFrame::read(&[0x12; 80]), None, "neither 4 nor 6");
    }
}
