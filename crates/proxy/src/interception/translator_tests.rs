//! Feeds packets to a translator, and checks its outputs.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use etherparse::{NetHeaders, PacketBuilder, PacketHeaders, TcpHeader, TransportHeader};
use eyas_relay::packet::UnreachableCause;
use proptest::prelude::*;

use super::translator::MAX_FLOWS;
use super::*;

const START: Duration = Duration::from_secs(1);
const LISTENERS: [u16; 2] = [7000, 7001];

fn at(text: &str) -> SocketAddr {
    text.parse().expect("an address")
}

fn host(to: SocketAddr, port: u16) -> SocketAddr {
    SocketAddr::new(addresses::like(to.ip(), HOST), port)
}

fn segment(from: SocketAddr, to: SocketAddr, set: impl FnOnce(&mut TcpHeader)) -> Vec<u8> {
    let mut header = TcpHeader::new(from.port(), to.port(), 100, 65_000);
    set(&mut header);
    let builder = match (from.ip(), to.ip()) {
        (IpAddr::V4(from), IpAddr::V4(to)) => PacketBuilder::ipv4(from.octets(), to.octets(), 64),
        (IpAddr::V6(from), IpAddr::V6(to)) => {
            let mut packet = Vec::new();
            let step = PacketBuilder::ipv6(from.octets(), to.octets(), 64).tcp_header(header);
            step.write(&mut packet, b"bytes").expect("fits");
            return packet;
        }
        _ => panic!("one family"),
    };
    let mut packet = Vec::new();
    builder.tcp_header(header).write(&mut packet, b"bytes").expect("fits");
    packet
}

fn syn(from: SocketAddr, to: SocketAddr) -> Vec<u8> {
    segment(from, to, |header| header.syn = true)
}

/// Returns addresses and header of a segment, and checks the checksums.
fn read(packet: &[u8]) -> (SocketAddr, SocketAddr, TcpHeader) {
    let headers = PacketHeaders::from_ip_slice(packet).expect("a packet");
    let Some(TransportHeader::Tcp(header)) = headers.transport else { panic!("no TCP") };
    let payload = headers.payload.slice();
    let (from, to, sum) = match headers.net.expect("IP") {
        NetHeaders::Ipv4(ip, _) => {
            assert_eq!(ip.header_checksum, ip.calc_header_checksum());
            let sum = header.calc_checksum_ipv4(&ip, payload).expect("short");
            (IpAddr::from(ip.source), IpAddr::from(ip.destination), sum)
        }
        NetHeaders::Ipv6(ip, _) => {
            let sum = header.calc_checksum_ipv6(&ip, payload).expect("short");
            (IpAddr::from(ip.source), IpAddr::from(ip.destination), sum)
        }
        NetHeaders::Arp(_) => panic!("no IP"),
    };
    assert_eq!(header.checksum, sum);
    let (source, destination) = (header.source_port, header.destination_port);
    (SocketAddr::new(from, source), SocketAddr::new(to, destination), header)
}

fn packet(translator: &mut FlowTranslator) -> Vec<u8> {
    match translator.poll_output() {
        Some(TranslatorOutput::Packet(packet)) => packet,
        other => panic!("{other:?}"),
    }
}

fn open(
    translator: &mut FlowTranslator,
    now: Duration,
    from: SocketAddr,
    to: SocketAddr,
) -> ProgramFlow {
    translator.handle_packet(now, &syn(from, to));
    match translator.poll_output() {
        Some(TranslatorOutput::Open(flow)) => flow,
        other => panic!("{other:?}"),
    }
}

/// ```text
/// HOST:4000 ──SYN──▶ 192.0.2.1:443      waits for the outcome of the race
///           grant    PEER:1024 ──SYN──▶ HOST:7000
/// HOST:4000 ◀──────── 192.0.2.1:443     the answer of the listener
/// ```
#[test]
fn a_granted_connection_is_redirected_to_the_listener() {
    for to in [at("192.0.2.1:443"), at("[2001:db8::1]:443")] {
        let mut translator = FlowTranslator::new(LISTENERS);
        let from = host(to, 4000);
        let listener = host(to, LISTENERS[usize::from(to.is_ipv6())]);
        let flow = open(&mut translator, START, from, to);
        assert_eq!((flow.client, flow.destination), (from, to));
        translator.handle_packet(START, &syn(from, to));
        assert_eq!(translator.poll_output(), None, "a repeated SYN is of the same connection");

        translator.grant(START, &flow);
        let (source, destination, header) = read(&packet(&mut translator));
        assert_eq!((source, destination, header.syn), (flow.peer, listener, true));
        translator.grant(START, &flow);
        assert_eq!(translator.poll_output(), None);

        let answer = segment(listener, flow.peer, |header| (header.syn, header.ack) = (true, true));
        translator.handle_packet(START, &answer);
        let (source, destination, _) = read(&packet(&mut translator));
        assert_eq!((source, destination), (to, from));

        translator.close(START, &flow);
        translator.handle_packet(START, &segment(from, to, |header| header.ack = true));
        assert_eq!(read(&packet(&mut translator)).0, flow.peer, "its last segments arrive");
        let next = open(&mut translator, START, from, to);
        assert_ne!(next.peer, flow.peer);
        assert_eq!(translator.flow_count(), 1);
    }
}

#[test]
fn a_program_gets_the_cause_of_a_refused_connection() {
    for to in [at("192.0.2.1:443"), at("[2001:db8::1]:443")] {
        let mut translator = FlowTranslator::new(LISTENERS);
        let from = host(to, 4000);
        let flow = open(&mut translator, START, from, to);
        translator.refuse(&flow, FlowDenial::Reset);
        let (source, destination, header) = read(&packet(&mut translator));
        assert_eq!((source, destination), (to, from));
        assert!(header.rst && header.ack);
        // The SYN, and the bytes in the same segment.
        assert_eq!(header.acknowledgment_number, 106);
        assert_eq!(translator.flow_count(), 0);

        let flow = open(&mut translator, START, from, to);
        translator.refuse(&flow, FlowDenial::Unreachable(UnreachableCause::Host));
        let error = packet(&mut translator);
        let headers = PacketHeaders::from_ip_slice(&error).expect("a packet");
        let length = match headers.transport.expect("ICMP") {
            TransportHeader::Icmpv4(icmp) => icmp.icmp_type.header_len(),
            TransportHeader::Icmpv6(icmp) => {
                assert_eq!((icmp.icmp_type.type_u8(), icmp.icmp_type.code_u8()), (1, 3));
                icmp.icmp_type.header_len()
            }
            other => panic!("{other:?}"),
        };
        assert_eq!(length, 8);
        assert_eq!(headers.payload.slice(), syn(from, to), "it quotes the refused packet");
    }
}

#[test]
fn packets_of_no_connection_are_reset() {
    let (from, to) = (host(at("192.0.2.1:1"), 4000), at("192.0.2.1:443"));
    let mut translator = FlowTranslator::new(LISTENERS);
    let stray = segment(from, to, |header| {
        (header.ack, header.acknowledgment_number) = (true, 77);
    });
    translator.handle_packet(START, &stray);
    let (source, _, header) = read(&packet(&mut translator));
    assert_eq!((source, header.rst, header.sequence_number), (to, true, 77));
    translator.handle_packet(START, &segment(from, to, |header| header.rst = true));
    assert_eq!(translator.poll_output(), None, "a reset is not answered");
    // A packet with a source address outside the namespace.
    translator.handle_packet(START, &syn(at("192.0.2.9:1"), to));
    assert_eq!(translator.poll_output(), None);
}

#[test]
fn datagrams_are_dns_queries_or_are_dropped() {
    let (from, to) = (host(at("192.0.2.1:1"), 4000), at("192.0.2.1:53"));
    let mut translator = FlowTranslator::new(LISTENERS);
    let query = eyas_relay::packet::udp(from, to, b"question").expect("one family");
    translator.handle_packet(START, &query);
    let message = b"question".to_vec();
    assert_eq!(translator.poll_output(), Some(TranslatorOutput::Question { from, to, message }));
    translator.datagram(to, from, b"answer");
    let answer = packet(&mut translator);
    assert_eq!(answer, eyas_relay::packet::udp(to, from, b"answer").expect("one family"));
    let other = eyas_relay::packet::udp(from, at("192.0.2.1:443"), b"quic").expect("one family");
    translator.handle_packet(START, &other);
    let error = packet(&mut translator);
    assert_eq!((error[9], error[20], error[21]), (1, 3, 3), "ICMP: the port is unreachable");
    translator.handle_packet(START, &error);
    assert_eq!(translator.poll_output(), None, "an error is not answered");
}

#[test]
fn the_number_of_connections_is_bounded() {
    let to = at("192.0.2.1:443");
    let mut translator = FlowTranslator::new(LISTENERS);
    let from = |number: usize| {
        let number = u16::try_from(number).expect("a port");
        host(to, 10_000 + number)
    };
    let flows: Vec<ProgramFlow> =
        (0..MAX_FLOWS).map(|number| open(&mut translator, START, from(number), to)).collect();
    translator.handle_packet(START, &syn(from(MAX_FLOWS), to));
    assert!(read(&packet(&mut translator)).2.rst);
    // A connection that has just ended is removed.
    translator.grant(START, &flows[7]);
    packet(&mut translator);
    translator.close(START, &flows[7]);
    let flow = open(&mut translator, START, from(MAX_FLOWS), to);
    assert_eq!(translator.flow_count(), MAX_FLOWS);
    // Late calls for the old connection do not affect the new one.
    translator.refuse(&flows[7], FlowDenial::Reset);
    translator.close(START, &flows[7]);
    translator.grant(START, &flow);
    assert_eq!(read(&packet(&mut translator)).0, flow.peer);
}

proptest! {
    //= hostile proxy
    //# a command with `--all-traffic` and arbitrary packets
    //= bound: `QUESTIONS`
    #[test]
    fn arbitrary_octets_never_panic(packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 1..20)) {
        let mut translator = FlowTranslator::new(LISTENERS);
        for bytes in packets {
            translator.handle_packet(START, &bytes);
            while translator.poll_output().is_some() {}
        }
        prop_assert!(translator.flow_count() <= 20);
    }

    /// Connections are opened, granted, refused and closed in any order: a segment reaches its own connection, or
    /// none.
    #[test]
    fn connections_are_not_mixed_up(events in prop::collection::vec((0_u16..4, 0_u8..5), 1..100)) {
        let mut translator = FlowTranslator::new(LISTENERS);
        let to = at("192.0.2.1:443");
        let mut flows: [Option<(ProgramFlow, bool)>; 4] = [None; 4];
        for (program, event) in events {
            let (from, place) = (host(to, 4000 + program), usize::from(program));
            match (event, flows[place]) {
                (0, None) => flows[place] = Some((open(&mut translator, START, from, to), false)),
                (1, Some((flow, false))) => {
                    translator.grant(START, &flow);
                    prop_assert_eq!(read(&packet(&mut translator)).0, flow.peer);
                    flows[place] = Some((flow, true));
                }
                (2, Some((flow, false))) => {
                    translator.refuse(&flow, FlowDenial::Reset);
                    prop_assert_eq!(read(&packet(&mut translator)).1, from);
                    flows[place] = None;
                }
                (3, Some((flow, true))) => {
                    translator.close(START, &flow);
                    flows[place] = None;
                }
                (4, known) => {
                    translator.handle_packet(START, &segment(from, to, |header| header.ack = true));
                    if let Some((flow, true)) = known {
                        prop_assert_eq!(read(&packet(&mut translator)).0, flow.peer);
                    }
                    while translator.poll_output().is_some() {}
                }
                _ => {}
            }
        }
    }
}
