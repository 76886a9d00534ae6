//! The packets of a fetch as lines for readers.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::time::Duration;

use super::addresses;
use super::packet::{DnsMessage, PacketContent, PacketInfo, QuicPacketType, SegmentKind};
use crate::run::{PacketCourse, PacketLine};

/// The maximum number of lines of a course.
const MAX_LINES: usize = 80;

/// Returns the course of a fetch; times are relative to `begin`.
pub(super) fn course(what: &str, packets: &[PacketInfo], begin: Duration) -> PacketCourse {
    let mut shown = BTreeSet::new();
    let mut lines: Vec<PacketLine> = packets
        .iter()
        .filter_map(|packet| {
            let what = line(packet, &mut shown)?;
            // In microseconds, the resolution of a clock in another program.
            let at = (packet.at.as_secs_f64() - begin.as_secs_f64()) * 1e6;
            Some(PacketLine { at: at.round() / 1e3, sent: packet.sent, what })
        })
        .collect();
    let left_out = lines.len().saturating_sub(MAX_LINES);
    lines.truncate(MAX_LINES);
    PacketCourse { what: what.to_owned(), lines, left_out }
}

/// Describes a packet; `None` if it adds nothing new.
fn line(packet: &PacketInfo, shown: &mut BTreeSet<String>) -> Option<String> {
    let peer = addresses::label(packet.peer);
    let line = match &packet.content {
        PacketContent::Dns(dns) => return Some(describe_dns(dns)),
        PacketContent::Tcp { flow, segment } => {
            let port = flow.remote;
            match segment {
                SegmentKind::Syn => {
                    let repeated = !shown.insert(format!("SYN {} {}", packet.peer, flow.local));
                    let suffix = if repeated { " again" } else { "" };
                    return Some(format!("SYN to {peer} port {port}{suffix}"));
                }
                SegmentKind::SynAck => format!("SYN ACK of {peer}"),
                SegmentKind::Rst => format!("RST, {peer} port {port}"),
                SegmentKind::Fin => format!("FIN, {peer}"),
                // Only the first bytes of the stream in each direction are informative.
                SegmentKind::Data => format!("data, {peer} port {port}"),
                SegmentKind::Ack => return None,
            }
        }
        PacketContent::Quic { packet_type, .. } => {
            let packet_type = match packet_type {
                QuicPacketType::Initial => "Initial",
                QuicPacketType::ZeroRtt => "0-RTT",
                QuicPacketType::Handshake => "Handshake",
                QuicPacketType::Retry => "Retry",
                QuicPacketType::Short => "1-RTT",
            };
            format!("QUIC {packet_type}, {peer}")
        }
        PacketContent::Unreachable { address, port, code } => {
            let address = addresses::label(*address);
            format!("ICMP: {address} port {port} unreachable, {}", reason(packet.peer, *code))
        }
        PacketContent::Other => return None,
    };
    let local = match &packet.content {
        PacketContent::Tcp { flow, .. } | PacketContent::Quic { flow, .. } => flow.local,
        _ => 0,
    };
    shown.insert(format!("{} {local} {line}", packet.sent)).then_some(line)
}

fn describe_dns(dns: &DnsMessage) -> String {
    let record_type = dns.record_type;
    match (dns.is_answer, dns.code, dns.records) {
        (false, ..) => format!("{record_type}? {}", dns.name),
        (true, 0, 0) => format!("{record_type}: none"),
        (true, 0, 1) => format!("{record_type}: one record"),
        (true, 0, records) => format!("{record_type}: {records} records"),
        (true, 2, _) => format!("{record_type}: SERVFAIL"),
        (true, 3, _) => format!("{record_type}: NXDOMAIN"),
        (true, 5, _) => format!("{record_type}: REFUSED"),
        (true, code, _) => format!("{record_type}: error {code}"),
    }
}

/// The codes that occur here (RFC 792, RFC 1812 §5.2.7.1; RFC 4443 §3.1).
fn reason(from: IpAddr, code: u8) -> String {
    match (from.is_ipv6(), code) {
        (true, 1) | (false, 13) => "administratively prohibited".to_owned(),
        (true, 4) | (false, 3) => "port unreachable".to_owned(),
        (_, code) => format!("code {code}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::packet::FlowPorts;
    use super::*;

    #[test]
    fn repeated_lines_are_shown_once_but_attempts_each_time() {
        let flow = FlowPorts { local: 40_000, remote: 443 };
        let packet = |at, sent, segment| PacketInfo {
            at: Duration::from_millis(at),
            sent,
            peer: "198.19.0.2".parse().unwrap(),
            length: 60,
            content: PacketContent::Tcp { flow, segment },
        };
        let packets = [
            packet(5, true, SegmentKind::Syn),
            packet(1005, true, SegmentKind::Syn),
            packet(1006, false, SegmentKind::SynAck),
            packet(1006, true, SegmentKind::Ack),
            packet(1007, true, SegmentKind::Data),
            packet(1008, true, SegmentKind::Data),
            packet(1009, false, SegmentKind::Data),
        ];
        let course = course("x", &packets, Duration::from_millis(3));
        let shown: Vec<_> =
            course.lines.iter().map(|line| (line.at, line.sent, line.what.as_str())).collect();
        let wanted = [
            (2.0, true, "SYN to IPv4 no. 2 port 443"),
            (1002.0, true, "SYN to IPv4 no. 2 port 443 again"),
            (1003.0, false, "SYN ACK of IPv4 no. 2"),
            (1004.0, true, "data, IPv4 no. 2 port 443"),
            (1006.0, false, "data, IPv4 no. 2 port 443"),
        ];
        assert_eq!(shown, wanted);
    }

    #[test]
    fn a_long_list_is_truncated_with_a_note() {
        let packet = |local| PacketInfo {
            at: Duration::ZERO,
            sent: true,
            peer: "198.19.0.1".parse().unwrap(),
            length: 60,
            content: PacketContent::Tcp {
                flow: FlowPorts { local, remote: 80 },
                segment: SegmentKind::Syn,
            },
        };
        let packets: Vec<PacketInfo> = (0..100).map(packet).collect();
        let course = course("x", &packets, Duration::ZERO);
        assert_eq!((course.lines.len(), course.left_out), (MAX_LINES, 20));
    }
}
