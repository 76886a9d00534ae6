//! What holds for every translator, whoever talks to whom.

use proptest::prelude::*;

use super::*;

fn dependence() -> impl Strategy<Value = EndpointDependence> {
    prop_oneof![Just(EndpointDependence::Independent), Just(EndpointDependence::AddressAndPort)]
}

/// A host's last byte and port, a peer's last byte and port, TCP or UDP, and seconds of waiting.
type Flow = (u8, u16, u8, u16, bool, u64);

fn flow() -> impl Strategy<Value = Flow> {
    (1_u8..5, 2000_u16..2010, 1_u8..4, 50_u16..53, any::<bool>(), 0_u64..200)
}

proptest! {
    /// Outgoing packets have the NAT's address and a valid checksum; an answer reaches the host
    /// that sent first, with its own address; two hosts never share a port.
    #[test]
    fn replies_reach_the_host_that_sent_first(
        mapping in dependence(),
        filtering in dependence(),
        last_port in 2000_u16..2040,
        flows in prop::collection::vec(flow(), 1..100),
    ) {
        let ports = 2000..=last_port;
        let config = NatConfig { mapping, filtering, ports, ..NatConfig::new(address(NAT)) };
        let mut nat = Nat::new(config);
        let mut now = 0;
        for (host, port, peer, peer_port, is_tcp, wait) in flows {
            now += wait;
            let (host, peer) = (std::format!("10.0.0.{host}"), std::format!("198.51.100.{peer}"));
            let make = |from: (&str, u16), to: (&str, u16)| {
                if is_tcp { tcp(from, to, 0x10, b"data") } else { udp(from, to, b"data") }
            };
            let (host, peer) = ((host.as_str(), port), (peer.as_str(), peer_port));
            // There may be no port left.
            let Some(outside) = outbound(&mut nat, now, make(host, peer)) else { continue };
            let given = u16::from_be_bytes([outside.payload[0], outside.payload[1]]);
            prop_assert!((2000..=last_port).contains(&given));
            prop_assert_eq!(&outside, &make((NAT, given), peer));
            prop_assert_eq!(of_transport(&outside), 0);
            let answer = inbound(&mut nat, now, make(peer, (NAT, given)));
            prop_assert_eq!(answer, Some(make(peer, host)));
        }
        prop_assert!(nat.entries() <= 2 * usize::from(last_port - 1999));
    }

    /// The counters of every box add up, whatever arrives.
    #[test]
    fn no_packet_is_unaccounted_for(
        packets in prop::collection::vec(
            (prop::collection::vec(any::<u8>(), 0..60), 0_u8..140, any::<bool>(), 0_u64..100),
            0..60,
        ),
    ) {
        let mut boxes: Vec<Box<dyn Middlebox>> = Vec::from([
            Box::new(Nat::new(NatConfig::new(address(NAT)))) as Box<dyn Middlebox>,
            Box::new(Firewall::only_443()),
            Box::new(IdleTimeout::new(seconds(50), RefreshBehavior::Opening)),
            Box::new(crate::middlebox::long_hello::LongHelloFirewall::new()),
            Box::new(MtuLimit::new(60, MtuAnswer::TooBig(address(NAT)))),
            Box::new(ResetInjector::new(ResetTrigger::Contains(Vec::from([0])), true)),
        ]);
        for middlebox in &mut boxes {
            let (mut now, mut outgoing) = (0, 0);
            for (payload, protocol, inside, wait) in &packets {
                now += wait;
                let (from, to, side) = if *inside {
                    (HOST, SERVER, MiddleboxSide::Inside)
                } else {
                    (SERVER, NAT, MiddleboxSide::Outside)
                };
                let packet = Packet {
                    payload: Bytes::copy_from_slice(payload),
                    ..packet(*protocol, (from, 1), (to, 2), &[])
                };
                outgoing += process(middlebox, seconds(now), side, packet).len() as u64;
            }
            let counters = middlebox.counters();
            prop_assert_eq!(counters.received, packets.len() as u64);
            prop_assert_eq!(counters.received, counters.passed + counters.dropped.total());
            prop_assert_eq!(outgoing, counters.passed + counters.generated);
        }
    }
}
