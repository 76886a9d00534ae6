//! A capture at a client's end, as the lab reads it: any file is read to its end, what was written is
//! read back unchanged, and the measures of the packets are within their bounds.
#![no_main]

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use eyas_netem::capture::PacketCapture;
use eyas_netem::packet::{Packet, protocol};
use libfuzzer_sys::fuzz_target;

#[path = "../../crates/lab/src/live/clients/capture.rs"]
mod capture;
#[path = "../../crates/lab/src/live/clients/measures.rs"]
mod measures;
#[path = "../../crates/lab/src/live/clients/packet.rs"]
mod packet;
mod reach;

use packet::{PacketContent, PacketInfo};
use reach::Reach;

static REACH: Reach<9> = Reach::new([
    "a packet in a file",
    "a query",
    "a TCP segment",
    "a QUIC datagram",
    "an ICMP error",
    "an attempt",
    "a second attempt without an answer to the first",
    "a response over TCP",
    "a response over QUIC",
]);

/// The name of the trial, as in the seeds.
const NAME: &str = "t1-0.lab.test";
const INTERFACE: &str = "six at the client";
/// The addresses in a series of packets: for each family the client's, and those of two servers.
const IPV4: [[u8; 4]; 3] = [[198, 18, 1, 1], [198, 19, 0, 1], [198, 19, 0, 2]];
const IPV6: [&str; 3] = ["2001:2:0:2::1", "2001:2:0:ffff::1", "2001:2:0:ffff::2"];
/// The maximum number of packets in a series.
const MAX_PACKETS: usize = 200;
/// Room for all packets of an input.
const LIMIT: usize = 1 << 22;

/// Reads a series of packets from an input: the kind of each, its length, its payload.
fn series(mut input: &[u8]) -> Vec<(bool, Vec<u8>)> {
    let mut packets = Vec::new();
    while let ([kind, length, rest @ ..], 0..MAX_PACKETS) = (input, packets.len()) {
        let (payload, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        input = rest;
        let (sent, ipv6, second) = (kind & 1 != 0, kind & 2 != 0, kind & 4 != 0);
        let address = |which: usize| match ipv6 {
            true => IPV6[which].parse().expect("an address"),
            false => IpAddr::from(IPV4[which]),
        };
        let (own, peer) = (address(0), address(1 + usize::from(second)));
        let protocol = match (kind >> 3) & 3 {
            0 => protocol::TCP,
            1 => protocol::UDP,
            2 if ipv6 => protocol::ICMPV6,
            2 => protocol::ICMP,
            _ => *payload.first().unwrap_or(&0),
        };
        let (source, destination) = if sent { (own, peer) } else { (peer, own) };
        let payload = Bytes::copy_from_slice(payload);
        let packet = Packet { source, destination, protocol, ecn: 0, dont_fragment: true, payload };
        let mut bytes = Vec::new();
        packet.write_header(7, &mut bytes);
        bytes.extend_from_slice(&packet.payload);
        packets.push((sent, bytes));
    }
    packets
}

/// Checks that written packets are read back unchanged.
fn check_round_trip(packets: &[(bool, Vec<u8>)]) {
    let mut file = PacketCapture::new(LIMIT);
    let interface = file.interface(INTERFACE);
    for (number, (_, ip)) in packets.iter().enumerate() {
        file.bytes(at(number), interface, ip, None);
    }
    let read = capture::packets(file.contents());
    assert_eq!(read.len(), packets.len());
    for (number, (read, (_, ip))) in read.iter().zip(packets).enumerate() {
        assert_eq!((read.at, read.interface.as_str(), &read.ip), (at(number), INTERFACE, ip));
    }
}

fn at(number: usize) -> Duration {
    Duration::from_secs(1_700_000_000) + Duration::from_micros(number as u64)
}

fn count(packets: &[PacketInfo]) {
    for packet in packets {
        match &packet.content {
            PacketContent::Dns(dns) if !dns.is_answer => REACH.hit("a query"),
            PacketContent::Tcp { .. } => REACH.hit("a TCP segment"),
            PacketContent::Quic { .. } => REACH.hit("a QUIC datagram"),
            PacketContent::Unreachable { .. } => REACH.hit("an ICMP error"),
            _ => {}
        }
    }
}

/// Checks the measures of packets from any source.
fn check_measures(packets: &[PacketInfo]) {
    count(packets);
    let kept: Vec<PacketInfo> =
        packets.iter().filter(|packet| measures::belongs(packet, NAME)).cloned().collect();
    let ended = kept.last().map(|packet| packet.at);
    let measures = measures::measure(&kept, NAME, ended);
    let of = |name: &str| measures.get(name).copied();
    assert!(measures.values().all(|number| number.is_finite()), "{measures:?}");
    assert_eq!(of("packets"), Some(kept.len() as f64));
    for share in ["failed", "first-6", "won-6", "won-quic"] {
        assert!(of(share).is_none_or(|share| share == 0.0 || share == 100.0), "{measures:?}");
    }
    let attempted = of("addresses-6").unwrap_or_default() + of("addresses-4").unwrap_or_default();
    let sent = kept.iter().filter(|packet| packet.sent).count();
    assert!(attempted <= sent as f64, "{measures:?}");
    for wait in ["first", "cad", "between", "rd", "waits-for-a", "byte", "linger"] {
        assert!(of(wait).is_none_or(|wait| wait >= 0.0), "{wait}: {measures:?}");
    }
    if attempted > 0.0 {
        REACH.hit("an attempt");
    }
    if of("cad").is_some() {
        REACH.hit("a second attempt without an answer to the first");
    }
    match (of("byte"), of("won-quic")) {
        (Some(_), Some(100.0)) => REACH.hit("a response over QUIC"),
        (Some(_), _) => REACH.hit("a response over TCP"),
        _ => {}
    }
}

fuzz_target!(|input: &[u8]| {
    REACH.begin();
    let captured = capture::packets(input);
    assert!(captured.iter().map(|packet| packet.ip.len()).sum::<usize>() <= input.len());
    let parse = |sent: bool, captured: &capture::CapturedPacket| {
        packet::parse(captured.at, sent, &captured.ip)
    };
    for packet in &captured {
        REACH.hit("a packet in a file");
        for sent in [false, true] {
            if let Some(info) = parse(sent, packet) {
                assert!(info.length <= packet.ip.len());
            }
        }
    }
    let mut of_file: Vec<PacketInfo> = captured
        .iter()
        .filter_map(|packet| {
            let sent = Packet::parse(&packet.ip).is_some_and(|ip| is_client(ip.source));
            parse(sent, packet)
        })
        .collect();
    of_file.sort_by_key(|packet| packet.at);
    check_measures(&of_file);
    let packets = series(input);
    check_round_trip(&packets);
    let series = packets.iter().enumerate().map(|(number, (sent, ip))| {
        let info = packet::parse(at(number), *sent, ip).expect("an IP packet");
        assert_eq!(info.length, ip.len());
        info
    });
    check_measures(&series.collect::<Vec<_>>());
});

fn is_client(address: IpAddr) -> bool {
    address == IpAddr::from(IPV4[0]) || IPV6[0].parse() == Ok(address)
}
