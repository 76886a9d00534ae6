//! Each box, packet by packet.

mod long_hello;
mod properties;

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::net::IpAddr;
use core::time::Duration;

use bytes::Bytes;

use super::checksum::of_transport;
use super::firewall::{Firewall, FirewallPolicy};
use super::idle::{IdleTimeout, RefreshBehavior};
use super::mtu::{MtuAnswer, MtuLimit};
use super::nat::{EndpointDependence, Nat, NatConfig, SctpTranslation};
use super::quota::{FlowAllowance, FlowQuota, QuotaConfig};
use super::reset::{ResetInjector, ResetTrigger};
use super::*;
use crate::packet::{ecn, protocol};

const HOST: &str = "10.0.0.1";
const OTHER: &str = "10.0.0.2";
const NAT: &str = "203.0.113.9";
const SERVER: &str = "198.51.100.7";

fn seconds(number: u64) -> Duration {
    Duration::from_secs(number)
}

fn address(text: &str) -> IpAddr {
    text.parse().expect("an address")
}

fn packet(protocol: u8, from: (&str, u16), to: (&str, u16), rest: &[u8]) -> Packet {
    let mut payload = Vec::new();
    payload.extend(from.1.to_be_bytes());
    payload.extend(to.1.to_be_bytes());
    payload.extend(rest);
    Packet {
        source: address(from.0),
        destination: address(to.0),
        protocol,
        ecn: ecn::NOT_CAPABLE,
        dont_fragment: true,
        payload: Bytes::from(payload),
    }
}

/// A datagram with its checksum.
fn udp(from: (&str, u16), to: (&str, u16), data: &[u8]) -> Packet {
    let length = (data.len() + 8) as u16;
    let header = |checksum: u16| {
        let mut rest = Vec::from(length.to_be_bytes());
        rest.extend(checksum.to_be_bytes());
        rest.extend(data);
        rest
    };
    let checksum = of_transport(&packet(protocol::UDP, from, to, &header(0)));
    packet(protocol::UDP, from, to, &header(checksum))
}

/// A segment with its checksum.
fn tcp(from: (&str, u16), to: (&str, u16), flags: u8, data: &[u8]) -> Packet {
    let header = |checksum: u16| {
        let mut rest = Vec::new();
        rest.extend(1000_u32.to_be_bytes());
        rest.extend(2000_u32.to_be_bytes());
        rest.extend([0x50, flags, 0xff, 0xff]);
        rest.extend(checksum.to_be_bytes());
        rest.extend([0, 0]);
        rest.extend(data);
        rest
    };
    let checksum = of_transport(&packet(protocol::TCP, from, to, &header(0)));
    packet(protocol::TCP, from, to, &header(checksum))
}

fn sctp(from: (&str, u16), to: (&str, u16), tag: u32) -> Packet {
    packet(protocol::SCTP, from, to, &[&tag.to_be_bytes()[..], &[9; 20]].concat())
}

/// The packets that leave the box when this one arrives.
fn process(
    middlebox: &mut impl Middlebox,
    now: Duration,
    from: MiddleboxSide,
    packet: Packet,
) -> Vec<(MiddleboxSide, Packet)> {
    middlebox.handle_packet(now, from, packet);
    core::iter::from_fn(|| middlebox.poll(now)).collect()
}

/// The single packet that leaves on the other side, if any.
fn forwarded(
    middlebox: &mut impl Middlebox,
    now: Duration,
    from: MiddleboxSide,
    packet: Packet,
) -> Option<Packet> {
    let mut outgoing = process(middlebox, now, from, packet);
    assert!(outgoing.len() <= 1 && outgoing.iter().all(|(to, _)| *to == from.opposite()));
    outgoing.pop().map(|(_, packet)| packet)
}

fn outbound(middlebox: &mut impl Middlebox, now: u64, packet: Packet) -> Option<Packet> {
    forwarded(middlebox, seconds(now), MiddleboxSide::Inside, packet)
}

fn inbound(middlebox: &mut impl Middlebox, now: u64, packet: Packet) -> Option<Packet> {
    forwarded(middlebox, seconds(now), MiddleboxSide::Outside, packet)
}

/// ```text
/// 10.0.0.1:5000 ──▶ 203.0.113.9:5000 ──▶ 198.51.100.7:53
/// 10.0.0.2:5000 ──▶ 203.0.113.9:1024 ──▶
/// ```
#[test]
fn a_nat_gives_each_host_a_port_and_updates_checksums() {
    let mut nat = Nat::new(NatConfig::new(address(NAT)));
    let server = (SERVER, 53);
    let first = outbound(&mut nat, 0, udp((HOST, 5000), server, b"abc"));
    assert_eq!(first, Some(udp((NAT, 5000), server, b"abc")));
    let second = outbound(&mut nat, 0, udp((OTHER, 5000), server, b"abcd"));
    assert_eq!(second, Some(udp((NAT, 1024), server, b"abcd")));
    let answer = inbound(&mut nat, 1, udp(server, (NAT, 1024), b"xyz"));
    assert_eq!(answer, Some(udp(server, (OTHER, 5000), b"xyz")));
    let segment = outbound(&mut nat, 1, tcp((HOST, 5000), (SERVER, 80), 2, b""));
    assert_eq!(segment, Some(tcp((NAT, 5000), (SERVER, 80), 2, b"")));
    // A datagram without a checksum keeps none.
    let bare = packet(protocol::UDP, (HOST, 5000), server, &[0, 9, 0, 0, 7]);
    let bare_outside = packet(protocol::UDP, (NAT, 5000), server, &[0, 9, 0, 0, 7]);
    assert_eq!(outbound(&mut nat, 1, bare), Some(bare_outside));
    assert_eq!(nat.counters().passed, 5);
    assert_eq!(nat.entries(), 3);
}

#[test]
fn a_nat_admits_only_contacted_peers() {
    let server = (SERVER, 53);
    let stranger = ("198.51.100.8", 53);
    let mut strict = Nat::new(NatConfig::new(address(NAT)));
    outbound(&mut strict, 0, udp((HOST, 5000), server, b"")).unwrap();
    assert_eq!(inbound(&mut strict, 0, udp(stranger, (NAT, 5000), b"")), None);
    assert!(inbound(&mut strict, 0, udp(server, (NAT, 5000), b"")).is_some());
    let open =
        NatConfig { filtering: EndpointDependence::Independent, ..NatConfig::new(address(NAT)) };
    let mut open = Nat::new(open);
    outbound(&mut open, 0, udp((HOST, 5000), server, b"")).unwrap();
    assert!(inbound(&mut open, 0, udp(stranger, (NAT, 5000), b"")).is_some());
    assert_eq!(inbound(&mut open, 0, udp(stranger, (NAT, 5001), b"")), None);
    assert_eq!(open.counters().dropped.total(), 1);
}

#[test]
fn a_nat_with_mappings_by_peer_gives_each_peer_another_port() {
    let mapping = EndpointDependence::AddressAndPort;
    let mut nat = Nat::new(NatConfig { mapping, ..NatConfig::new(address(NAT)) });
    let first = outbound(&mut nat, 0, udp((HOST, 5000), (SERVER, 53), b"")).unwrap();
    let second = outbound(&mut nat, 0, udp((HOST, 5000), (SERVER, 54), b"")).unwrap();
    assert_ne!(first.payload[..2], second.payload[..2]);
    assert!(inbound(&mut nat, 0, udp((SERVER, 53), (NAT, 5000), b"")).is_some());
    assert_eq!(inbound(&mut nat, 0, udp((SERVER, 54), (NAT, 5000), b"")), None);
}

#[test]
fn a_nat_removes_idle_mappings() {
    let server = (SERVER, 53);
    let mut nat = Nat::new(NatConfig::new(address(NAT)));
    outbound(&mut nat, 0, udp((HOST, 5000), server, b"")).unwrap();
    assert!(inbound(&mut nat, 300, udp(server, (NAT, 5000), b"")).is_some());
    // Packets from the outside keep no mapping alive (RFC 4787 §4.3).
    assert_eq!(inbound(&mut nat, 301, udp(server, (NAT, 5000), b"")), None);
    assert_eq!(nat.entries(), 0);
    outbound(&mut nat, 400, udp((OTHER, 5000), server, b"")).unwrap();
    let again = outbound(&mut nat, 400, udp((HOST, 5000), server, b"")).unwrap();
    assert_ne!(again.payload[..2], 5000_u16.to_be_bytes());
}

#[test]
fn a_nat_without_a_free_port_drops() {
    let config = NatConfig { ports: 2000..=2001, ..NatConfig::new(address(NAT)) };
    let mut nat = Nat::new(config);
    for port in [7, 8] {
        assert!(outbound(&mut nat, 0, udp((HOST, port), (SERVER, 53), b"")).is_some());
    }
    assert_eq!(outbound(&mut nat, 0, udp((HOST, 9), (SERVER, 53), b"")), None);
    // TCP has ports of its own, and those of UDP come back.
    assert!(outbound(&mut nat, 0, tcp((HOST, 9), (SERVER, 80), 2, b"")).is_some());
    assert!(outbound(&mut nat, 301, udp((HOST, 9), (SERVER, 53), b"")).is_some());
}

#[test]
fn a_nat_drops_sctp_or_only_changes_its_address() {
    let server = (SERVER, 5001);
    let mut plain = Nat::new(NatConfig::new(address(NAT)));
    assert_eq!(outbound(&mut plain, 0, sctp((HOST, 5000), server, 7)), None);
    let aware = SctpTranslation::AddressOnly;
    let mut nat = Nat::new(NatConfig { sctp: aware, ..NatConfig::new(address(NAT)) });
    let first = outbound(&mut nat, 0, sctp((HOST, 5000), server, 7));
    assert_eq!(first, Some(sctp((NAT, 5000), server, 7)));
    let answer = inbound(&mut nat, 0, sctp(server, (NAT, 5000), 8));
    assert_eq!(answer, Some(sctp(server, (HOST, 5000), 8)));
    // Another host with the same port is blocked.
    assert_eq!(outbound(&mut nat, 0, sctp((OTHER, 5000), server, 7)), None);
    // Other protocols have no ports that could be changed.
    assert_eq!(outbound(&mut nat, 0, packet(47, (HOST, 0), (SERVER, 0), &[])), None);
}

#[test]
fn firewalls_follow_their_rules() {
    let passes = |mut firewall: Firewall| {
        [
            sctp((HOST, 443), (SERVER, 443), 7),
            udp((HOST, 5000), (SERVER, 443), b""),
            udp((HOST, 5000), (SERVER, 53), b""),
            tcp((HOST, 5000), (SERVER, 443), 2, b""),
            tcp((HOST, 5000), (SERVER, 80), 2, b""),
        ]
        .map(|packet| outbound(&mut firewall, 0, packet).is_some())
    };
    assert_eq!(passes(Firewall::without_sctp()), [false, true, true, true, true]);
    assert_eq!(passes(Firewall::without_udp()), [true, false, false, true, true]);
    assert_eq!(passes(Firewall::only_443()), [false, true, false, true, false]);
    let web = Firewall::new(FirewallPolicy::OnlyTcpPorts([80, 443].into()));
    assert_eq!(passes(web), [false, false, false, true, true]);
    // Answers come from the port instead of going to it.
    let answer = udp((SERVER, 443), (HOST, 5000), b"");
    assert!(inbound(&mut Firewall::only_443(), 0, answer).is_some());
}

#[test]
fn an_idle_flow_is_forgotten() {
    let mut guard = IdleTimeout::new(seconds(30), RefreshBehavior::Any);
    let (to, from) = (udp((HOST, 1), (SERVER, 2), b""), udp((SERVER, 2), (HOST, 1), b""));
    assert_eq!(inbound(&mut guard, 0, from.clone()), None);
    assert!(outbound(&mut guard, 0, to.clone()).is_some());
    assert!(inbound(&mut guard, 30, from.clone()).is_some());
    assert_eq!(inbound(&mut guard, 61, from.clone()), None);
    assert!(outbound(&mut guard, 62, to).is_some());
    assert!(inbound(&mut guard, 63, from).is_some());
}

#[test]
fn a_strict_firewall_blocks_a_forgotten_connection() {
    let mut guard = IdleTimeout::new(seconds(30), RefreshBehavior::Opening);
    let (client, server) = ((HOST, 1), (SERVER, 2));
    assert_eq!(outbound(&mut guard, 0, tcp(client, server, 0x10, b"")), None);
    assert!(outbound(&mut guard, 0, tcp(client, server, 0x02, b"")).is_some());
    assert!(outbound(&mut guard, 1, tcp(client, server, 0x10, b"")).is_some());
    assert_eq!(outbound(&mut guard, 40, tcp(client, server, 0x10, b"")), None);
    assert!(outbound(&mut guard, 41, sctp(client, server, 0)).is_some());
    assert!(outbound(&mut guard, 42, sctp(client, server, 5)).is_some());
    assert_eq!(outbound(&mut guard, 90, sctp(client, server, 5)), None);
}

#[test]
fn a_black_hole_sends_nothing() {
    let mut hole = MtuLimit::black_hole(100);
    assert!(outbound(&mut hole, 0, udp((HOST, 1), (SERVER, 2), &[0; 72])).is_some());
    assert_eq!(outbound(&mut hole, 0, udp((HOST, 1), (SERVER, 2), &[0; 73])), None);
    assert_eq!(hole.counters().dropped.total(), 1);
}

#[test]
fn a_limit_answers_with_its_mtu() {
    let mut limit = MtuLimit::new(1300, MtuAnswer::TooBig(address("203.0.113.1")));
    let large = udp((HOST, 1), (SERVER, 2), &[7; 1400]);
    let outgoing = process(&mut limit, seconds(0), MiddleboxSide::Inside, large.clone());
    let [(MiddleboxSide::Inside, error)] = &outgoing[..] else { panic!("{outgoing:?}") };
    assert_eq!((error.protocol, error.destination), (protocol::ICMP, address(HOST)));
    // Type 3, code 4, and the MTU at the end of the header (RFC 1191 §4).
    assert_eq!((error.payload[0], error.payload[1]), (3, 4));
    assert_eq!(error.payload[6..8], 1300_u16.to_be_bytes());
    assert_eq!(error.payload[8 + 20..], large.payload[..8]);
    assert_eq!(OnesComplementSum::default().bytes(&error.payload).finish(), 0);
    // There can be no answer of the other family.
    let mut limit = MtuLimit::new(1300, MtuAnswer::TooBig(address("2001:db8::1")));
    assert!(process(&mut limit, seconds(0), MiddleboxSide::Inside, large).is_empty());
    let large = udp(("2001:db8::5", 1), ("2001:db8::6", 2), &[7; 1400]);
    let outgoing = process(&mut limit, seconds(0), MiddleboxSide::Outside, large);
    let [(MiddleboxSide::Outside, error)] = &outgoing[..] else { panic!("{outgoing:?}") };
    assert_eq!(error.len(), 1280);
    assert_eq!((error.protocol, error.payload[0]), (protocol::ICMPV6, 2));
    assert_eq!(error.payload[4..8], 1300_u32.to_be_bytes());
    assert_eq!(of_transport(error), 0);
}

/// ```text
/// client ──▶ "…evil…" ──▶ RST, "…evil…" ──▶ server
///        ◀── RST
/// ```
#[test]
fn a_reset_is_sent_to_both_ends() {
    let (client, server) = ((HOST, 5000), (SERVER, 443));
    let mut middlebox = ResetInjector::new(ResetTrigger::Contains(b"evil".to_vec()), false);
    assert!(outbound(&mut middlebox, 0, tcp(client, server, 0x10, b"good")).is_some());
    let bad = tcp(client, server, 0x18, b"some evil");
    let outgoing = process(&mut middlebox, seconds(0), MiddleboxSide::Inside, bad.clone());
    let [
        (MiddleboxSide::Outside, to_server),
        (MiddleboxSide::Inside, to_client),
        (MiddleboxSide::Outside, itself),
    ] = &outgoing[..]
    else {
        panic!("{outgoing:?}")
    };
    assert_eq!(itself, &bad);
    // In the name of the client, with its sequence number.
    assert_eq!((to_server.source, &to_server.payload[4..8]), (bad.source, &bad.payload[4..8]));
    // In the name of the server, with the number that the client acknowledged.
    let expected = (bad.destination, &bad.payload[8..12]);
    assert_eq!((to_client.source, &to_client.payload[4..8]), expected);
    for reset in [to_server, to_client] {
        assert_eq!(reset.payload[13], 0x04);
        assert_eq!(of_transport(reset), 0);
        // A reset is not answered by another one.
        assert_eq!(
            process(&mut middlebox, seconds(0), MiddleboxSide::Inside, reset.clone()).len(),
            1
        );
    }
    assert_eq!(middlebox.counters().generated, 2);
}

#[test]
fn a_syn_is_refused_with_the_address_of_the_server() {
    let (client, server) = ((HOST, 5000), (SERVER, 80));
    let mut middlebox = ResetInjector::new(ResetTrigger::Port(80), true);
    let outgoing =
        process(&mut middlebox, seconds(0), MiddleboxSide::Inside, tcp(client, server, 0x02, b""));
    let [(MiddleboxSide::Outside, _), (MiddleboxSide::Inside, refusal)] = &outgoing[..] else {
        panic!("{outgoing:?}")
    };
    assert_eq!(refusal.payload[13], 0x14);
    assert_eq!(refusal.payload[8..12], 1001_u32.to_be_bytes());
    assert!(outbound(&mut middlebox, 0, udp(client, server, b"")).is_some());
}

#[test]
fn truncated_packets_never_panic() {
    let mut boxes: Vec<Box<dyn Middlebox>> = Vec::from([
        Box::new(Nat::new(NatConfig::new(address(NAT)))) as Box<dyn Middlebox>,
        Box::new(Firewall::only_443()),
        Box::new(IdleTimeout::new(seconds(1), RefreshBehavior::Opening)),
        Box::new(MtuLimit::new(20, MtuAnswer::TooBig(address(NAT)))),
        Box::new(ResetInjector::new(ResetTrigger::Contains(b"x".to_vec()), true)),
    ]);
    for middlebox in &mut boxes {
        for protocol in [protocol::TCP, protocol::UDP, protocol::SCTP, protocol::ICMP] {
            for length in 0..30 {
                for side in [MiddleboxSide::Inside, MiddleboxSide::Outside] {
                    let mut short = packet(protocol, (HOST, 1), (SERVER, 2), &[0xff; 40]);
                    short.payload = short.payload.slice(..length);
                    process(middlebox, seconds(0), side, short);
                }
            }
        }
        let counters = middlebox.counters();
        assert_eq!(counters.received, counters.passed + counters.dropped.total());
    }
}

#[test]
fn a_quota_counts_packets_of_each_flow_in_both_directions() {
    let mut quota = FlowQuota::new(QuotaConfig::new([protocol::UDP], FlowAllowance::Packets(3)));
    let there = |port| udp((HOST, port), (SERVER, 443), b"x");
    let back = |port| udp((SERVER, 443), (HOST, port), b"x");
    let passed = [
        outbound(&mut quota, 0, there(1)).is_some(),
        inbound(&mut quota, 0, back(1)).is_some(),
        outbound(&mut quota, 0, there(1)).is_some(),
        inbound(&mut quota, 0, back(1)).is_some(),
        outbound(&mut quota, 0, there(1)).is_some(),
        // Another flow has its own, and TCP is not counted.
        outbound(&mut quota, 0, there(2)).is_some(),
    ];
    assert_eq!(passed, [true, true, true, false, false, true]);
    for _ in 0..10 {
        assert!(outbound(&mut quota, 0, tcp((HOST, 1), (SERVER, 443), 0x02, b"")).is_some());
    }
    assert_eq!((quota.counters().dropped.udp, quota.entries()), (2, 2));
    // A flow that goes on is not forgotten, however little of it passes.
    for now in [200, 400, 600] {
        assert_eq!(outbound(&mut quota, now, there(1)), None);
    }
    assert!(outbound(&mut quota, 901, there(1)).is_some());
}

#[test]
fn a_quota_of_bytes_ends_with_the_packet_that_exceeds_it() {
    // 20 + 8 + 100 bytes each.
    let mut quota = FlowQuota::new(QuotaConfig::new([], FlowAllowance::Bytes(300)));
    let full = || udp((HOST, 1), (SERVER, 443), &[0; 100]);
    let small = || udp((HOST, 1), (SERVER, 443), b"");
    let passed =
        [full(), full(), full(), small()].map(|packet| outbound(&mut quota, 0, packet).is_some());
    assert_eq!(passed, [true, true, false, false]);
}

#[test]
fn a_quota_remembers_a_bounded_number_of_flows() {
    let mut quota = FlowQuota::new(QuotaConfig::new([], FlowAllowance::Packets(1)));
    let flow = |number: u32| {
        let port = (number % 65_536) as u16;
        udp((HOST, port), (if number < 65_536 { SERVER } else { NAT }, 443), b"")
    };
    for number in 0..quota::MAX_FLOWS as u32 {
        assert!(outbound(&mut quota, 0, flow(number)).is_some());
    }
    assert_eq!(outbound(&mut quota, 1, flow(70_000)), None, "no room");
    assert!(outbound(&mut quota, 301, flow(70_000)).is_some(), "the others are idle");
    assert_eq!(quota.entries(), 1);
}
