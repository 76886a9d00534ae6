//! Parses packets at the client's end of a link.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use eyas_netem::packet::{Packet, protocol};
use hickory_proto::op::{Message, MessageType};
use hickory_proto::rr::RecordType;

/// The port of name servers.
const DNS: u16 = 53;
/// The port for QUIC.
const HTTPS: u16 = 443;
/// The flag bits of a TCP header (RFC 9293 §3.1).
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;
/// "Destination unreachable" (RFC 792; RFC 4443 §3.1).
const ICMP_UNREACHABLE: u8 = 3;
const ICMPV6_UNREACHABLE: u8 = 1;
/// The length of an ICMP header, before the packet that it quotes.
const ICMP_HEADER: usize = 8;

/// A packet from or to the client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PacketInfo {
    /// The time, on any clock.
    pub(super) at: Duration,
    /// Whether the client sent it.
    pub(super) sent: bool,
    /// The peer.
    pub(super) peer: IpAddr,
    /// The length of the IP packet, in bytes.
    pub(super) length: usize,
    pub(super) content: PacketContent,
}

/// The content of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum PacketContent {
    /// A DNS message.
    Dns(DnsMessage),
    /// A TCP segment.
    Tcp { flow: FlowPorts, segment: SegmentKind },
    /// A QUIC datagram.
    Quic { flow: FlowPorts, packet_type: QuicPacketType },
    /// An ICMP error: this address and port cannot be reached.
    Unreachable { address: IpAddr, port: u16, code: u8 },
    /// Anything else.
    Other,
}

/// A query or its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct DnsMessage {
    pub(super) is_answer: bool,
    /// In lower case, without the trailing dot.
    pub(super) name: String,
    pub(super) record_type: RecordType,
    /// 0, or the reason why there is no answer (RFC 1035 §4.1.1).
    pub(super) code: u8,
    /// The number of records in the answer.
    pub(super) records: usize,
}

/// The ports of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) struct FlowPorts {
    pub(super) local: u16,
    pub(super) remote: u16,
}

/// The kind of a TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SegmentKind {
    Syn,
    SynAck,
    Rst,
    /// Bytes of the stream.
    Data,
    Fin,
    /// Only an acknowledgement.
    Ack,
}

/// The type of the first packet in a QUIC datagram (RFC 9000 §17, RFC 9369 §3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum QuicPacketType {
    Initial,
    ZeroRtt,
    Handshake,
    Retry,
    /// A packet of an established connection.
    Short,
}

/// Parses an IP packet at the client's end; `None` if it is not an IP packet. `sent` states whether
/// the client sent it.
pub(super) fn parse(at: Duration, sent: bool, ip: &[u8]) -> Option<PacketInfo> {
    let packet = Packet::parse(ip)?;
    let peer = if sent { packet.destination } else { packet.source };
    let content = match packet.protocol {
        protocol::TCP => tcp(sent, &packet.payload),
        protocol::UDP => udp(sent, &packet.payload),
        protocol::ICMP => unreachable(ICMP_UNREACHABLE, &packet.payload),
        protocol::ICMPV6 => unreachable(ICMPV6_UNREACHABLE, &packet.payload),
        _ => None,
    };
    Some(PacketInfo {
        at,
        sent,
        peer,
        length: packet.len(),
        content: content.unwrap_or(PacketContent::Other),
    })
}

fn port(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_be_bytes([*bytes.get(at)?, *bytes.get(at + 1)?]))
}

fn flow(sent: bool, bytes: &[u8]) -> Option<FlowPorts> {
    let (source, destination) = (port(bytes, 0)?, port(bytes, 2)?);
    let (local, remote) = if sent { (source, destination) } else { (destination, source) };
    Some(FlowPorts { local, remote })
}

fn tcp(sent: bool, bytes: &[u8]) -> Option<PacketContent> {
    let flow = flow(sent, bytes)?;
    let header = usize::from(*bytes.get(12)? >> 4) * 4;
    let flags = *bytes.get(13)?;
    let has = |flag: u8| flags & flag != 0;
    let segment = match bytes.len().checked_sub(header)? {
        _ if has(RST) => SegmentKind::Rst,
        _ if has(SYN) && has(ACK) => SegmentKind::SynAck,
        _ if has(SYN) => SegmentKind::Syn,
        1.. => SegmentKind::Data,
        0 if has(FIN) => SegmentKind::Fin,
        0 => SegmentKind::Ack,
    };
    Some(PacketContent::Tcp { flow, segment })
}

fn udp(sent: bool, bytes: &[u8]) -> Option<PacketContent> {
    let flow = flow(sent, bytes)?;
    let payload = bytes.get(8..)?;
    match flow.remote {
        DNS => dns(payload).map(PacketContent::Dns),
        HTTPS => packet_type(payload).map(|packet_type| PacketContent::Quic { flow, packet_type }),
        _ => None,
    }
}

fn packet_type(payload: &[u8]) -> Option<QuicPacketType> {
    /// The bit of the first byte that indicates the long form. The fixed bit can have any value
    /// (RFC 9287).
    const LONG: u8 = 0x80;
    /// Version 2 uses different numbers for the same types.
    const VERSION_2: [u8; 4] = [0x6b, 0x33, 0x43, 0xcf];
    let first = *payload.first()?;
    if first & LONG == 0 {
        return Some(QuicPacketType::Short);
    }
    let shift = u8::from(payload.get(1..5)? == VERSION_2);
    Some(match (first >> 4 & 3).wrapping_sub(shift) & 3 {
        0 => QuicPacketType::Initial,
        1 => QuicPacketType::ZeroRtt,
        2 => QuicPacketType::Handshake,
        _ => QuicPacketType::Retry,
    })
}

fn dns(payload: &[u8]) -> Option<DnsMessage> {
    let message = Message::from_vec(payload).ok()?;
    let [query] = message.queries.as_slice() else { return None };
    let name = query.name().to_ascii().to_ascii_lowercase();
    let of_type = |record: &&hickory_proto::rr::Record| record.record_type() == query.query_type();
    Some(DnsMessage {
        is_answer: message.metadata.message_type == MessageType::Response,
        name: name.trim_end_matches('.').to_owned(),
        record_type: query.query_type(),
        code: message.metadata.response_code.low(),
        records: message.answers.iter().filter(of_type).count(),
    })
}

/// Parses an ICMP message of this type and its quotation of the packet that did not arrive.
fn unreachable(wanted: u8, bytes: &[u8]) -> Option<PacketContent> {
    let quoted = bytes.get(ICMP_HEADER..)?;
    if bytes[0] != wanted {
        return None;
    }
    // The quotation can be truncated, so its length differs from that in its header.
    let (address, after): (IpAddr, usize) = match quoted.first()? >> 4 {
        4 => {
            let octets: [u8; 4] = quoted.get(16..20)?.try_into().ok()?;
            (Ipv4Addr::from(octets).into(), usize::from(quoted[0] & 0xf) * 4)
        }
        6 => {
            let octets: [u8; 16] = quoted.get(24..40)?.try_into().ok()?;
            (Ipv6Addr::from(octets).into(), 40)
        }
        _ => return None,
    };
    Some(PacketContent::Unreachable { address, port: port(quoted, after + 2)?, code: bytes[1] })
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use hickory_proto::op::Query;
    use hickory_proto::rr::Name;

    use super::*;

    const CLIENT: [u8; 4] = [198, 18, 1, 1];
    const SERVER: [u8; 4] = [198, 19, 0, 1];

    fn ip(protocol: u8, sent: bool, payload: &[u8]) -> Vec<u8> {
        let (source, destination) = if sent { (CLIENT, SERVER) } else { (SERVER, CLIENT) };
        let packet = Packet {
            source: source.into(),
            destination: destination.into(),
            protocol,
            ecn: 0,
            dont_fragment: true,
            payload: Bytes::copy_from_slice(payload),
        };
        let mut bytes = Vec::new();
        packet.write_header(7, &mut bytes);
        bytes.extend(payload);
        bytes
    }

    fn content(protocol: u8, sent: bool, payload: &[u8]) -> PacketContent {
        parse(Duration::ZERO, sent, &ip(protocol, sent, payload)).expect("an IP packet").content
    }

    fn udp_to(port: u16, payload: &[u8]) -> Vec<u8> {
        let ports = [40_000_u16.to_be_bytes(), port.to_be_bytes()].concat();
        [&ports[..], &[0; 4], payload].concat()
    }

    #[test]
    fn segments_are_classified_by_their_flags() {
        let segment = |flags: u8, data: &[u8]| {
            let mut bytes = [156, 64, 0, 80, 0, 0, 0, 1, 0, 0, 0, 0, 0x50, flags].to_vec();
            bytes.extend([0; 6]);
            bytes.extend(data);
            let PacketContent::Tcp { flow, segment } = content(protocol::TCP, true, &bytes) else {
                panic!("not TCP")
            };
            assert_eq!(flow, FlowPorts { local: 40_000, remote: 80 });
            segment
        };
        let of = [
            (SYN, &b""[..], SegmentKind::Syn),
            (SYN | ACK, b"", SegmentKind::SynAck),
            (RST | ACK, b"", SegmentKind::Rst),
            (ACK, b"GET", SegmentKind::Data),
            (FIN | ACK, b"bye", SegmentKind::Data),
            (FIN | ACK, b"", SegmentKind::Fin),
            (ACK, b"", SegmentKind::Ack),
        ];
        for (flags, data, wanted) in of {
            assert_eq!(segment(flags, data), wanted, "{flags:#x} {data:?}");
        }
    }

    #[test]
    fn both_versions_of_quic_have_their_types() {
        let packet_type = |first: u8, version: [u8; 4]| {
            let payload = [&[first][..], &version].concat();
            match content(protocol::UDP, true, &udp_to(443, &payload)) {
                PacketContent::Quic { packet_type, .. } => Some(packet_type),
                _ => None,
            }
        };
        let (one, two) = ([0, 0, 0, 1], [0x6b, 0x33, 0x43, 0xcf]);
        assert_eq!(packet_type(0xc3, one), Some(QuicPacketType::Initial));
        assert_eq!(packet_type(0xd3, two), Some(QuicPacketType::Initial));
        assert_eq!(packet_type(0xe3, one), Some(QuicPacketType::Handshake));
        assert_eq!(packet_type(0xf3, two), Some(QuicPacketType::Handshake));
        assert_eq!(packet_type(0x41, one), Some(QuicPacketType::Short));
        // With the fixed bit greased.
        assert_eq!(packet_type(0x01, one), Some(QuicPacketType::Short));
        assert_eq!(packet_type(0x83, one), Some(QuicPacketType::Initial));
    }

    #[test]
    fn names_and_types_of_queries_are_parsed() {
        let mut message = Message::query();
        let name = Name::from_ascii("T1.Lab.Test.").unwrap();
        message.add_query(Query::query(name, RecordType::AAAA));
        let payload = message.to_vec().unwrap();
        let PacketContent::Dns(dns) = content(protocol::UDP, true, &udp_to(53, &payload)) else {
            panic!("not DNS")
        };
        assert_eq!((dns.name.as_str(), dns.record_type), ("t1.lab.test", RecordType::AAAA));
        assert!(!dns.is_answer && dns.records == 0 && dns.code == 0);
    }

    #[test]
    fn an_error_names_the_address_that_was_not_reached() {
        let quoted = ip(protocol::TCP, true, &[156, 64, 0, 80, 0, 0, 0, 1]);
        let error = [&[3, 13, 0, 0, 0, 0, 0, 0][..], &quoted].concat();
        let wanted = PacketContent::Unreachable { address: SERVER.into(), port: 80, code: 13 };
        assert_eq!(content(protocol::ICMP, false, &error), wanted);
        let echo = [&[8, 0, 0, 0, 0, 0, 0, 0][..], &quoted].concat();
        assert_eq!(content(protocol::ICMP, false, &echo), PacketContent::Other);
    }

    proptest::proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, protocol in 0_u8..60, sent: bool) {
            let _ = parse(Duration::ZERO, sent, &bytes);
            let packet = parse(Duration::ZERO, sent, &ip(protocol, sent, &bytes));
            proptest::prop_assert_eq!(packet.map(|packet| packet.length), Some(bytes.len() + 20));
        }
    }
}
