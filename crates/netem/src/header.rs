//! The IP header of a packet, in bytes: for captures, and for what an ICMP error quotes.

use alloc::vec::Vec;
use core::net::IpAddr;

use crate::middlebox::Sum;
use crate::packet::Packet;

/// The hop limit that is written; nothing here counts hops.
const HOP_LIMIT: u8 = 64;
/// The flag that forbids fragments, in the word of flags and offset (RFC 791 §3.1).
const DONT_FRAGMENT: u16 = 0x4000;

/// Writes the header. Both addresses are of one family, that of the source; where they are not,
/// the destination is written as unspecified.
pub(crate) fn write(packet: &Packet, identification: u16, into: &mut Vec<u8>) {
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
            let sum = words.into_iter().fold(Sum::default(), Sum::word);
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
