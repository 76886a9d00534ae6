//! The encoded IP header of a packet: for captures, for the quotes in ICMP errors, and for packets
//! from and to real hosts.

use alloc::vec::Vec;
use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use bytes::Bytes;

use crate::middlebox::OnesComplementSum;
use crate::packet::{IPV4_HEADER, IPV6_HEADER, Packet, PacketPayload};

/// The hop limit that is written; nothing here counts hops.
const HOP_LIMIT: u8 = 64;
/// The flag that forbids fragments, in the word of flags and offset (RFC 791 §3.1).
const DONT_FRAGMENT: u16 = 0x4000;

/// Writes the header. Both addresses should be of the same family; if they are not, the destination
/// is written as the unspecified address of the source's family.
pub(crate) fn write<B: PacketPayload>(packet: &Packet<B>, identification: u16, into: &mut Vec<u8>) {
    match packet.source {
        IpAddr::V4(source) => {
            let destination = match packet.destination {
                IpAddr::V4(destination) => destination.octets(),
                IpAddr::V6(_) => [0; 4],
            };
            let length = packet.len().min(usize::from(u16::MAX)) as u16;
            let flags = if packet.dont_fragment { DONT_FRAGMENT } else { 0 };
            let words = [
                0x4500 | u16::from(packet.ecn & 3),
                length,
                identification,
                flags,
                u16::from_be_bytes([HOP_LIMIT, packet.protocol]),
            ];
            let sum = words.into_iter().fold(OnesComplementSum::default(), OnesComplementSum::word);
            let checksum = sum.bytes(&source.octets()).bytes(&destination).finish();
            words.into_iter().chain([checksum]).for_each(|word| into.extend(word.to_be_bytes()));
            into.extend(source.octets());
            into.extend(destination);
        }
        IpAddr::V6(source) => {
            let destination = match packet.destination {
                IpAddr::V6(destination) => destination.octets(),
                IpAddr::V4(_) => [0; 16],
            };
            let length = packet.payload.len().min(usize::from(u16::MAX)) as u16;
            into.extend((0x6000_0000 | u32::from(packet.ecn & 3) << 20).to_be_bytes());
            into.extend(length.to_be_bytes());
            into.extend([packet.protocol, HOP_LIMIT]);
            into.extend(source.octets());
            into.extend(destination);
        }
    }
}

/// Parses a packet. Trailing bytes are ignored, IPv4 options are skipped, and IPv6 extension
/// headers belong to the payload.
pub(crate) fn parse(bytes: &[u8]) -> Option<Packet> {
    match bytes.first()? >> 4 {
        4 => parse_v4(bytes),
        6 => parse_v6(bytes),
        _ => None,
    }
}

fn parse_v4(bytes: &[u8]) -> Option<Packet> {
    let header: &[u8; IPV4_HEADER] = bytes.first_chunk()?;
    let begin = usize::from(header[0] & 0xf) * 4;
    let end = usize::from(u16::from_be_bytes([header[2], header[3]]));
    let address = |at: usize| Some(Ipv4Addr::from(*header[at..].first_chunk::<4>()?));
    if begin < IPV4_HEADER {
        return None;
    }
    Some(Packet {
        source: address(12)?.into(),
        destination: address(16)?.into(),
        protocol: header[9],
        ecn: header[1] & 3,
        dont_fragment: u16::from_be_bytes([header[6], header[7]]) & DONT_FRAGMENT != 0,
        payload: Bytes::copy_from_slice(bytes.get(begin..end)?),
    })
}

fn parse_v6(bytes: &[u8]) -> Option<Packet> {
    let header: &[u8; IPV6_HEADER] = bytes.first_chunk()?;
    let length = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let address = |at: usize| Some(Ipv6Addr::from(*header[at..].first_chunk::<16>()?));
    Some(Packet {
        source: address(8)?.into(),
        destination: address(24)?.into(),
        protocol: header[6],
        ecn: header[1] >> 4 & 3,
        dont_fragment: true,
        payload: Bytes::copy_from_slice(bytes.get(IPV6_HEADER..IPV6_HEADER + length)?),
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn packets() -> impl Strategy<Value = Packet> {
        let ends = prop_oneof![
            any::<[[u8; 4]; 2]>().prop_map(|ends| ends.map(IpAddr::from)),
            any::<[[u8; 16]; 2]>().prop_map(|ends| ends.map(IpAddr::from)),
        ];
        let payload = proptest::collection::vec(any::<u8>(), 0..64);
        (ends, any::<u8>(), 0..4_u8, any::<bool>(), payload).prop_map(
            |([source, destination], protocol, ecn, dont_fragment, payload)| Packet {
                source,
                destination,
                protocol,
                ecn,
                dont_fragment: dont_fragment || source.is_ipv6(),
                payload: payload.into(),
            },
        )
    }

    proptest! {
        #[test]
        fn written_values_can_be_parsed(packet in packets(), behind in 0..4_usize) {
            let mut bytes = Vec::new();
            write(&packet, 7, &mut bytes);
            bytes.extend(packet.payload.iter());
            bytes.resize(bytes.len() + behind, 0xff);
            prop_assert_eq!(parse(&bytes), Some(packet.clone()));
            prop_assert_eq!(parse(&bytes[..packet.len() - 1]), None);
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Some(packet) = parse(&bytes) {
                prop_assert!(packet.len() <= bytes.len());
            }
        }
    }

    #[test]
    fn options_are_skipped() {
        let mut bytes = alloc::vec![0x46, 0, 0, 26, 0, 0, 0, 0, 64, 17, 0, 0];
        bytes.extend([192, 0, 2, 1, 192, 0, 2, 2, 1, 1, 1, 0, 0xaa, 0xbb]);
        let packet = parse(&bytes).expect("a packet");
        assert_eq!(packet.payload[..], [0xaa, 0xbb]);
        bytes[0] = 0x44;
        assert_eq!(parse(&bytes), None, "a header shorter than a header");
    }
}
