//! Property tests of headers, routes, queues and framing.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::time::Duration;

use bytes::{BufMut as _, Bytes, BytesMut};
use etherparse::PacketBuilder;
use ipnet::IpNet;
use proptest::prelude::*;

use super::header::PacketHeader;
use super::queue::{LIFETIME, MAX_BYTES, MAX_PACKETS, PacketQueue};
use super::routes::{PeerRoutes, TakenNetwork};
use super::*;

fn packet(from: IpAddr, to: IpAddr, payload: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    let step = match (from, to) {
        (IpAddr::V4(from), IpAddr::V4(to)) => PacketBuilder::ipv4(from.octets(), to.octets(), 9),
        (IpAddr::V6(from), IpAddr::V6(to)) => PacketBuilder::ipv6(from.octets(), to.octets(), 9),
        _ => panic!("one family"),
    };
    step.udp(1, 2).write(&mut packet, payload).expect("it is short");
    packet
}

/// Few addresses, so that networks lie within one another.
fn address() -> impl Strategy<Value = IpAddr> {
    prop_oneof![
        (0..4_u8, 0..4_u8).prop_map(|(a, b)| Ipv4Addr::new(10, 9, a, b).into()),
        (0..4_u16, 0..4_u16).prop_map(|(a, b)| Ipv6Addr::new(0xfd00, 0, 0, a, 0, 0, 0, b).into()),
    ]
}

fn network() -> impl Strategy<Value = IpNet> {
    (address(), 0..=128_u8).prop_map(|(ip, bits)| {
        let most = if ip.is_ipv4() { 32 } else { 128 };
        IpNet::new(ip, bits % (most + 1)).expect("a network")
    })
}

#[derive(Clone, Debug)]
enum Action {
    Push(usize),
    Pop,
    Later(u64),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        3 => (0..2000_usize).prop_map(Action::Push),
        1 => (60_000..65_536_usize).prop_map(Action::Push),
        3 => Just(Action::Pop),
        1 => (0..400_u64).prop_map(Action::Later),
    ]
}

proptest! {
    #[test]
    fn a_header_is_read_from_whole_packets_only(
        from in address(), to in address(), payload in prop::collection::vec(any::<u8>(), 0..64),
        cut in 1..40_usize,
    ) {
        prop_assume!(from.is_ipv4() == to.is_ipv4());
        let mut packet = packet(from, to, &payload);
        prop_assert_eq!(PacketHeader::read(&packet), Some(PacketHeader { source: from, destination: to }));
        let shorter = packet.len().saturating_sub(cut);
        prop_assert_eq!(PacketHeader::read(&packet[..shorter]), None);
        packet.push(0);
        prop_assert_eq!(PacketHeader::read(&packet), None, "something follows it");
    }

    #[test]
    fn the_most_specific_network_of_an_address_gets_it(
        given in prop::collection::vec((network(), 0..4_u8), 0..24), removed in 0..4_u8,
        addresses in prop::collection::vec(address(), 1..16),
    ) {
        let (mut routes, mut list) = (PeerRoutes::default(), Vec::<(IpNet, u8)>::new());
        for (network, peer) in given {
            let taken = list.iter().find(|(one, _)| *one == network.trunc()).map(|(_, by)| *by);
            match routes.insert(&[network], &peer) {
                Ok(()) => prop_assert!(taken.is_none_or(|by| by == peer)),
                Err(error) => {
                    prop_assert_eq!((error.network, Some(error.by)), (network.trunc(), taken));
                    prop_assert_ne!(Some(peer), taken);
                }
            }
            if taken.is_none() {
                list.push((network.trunc(), peer));
            }
        }
        for removes in [false, true] {
            if removes {
                routes.remove(&removed);
                list.retain(|(_, peer)| *peer != removed);
            }
            prop_assert_eq!(routes.len(), list.len());
            for ip in &addresses {
                let around = list.iter().filter(|(network, _)| network.contains(ip));
                let smallest = around.max_by_key(|(network, _)| network.prefix_len());
                prop_assert_eq!(routes.peer(*ip), smallest.map(|(_, peer)| peer));
            }
        }
    }

    //= hostile tunnel
    //# more packets than the line carries
    //= bound: `LIFETIME`, `MAX_BYTES`, `MAX_PACKETS`, `packet_window`
    #[test]
    fn packets_wait_in_order_until_they_are_late_or_too_many(
        actions in prop::collection::vec(action(), 0..400),
    ) {
        let (mut queue, mut now) = (PacketQueue::default(), Duration::ZERO);
        let (mut pushed, mut popped) = (VecDeque::new(), 0);
        let mut number = 0_u64;
        for action in actions {
            match action {
                Action::Push(length) => {
                    let mut packet = BytesMut::new();
                    packet.put_u64(number);
                    packet.put_bytes(0, length);
                    queue.push(now, packet.freeze());
                    pushed.push_back((number, now));
                    number += 1;
                }
                Action::Pop => if let Some(packet) = queue.pop(now) {
                    let got = u64::from_be_bytes(packet[..8].try_into().expect("a number"));
                    let entry = std::iter::from_fn(|| pushed.pop_front()).find(|(one, _)| *one == got);
                    let (_, arrived) = entry.expect("it was pushed, and those before it are gone");
                    prop_assert!(now - arrived <= LIFETIME);
                    popped += 1;
                },
                Action::Later(millis) => now += Duration::from_millis(millis),
            }
            prop_assert!(queue.bytes() <= MAX_BYTES && queue.len() <= MAX_PACKETS);
            let all = popped + queue.late() + queue.overflow() + queue.len() as u64;
            prop_assert_eq!(all, number, "each is accounted for");
        }
    }

    #[test]
    fn packets_are_read_as_they_were_written_however_they_are_split(
        packets in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..300), 0..20),
        cuts in prop::collection::vec(1..200_usize, 1..20),
    ) {
        let mut wire = BytesMut::new();
        packets.iter().for_each(|packet| framing::append_packet(packet, &mut wire));
        let (mut unread, mut read) = (BytesMut::new(), Vec::new());
        for cut in cuts.iter().cycle() {
            if wire.is_empty() {
                break;
            }
            unread.extend_from_slice(&wire.split_to((*cut).min(wire.len())));
            read.extend(std::iter::from_fn(|| framing::remove_packet(&mut unread)).map(Vec::from));
        }
        prop_assert_eq!(read, packets);
        prop_assert!(unread.is_empty());
    }
}

#[test]
fn late_packets_are_dropped_before_others() {
    let mut queue = PacketQueue::default();
    queue.push(Duration::ZERO, Bytes::from_static(b"old"));
    queue.push(LIFETIME, Bytes::from_static(b"new"));
    let now = LIFETIME + Duration::from_nanos(1);
    assert_eq!(queue.pop(now).as_deref(), Some(&b"new"[..]));
    assert_eq!((queue.late(), queue.overflow(), queue.pop(now)), (1, 0, None));
    for _ in 0..=MAX_PACKETS {
        queue.push(now, Bytes::new());
    }
    assert_eq!((queue.len(), queue.overflow()), (MAX_PACKETS, 1));
}

#[test]
fn either_all_networks_are_assigned_or_none() {
    let network = |text: &str| text.parse::<IpNet>().expect("a network");
    let mut routes = PeerRoutes::default();
    routes.insert(&[network("10.9.0.2/32")], &1).expect("it is free");
    let requested = [network("10.9.0.3/32"), network("10.9.0.2/32")];
    let taken = TakenNetwork { network: network("10.9.0.2/32"), by: 1 };
    assert_eq!(routes.insert(&requested, &2), Err(taken));
    assert_eq!(routes.peer("10.9.0.3".parse().expect("an address")), None);
    routes.remove(&1);
    assert!(routes.is_empty());
}
