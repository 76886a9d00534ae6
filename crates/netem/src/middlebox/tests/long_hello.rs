//! The box that passes one packet of a ClientHello.

use super::super::long_hello::LongHelloFirewall;
use super::*;

const CLIENT: (&str, u16) = (HOST, 50_000);
const WEB: (&str, u16) = (SERVER, 443);
const SYN: u8 = 0x02;
const ACK: u8 = 0x10;
/// The beginning of a record with a ClientHello.
const HELLO: &[u8] = &[22, 3, 1, 6, 0, 1, 0, 5, 252];

/// A segment with this sequence number.
fn segment(from: (&str, u16), to: (&str, u16), sequence: u32, flags: u8, data: &[u8]) -> Packet {
    let mut rest = Vec::from(sequence.to_be_bytes());
    rest.extend([0, 0, 0, 0, 0x50, flags, 0xff, 0xff, 0, 0, 0, 0]);
    rest.extend(data);
    packet(protocol::TCP, from, to, &rest)
}

fn passes_out(middlebox: &mut LongHelloFirewall, packet: Packet) -> bool {
    let same = packet.clone();
    let outgoing = outbound(middlebox, 0, packet);
    assert!(outgoing.is_none() || outgoing == Some(same));
    outgoing.is_some()
}

fn passes_in(middlebox: &mut LongHelloFirewall, packet: Packet) -> bool {
    inbound(middlebox, 0, packet).is_some()
}

#[test]
fn of_a_client_hello_over_tcp_one_segment_passes_until_the_server_sends_data() {
    let mut middlebox = LongHelloFirewall::new();
    let out = |sequence, flags, data: &[u8]| segment(CLIENT, WEB, sequence, flags, data);
    let back = |data: &[u8]| segment(WEB, CLIENT, 7000, ACK, data);
    for _ in 0..2 {
        assert!(passes_out(&mut middlebox, out(99, SYN, &[])));
        assert!(passes_in(&mut middlebox, segment(WEB, CLIENT, 6999, SYN | ACK, &[])));
        assert!(passes_out(&mut middlebox, out(100, ACK, HELLO)));
        assert!(!passes_out(&mut middlebox, out(109, ACK, b"the rest")));
        assert!(passes_in(&mut middlebox, back(&[])), "an acknowledgement");
        assert!(!passes_out(&mut middlebox, out(109, ACK, b"the rest")));
        assert!(passes_out(&mut middlebox, out(100, ACK, HELLO)), "sent again");
        assert!(passes_out(&mut middlebox, out(109, ACK, &[])), "no data");
    }
    assert!(passes_in(&mut middlebox, back(&[22, 3, 3])));
    assert!(passes_out(&mut middlebox, out(109, ACK, b"the rest")));
    assert_eq!(middlebox.counters().dropped.tcp, 4);
    assert_eq!(middlebox.entries(), 1);
}

#[test]
fn what_begins_with_no_client_hello_passes() {
    let mut middlebox = LongHelloFirewall::new();
    for (at, data) in [(100, &b"GET / HTTP/1.1"[..]), (114, HELLO), (200, b"more")] {
        assert!(passes_out(&mut middlebox, segment(CLIENT, WEB, at, ACK, data)));
    }
    for _ in 0..3 {
        assert!(passes_out(&mut middlebox, udp(CLIENT, (SERVER, 53), b"a question")));
        assert!(passes_out(&mut middlebox, sctp((HOST, 9), (SERVER, 9), 1)));
    }
}

/// A datagram with packets of these types, in bits of the first byte.
fn datagram(types: &[u8], destination: &[u8], source: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for kind in types {
        bytes.extend([0xc0 | kind << 4, 0, 0, 0, 1]);
        for id in [destination, source] {
            bytes.push(id.len() as u8);
            bytes.extend(id);
        }
        if *kind == 0 {
            // A token of two bytes.
            bytes.extend([2, 0xaa, 0xaa]);
        }
        bytes.extend([0x40, 70]);
        bytes.extend([0x55; 70]);
    }
    bytes
}

const INITIAL: u8 = 0;
const HANDSHAKE: u8 = 2;

#[test]
fn of_a_quic_connection_one_datagram_passes_until_a_handshake_packet_comes_back() {
    let mut middlebox = LongHelloFirewall::new();
    let out = |source: &[u8]| udp(CLIENT, WEB, &datagram(&[INITIAL], b"chosen", source));
    let back = |types: &[u8], to: &[u8]| udp(WEB, CLIENT, &datagram(types, to, b"server"));
    assert!(passes_out(&mut middlebox, out(b"first")));
    assert!(!passes_out(&mut middlebox, out(b"first")));
    assert!(passes_in(&mut middlebox, back(&[INITIAL], b"first")), "an acknowledgement");
    assert!(!passes_out(&mut middlebox, out(b"first")));
    // Another connection between the same ports.
    assert!(passes_out(&mut middlebox, out(b"second")));
    assert!(passes_in(&mut middlebox, back(&[INITIAL, HANDSHAKE], b"second")));
    assert!(passes_out(&mut middlebox, out(b"second")));
    assert!(!passes_out(&mut middlebox, out(b"first")));
    // Short headers are of connections whose handshake is complete.
    assert!(passes_out(&mut middlebox, udp(CLIENT, WEB, &[0x40; 30])));
    assert_eq!(middlebox.counters().dropped.udp, 3);
}

#[test]
fn what_it_remembers_of_a_flow_is_bounded() {
    let mut middlebox = LongHelloFirewall::new();
    for number in 0..100_u8 {
        let first = udp(CLIENT, WEB, &datagram(&[INITIAL], b"chosen", &[number]));
        assert!(passes_out(&mut middlebox, first.clone()));
        assert!(!passes_out(&mut middlebox, first));
    }
    let forgotten = udp(CLIENT, WEB, &datagram(&[INITIAL], b"chosen", &[0]));
    assert!(passes_out(&mut middlebox, forgotten));
    assert_eq!(middlebox.entries(), 1);
}
