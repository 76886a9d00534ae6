//! What the two ends of a tunnel send one another as packets of `--tun`: framing does not depend on how the
//! stream is split, a header is read from whole IP packets alone, and the owner of an address is the one with
//! the smallest network around it.
#![no_main]

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use eyas_tunnel::internals::{
    LIFETIME, MAX_BYTES, MAX_PACKETS, PacketHeader, PacketQueue, PeerRoutes, TakenNetwork, framing,
};
use ipnet::IpNet;
use libfuzzer_sys::fuzz_target;

mod reach;

use reach::Reach;

static REACH: Reach<9> = Reach::new([
    "an IPv4 packet",
    "an IPv6 packet",
    "data that is no packet",
    "an announcement of datagrams",
    "a packet that is still incomplete",
    "an address within two networks",
    "a network that someone else has",
    "a late packet",
    "an overflow",
]);

/// Steps of one run; more find nothing new.
const MAX_STEPS: usize = 300;

/// Returns the packets in a stream that arrives in pieces of this size, and what remains.
fn packets(stream: &[u8], piece: usize) -> (Vec<Bytes>, BytesMut) {
    let (mut unread, mut packets) = (BytesMut::new(), Vec::new());
    for piece in stream.chunks(piece.max(1)) {
        unread.extend_from_slice(piece);
        packets.extend(std::iter::from_fn(|| framing::remove_packet(&mut unread)));
    }
    (packets, unread)
}

fn framed(stream: &[u8], piece: u8) {
    let (whole, rest) = packets(stream, stream.len());
    assert_eq!((&whole, &rest), (&packets(stream, piece.into()).0, &packets(stream, 1).1));
    let mut again = BytesMut::new();
    for packet in &whole {
        framing::append_packet(packet, &mut again);
        inspect(packet);
    }
    again.extend_from_slice(&rest);
    assert_eq!(again, stream);
    if !rest.is_empty() {
        REACH.hit("a packet that is still incomplete");
    }
}

/// Reads the header, and compares it with what RFC 791 §3.1 and RFC 8200 §3 say of the octets.
fn inspect(packet: &[u8]) {
    let number = |at: usize| usize::from(u16::from_be_bytes([packet[at], packet[at + 1]]));
    let address = |from: usize, length: usize| match length {
        4 => <[u8; 4]>::try_from(&packet[from..from + 4]).map(IpAddr::from).ok(),
        _ => <[u8; 16]>::try_from(&packet[from..from + 16]).map(IpAddr::from).ok(),
    };
    let (expected, what) = match packet.first().map(|octet| (octet >> 4, octet & 15)) {
        Some((4, words))
            if packet.len() >= 20
                && words >= 5
                && packet.len() >= usize::from(words) * 4
                && number(2) == packet.len() =>
        {
            (address(12, 4).zip(address(16, 4)), "an IPv4 packet")
        }
        Some((6, _)) if packet.len() >= 40 && number(4) + 40 == packet.len() => {
            (address(8, 16).zip(address(24, 16)), "an IPv6 packet")
        }
        _ if packet == framing::TAKES_DATAGRAMS => (None, "an announcement of datagrams"),
        _ => (None, "data that is no packet"),
    };
    let expected = expected.map(|(source, destination)| PacketHeader { source, destination });
    assert_eq!(PacketHeader::read(packet), expected);
    REACH.hit(what);
}

/// One of few addresses, so that networks lie within one another.
fn address(a: u8, b: u8) -> IpAddr {
    match a & 0x80 {
        0 => Ipv4Addr::new(10, 9, a & 3, b & 3).into(),
        _ => Ipv6Addr::new(0xfd00, 0, 0, u16::from(a & 3), 0, 0, 0, u16::from(b & 3)).into(),
    }
}

/// Assigns networks to peers, and compares the owners of addresses with those in a list.
fn routed(steps: impl Iterator<Item = [u8; 4]>) {
    let (mut routes, mut list) = (PeerRoutes::default(), Vec::<(IpNet, u8)>::new());
    for [kind, a, b, bits] in steps {
        let (ip, peer) = (address(a, b), kind / 4 % 4);
        match kind % 4 {
            0 | 1 => {
                let most = if ip.is_ipv4() { 32 } else { 128 };
                let network = IpNet::new(ip, bits % (most + 1)).expect("a prefix length").trunc();
                let owner = list.iter().find(|(one, _)| *one == network).map(|(_, owner)| *owner);
                let taken =
                    owner.filter(|owner| *owner != peer).map(|by| TakenNetwork { network, by });
                if taken.is_some() {
                    REACH.hit("a network that someone else has");
                }
                assert_eq!(routes.insert(&[network], &peer).err(), taken);
                if owner.is_none() {
                    list.push((network, peer));
                }
            }
            2 => {
                routes.remove(&peer);
                list.retain(|(_, owner)| *owner != peer);
            }
            _ => {
                let around = || list.iter().filter(|(network, _)| network.contains(&ip));
                let smallest = around().max_by_key(|(network, _)| network.prefix_len());
                assert_eq!(routes.peer(ip), smallest.map(|(_, owner)| owner));
                if around().count() > 1 {
                    REACH.hit("an address within two networks");
                }
            }
        }
        assert_eq!((routes.len(), routes.is_empty()), (list.len(), list.is_empty()));
    }
}

/// Queues packets, whose sizes and delays are drawn from the steps.
fn queued(steps: impl Iterator<Item = [u8; 4]>) {
    let (mut queue, mut now) = (PacketQueue::default(), Duration::ZERO);
    let (mut pushed, mut popped) = (0_u64, 0_u64);
    for [kind, a, b, times] in steps {
        let number = u16::from_be_bytes([a, b]);
        match kind % 3 {
            0 => {
                let packet = Bytes::from(vec![0; number.into()]);
                for _ in 0..=times {
                    queue.push(now, packet.clone());
                    pushed += 1;
                }
            }
            1 => popped += u64::from(queue.pop(now).is_some()),
            _ => now += Duration::from_millis(u64::from(number) % 400),
        }
        assert!(queue.bytes() <= MAX_BYTES && queue.len() <= MAX_PACKETS);
        let all = popped + queue.late() + queue.overflow() + queue.len() as u64;
        assert_eq!(all, pushed, "every packet is accounted for");
    }
    if queue.overflow() > 0 {
        REACH.hit("an overflow");
    }
    now += LIFETIME + Duration::from_nanos(1);
    if !queue.is_empty() {
        assert_eq!(queue.pop(now), None, "all are late");
        REACH.hit("a late packet");
    }
    assert!(queue.is_empty() && queue.bytes() == 0);
}

fuzz_target!(|bytes: &[u8]| {
    REACH.begin();
    let Some((mode, rest)) = bytes.split_first() else { return };
    let steps = rest.as_chunks::<4>().0.iter().copied().take(MAX_STEPS);
    match mode % 4 {
        0 => framed(rest, mode / 4),
        1 => routed(steps),
        2 => queued(steps),
        _ => inspect(rest),
    }
});
