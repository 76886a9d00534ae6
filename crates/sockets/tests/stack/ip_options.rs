//! Options of IP and of sockets in general: each has an effect, has none on Linux either, or is
//! refused. The outcomes are those of Linux 6.1, but for what is refused here.

use eyas_sctp::config::Marking;
use eyas_sockets::abi::number::ip::{IP_TOS as TOS, IP_TTL as TTL};
use eyas_sockets::abi::number::ipv6::{
    IPV6_TCLASS as CLASS, IPV6_UNICAST_HOPS as HOPS, IPV6_V6ONLY as V6_ONLY,
};
use eyas_sockets::abi::number::{level, option, so, socket};
use eyas_sockets::io::{Received, Transmit};
use eyas_sockets::{
    Errno, SendRequest, SocketId, SocketName, Stack, StackConfig, StackInput, StackOutput,
};
use std::time::Duration;

const NOW: Duration = Duration::ZERO;
const IP: i32 = level::SOL_IP;
const IPV6: i32 = level::SOL_IPV6;
const GENERAL: i32 = level::SOL_SOCKET;

struct Bench(Stack);

impl Bench {
    fn new() -> Self {
        let addresses = ["192.0.2.1", "2001:db8::1"].map(|ip| ip.parse().unwrap()).to_vec();
        Self(Stack::new(StackConfig { addresses, ..StackConfig::default() }, [7; 32], NOW))
    }

    fn socket(&mut self, domain: i32) -> SocketId {
        self.0.socket(domain, socket::SOCK_STREAM, socket::IPPROTO_SCTP).unwrap()
    }

    fn set(&mut self, id: SocketId, level: i32, name: i32, value: i32) -> Result<(), Errno> {
        self.0.setsockopt(NOW, id, level, name, &value.to_ne_bytes())
    }

    fn get(&mut self, id: SocketId, level: i32, name: i32) -> Result<i32, Errno> {
        let value = self.0.getsockopt(NOW, id, level, name, &[0; 4])?;
        Ok(i32::from_ne_bytes(value.try_into().unwrap()))
    }

    fn packets(&mut self) -> Vec<Transmit> {
        let mut packets = Vec::new();
        loop {
            match self.0.poll_output(NOW) {
                StackOutput::Transmit(packet) => packets.push(packet),
                StackOutput::Timeout(_) => return packets,
                _ => {}
            }
        }
    }

    fn marking_towards(&mut self, id: SocketId, peer: &str) -> Marking {
        let peer = SocketName::new(peer.parse().unwrap());
        self.0.connect(NOW, id, peer.as_bytes()).unwrap();
        self.packets()[0].marking
    }
}

#[test]
fn packets_carry_what_their_socket_asked_for() {
    let mark = |dscp_bits, hop_limit, mark| Marking { dscp_bits, hop_limit, mark };
    for (domain, peer, options, wanted) in [
        (socket::AF_INET, "192.0.2.9:5000", &[(IP, TOS, 0xbb)][..], mark(0xb8, None, 0)),
        (socket::AF_INET, "192.0.2.9:5000", &[(IP, TTL, 7)], mark(0, Some(7), 0)),
        (socket::AF_INET, "192.0.2.9:5000", &[(GENERAL, so::SO_MARK, 77)], mark(0, None, 77)),
        (
            socket::AF_INET6,
            "[2001:db8::9]:5000",
            &[(IPV6, CLASS, 0x28), (IPV6, HOPS, 5), (IP, TOS, 0xb8)],
            mark(0x28, Some(5), 0),
        ),
        // IPv4 packets of an IPv6 socket have the options of IPv4.
        (
            socket::AF_INET6,
            "[::ffff:192.0.2.9]:5000",
            &[(IPV6, CLASS, 0x28), (IPV6, HOPS, 5), (IP, TOS, 0xb8)],
            mark(0xb8, None, 0),
        ),
    ] {
        let mut bench = Bench::new();
        let id = bench.socket(domain);
        for (level, name, value) in options {
            bench.set(id, *level, *name, *value).unwrap();
        }
        assert_eq!(bench.marking_towards(id, peer), wanted, "{peer} {options:?}");
    }
}

#[test]
fn values_are_checked_and_read_back() {
    let mut bench = Bench::new();
    let [four, six] = [socket::AF_INET, socket::AF_INET6].map(|domain| bench.socket(domain));
    let invalid = Err(Errno::EINVAL);
    for (id, level, name, value, outcome, shown) in [
        (four, IP, TOS, 0xb8, Ok(()), 0xb8),
        (four, IP, TOS, 256, Ok(()), 0),
        (four, IP, TOS, -1, Ok(()), 252),
        (four, IP, TTL, 0, invalid, 64),
        (four, IP, TTL, 256, invalid, 64),
        (four, IP, TTL, 255, Ok(()), 255),
        (four, IP, TTL, -1, Ok(()), 64),
        (six, IPV6, CLASS, 0xb8, Ok(()), 0xb8),
        (six, IPV6, CLASS, 256, invalid, 0xb8),
        (six, IPV6, CLASS, -2, invalid, 0xb8),
        (six, IPV6, CLASS, -1, Ok(()), 0),
        (six, IPV6, HOPS, 5, Ok(()), 5),
        (six, IPV6, HOPS, 256, invalid, 5),
        (six, IPV6, HOPS, -2, invalid, 5),
        (six, IPV6, HOPS, 0, Ok(()), 0),
        (six, IPV6, HOPS, -1, Ok(()), 64),
        (six, IPV6, V6_ONLY, 1, Ok(()), 1),
        (four, GENERAL, so::SO_RCVLOWAT, 5, Ok(()), 5),
        (four, GENERAL, so::SO_BROADCAST, 1, Ok(()), 1),
    ] {
        assert_eq!(bench.set(id, level, name, value), outcome, "{level} {name} {value}");
        assert_eq!(bench.get(id, level, name), Ok(shown), "{level} {name} {value}");
    }
    assert_eq!(bench.0.setsockopt(NOW, four, IP, TOS, &[0x28]), Ok(()));
    assert_eq!(bench.get(four, IP, TOS), Ok(0x28));
    assert_eq!(bench.set(four, IPV6, CLASS, 1), Err(Errno::ENOPROTOOPT));
    assert_eq!(bench.get(four, IPV6, CLASS), Err(Errno::ENOPROTOOPT));
}

#[test]
fn what_has_no_effect_is_refused_and_counted() {
    let mut bench = Bench::new();
    let id = bench.socket(socket::AF_INET6);
    let refused = [
        (GENERAL, so::SO_PRIORITY, 6),
        (GENERAL, so::SO_DONTROUTE, 1),
        (GENERAL, so::SO_TIMESTAMP, 1),
        (GENERAL, so::SO_BINDTOIFINDEX, 1),
        (GENERAL, 999, 1),
        (IP, 8, 1),
        (IP, 19, 1),
        (IP, 999, 1),
        (IPV6, 49, 1),
        (IPV6, 75, 1),
        (IPV6, 999, 1),
        (6, 1, 1),
    ];
    for (level, name, value) in refused {
        assert_eq!(bench.set(id, level, name, value), Err(Errno::ENOPROTOOPT), "{level} {name}");
    }
    assert_eq!(bench.0.status().unknown_options.len(), refused.len());
    for (level, name) in [(GENERAL, so::SO_PRIORITY), (GENERAL, so::SO_TIMESTAMP), (IP, 8)] {
        assert_eq!(bench.set(id, level, name, 0), Ok(()), "what applies anyway");
        assert_eq!(bench.get(id, level, name), Ok(0));
    }
    let device = |bench: &mut Bench, name: &[u8]| {
        bench.0.setsockopt(NOW, id, GENERAL, so::SO_BINDTODEVICE, name)
    };
    assert_eq!(device(&mut bench, b"lo"), Err(Errno::ENOPROTOOPT));
    assert_eq!([device(&mut bench, b""), device(&mut bench, b"\0")], [Ok(()); 2]);
}

#[test]
fn an_accepted_socket_inherits_the_hop_limit_alone() {
    let mut pair = super::pair::Pair::new();
    let (client, _, listener) = pair.connected(&[0; 14]);
    pair.at(0, |stack, now| stack.close(now, client));
    for (level, name, value) in [(IP, TOS, 0xb8), (IP, TTL, 33), (GENERAL, so::SO_MARK, 9)] {
        let value = i32::to_ne_bytes(value);
        pair.at(1, |stack, now| stack.setsockopt(now, listener, level, name, &value)).unwrap();
    }
    let client = pair.socket(0, socket::SOCK_STREAM);
    let name = SocketName::new(format!("{}:5000", super::pair::SERVER).parse().unwrap());
    pair.at(0, |stack, now| stack.connect(now, client, name.as_bytes())).unwrap();
    pair.run_one_second();
    let (accepted, _) = pair.at(1, |stack, now| stack.accept(now, listener)).unwrap();
    for (level, name, wanted) in [(IP, TOS, 0), (IP, TTL, 33), (GENERAL, so::SO_MARK, 0)] {
        let got = pair.at(1, |stack, now| stack.getsockopt(now, accepted, level, name, &[0; 4]));
        assert_eq!(got, Ok(i32::to_ne_bytes(wanted).to_vec()), "{level} {name}");
    }
}

/// The scope is the number of an interface; names show it, which Linux omits from those of
/// `getsockname` and `getpeername`.
#[test]
fn link_local_addresses_need_a_scope_and_keep_it() {
    let name = |text: &str| SocketName::new(text.parse().unwrap());
    let scoped = name("[fe80::1%7]:5000");
    let config =
        StackConfig { addresses: vec!["fe80::1".parse().unwrap()], ..StackConfig::default() };
    let mut bench = Bench(Stack::new(config, [7; 32], NOW));
    let [server, client, fresh] = [(); 3].map(|()| bench.socket(socket::AF_INET6));
    let without = name("[fe80::1]:5000");
    let bind = |bench: &mut Bench, to: &SocketName| bench.0.bind(NOW, server, to.as_bytes());
    assert_eq!(bind(&mut bench, &without), Err(Errno::EADDRNOTAVAIL));
    let bound = bench.0.bindx(NOW, server, without.as_bytes(), true);
    assert_eq!(bound, Err(Errno::EADDRNOTAVAIL));
    assert_eq!(bind(&mut bench, &scoped), Ok(()));
    assert_eq!(bench.0.getsockname(server), Ok(scoped));
    bench.0.listen(NOW, server, 5).unwrap();
    for outcome in [
        bench.0.connect(NOW, client, without.as_bytes()),
        bench.0.connectx(NOW, client, without.as_bytes()),
    ] {
        assert_eq!(outcome, Err(Errno::EINVAL));
    }
    bench.0.connect(NOW, client, scoped.as_bytes()).unwrap();
    // Packets to itself.
    for _ in 0..10 {
        for packet in bench.packets() {
            assert_eq!(packet.remote.to_string(), "[fe80::1%7]:9899");
            let received = Received {
                local: Some(packet.remote.ip()),
                remote: packet.remote,
                ecn: packet.ecn,
                peer: None,
                contents: packet.contents,
                segment_size: packet.segment_size,
            };
            bench.0.handle_input(NOW, StackInput::Packets(received));
        }
    }
    let (accepted, peer) = bench.0.accept(NOW, server).unwrap();
    let own = bench.0.getsockname(client).unwrap();
    assert_eq!(peer, own);
    assert!(format!("{own:?}").starts_with("[fe80::1%7]:"), "{own:?}");
    assert_eq!(bench.0.getpeername(client), Ok(scoped));
    assert_eq!(bench.0.getsockname(accepted), Ok(scoped));
    assert_eq!(bench.0.getpeername(accepted), Ok(own));
    let list = option::SCTP_GET_LOCAL_ADDRS;
    let names = bench.0.getsockopt(NOW, accepted, level::SOL_SCTP, list, &[0; 100]).unwrap();
    assert_eq!(names[8..], *scoped.as_bytes());
    let sent = SendRequest { data: "x".into(), name: without.as_bytes(), ..SendRequest::default() };
    assert_eq!(bench.0.send(NOW, fresh, sent).map(drop), Err(Errno::EINVAL));
}

#[test]
fn buffers_have_the_sizes_of_linux() {
    const MAX: i32 = 2 * 212_992;
    let mut bench = Bench::new();
    let id = bench.socket(socket::AF_INET);
    for (send, receive, request, shown) in [
        (so::SO_SNDBUF, so::SO_RCVBUF, 1, [4608, 2304]),
        (so::SO_SNDBUF, so::SO_RCVBUF, 100_000, [200_000; 2]),
        (so::SO_SNDBUF, so::SO_RCVBUF, 1 << 20, [MAX; 2]),
        (so::SO_SNDBUF, so::SO_RCVBUF, -1, [MAX; 2]),
        (so::SO_SNDBUFFORCE, so::SO_RCVBUFFORCE, 1 << 20, [2 << 20; 2]),
        (so::SO_SNDBUFFORCE, so::SO_RCVBUFFORCE, -1, [4608, 2304]),
        (so::SO_SNDBUFFORCE, so::SO_RCVBUFFORCE, 1 << 30, [8 << 20; 2]),
    ] {
        for name in [send, receive] {
            bench.set(id, GENERAL, name, request).unwrap();
        }
        let got = [so::SO_SNDBUF, so::SO_RCVBUF].map(|name| bench.get(id, GENERAL, name).unwrap());
        assert_eq!(got, shown, "{request}");
        assert_eq!(
            bench.get(id, GENERAL, send),
            if send == so::SO_SNDBUF { Ok(got[0]) } else { Err(Errno::ENOPROTOOPT) }
        );
    }
    let config = StackConfig {
        max_send_buffer: 4 << 20,
        max_receive_buffer: 1 << 20,
        ..StackConfig::default()
    };
    bench.0 = Stack::new(config, [7; 32], NOW);
    let id = bench.socket(socket::AF_INET);
    for (name, shown) in [(so::SO_SNDBUF, 8 << 20), (so::SO_RCVBUF, 2 << 20)] {
        bench.set(id, GENERAL, name, 8 << 20).unwrap();
        assert_eq!(bench.get(id, GENERAL, name), Ok(shown));
    }
    bench.0.handle_input(NOW, StackInput::Tick);
}

#[test]
fn a_message_of_a_megabyte_is_sent_whole() {
    let mut pair = super::pair::Pair::new();
    let (client, server, _) = pair.connected(&[0; 14]);
    let size = (1_i32 << 20).to_ne_bytes();
    for (host, id, name) in [(0, client, so::SO_SNDBUFFORCE), (1, server, so::SO_RCVBUFFORCE)] {
        pair.at(host, |stack, now| stack.setsockopt(now, id, GENERAL, name, &size)).unwrap();
    }
    let data: Vec<u8> = (0..1 << 20).map(|at: u32| (at / 251) as u8).collect();
    pair.send_message(0, client, &data).unwrap();
    pair.run(Duration::from_secs(20));
    let mut found = Vec::new();
    while let Ok(part) = pair.receive_message(1, server, 1 << 20, 0) {
        found.extend_from_slice(&part.data);
        pair.run_one_second();
        if found.len() >= data.len() {
            break;
        }
    }
    assert!(found == data, "{} of {} bytes", found.len(), data.len());
}
