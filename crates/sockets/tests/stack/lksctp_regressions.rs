//! Regression tests for differences found by the tests of lksctp.

use std::time::Duration;

use eyas_sockets::abi::number::{level, msg, option, so, socket};
use eyas_sockets::io::Received;
use eyas_sockets::{Errno, SocketName, Stack, StackConfig, StackInput, StackOutput};

use crate::pair::{CLIENT, Pair, SERVER, name};

const MANY: i32 = socket::SOCK_SEQPACKET;
const ONE: i32 = socket::SOCK_STREAM;
/// `SCTP_EVENTS`: data, associations, failed messages, the end.
const EVENTS: [u8; 14] = [1, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0];

fn kind(data: &[u8]) -> (u16, u16) {
    (u16::from_ne_bytes([data[0], data[1]]), u16::from_ne_bytes([data[8], data[9]]))
}

#[test]
fn several_associations_are_received_in_the_order_of_arrival() {
    let mut pair = Pair::new();
    let server = pair.listener(MANY, 5000, 5);
    pair.set(1, server, option::SCTP_EVENTS, &EVENTS).unwrap();
    for text in ["from the first", "from the second", "from the third"] {
        let client = pair.socket(0, MANY);
        pair.send_message_to(0, client, &format!("{SERVER}:5000"), text.as_bytes()).unwrap();
        pair.run_one_second();
    }
    for text in ["from the first", "from the second", "from the third"] {
        let up = pair.receive_message(1, server, 100, 0).unwrap();
        assert_eq!(kind(&up.data), (0x8001, 0), "COMM_UP before {text}");
        assert_eq!(&pair.receive_message(1, server, 100, 0).unwrap().data[..], text.as_bytes());
    }
    assert_eq!(pair.receive_message(1, server, 100, msg::MSG_DONTWAIT), Err(Errno::EAGAIN));
}

#[test]
fn a_connected_socket_reports_the_address_that_it_uses() {
    let mut pair = Pair::new();
    let listener = pair.listener(ONE, 5000, 5);
    let client = pair.socket(1, ONE);
    let to = name("127.0.0.1:5000");
    pair.at(1, |stack, now| stack.connect(now, client, to.as_bytes())).unwrap();
    pair.run_one_second();
    let (server, _) = pair.at(1, |stack, now| stack.accept(now, listener)).unwrap();
    let stack = &pair.hosts[1].stack;
    assert_eq!(stack.getsockname(server), stack.getpeername(client));
    assert_eq!(stack.getsockname(client), stack.getpeername(server));
    assert_eq!(stack.getsockname(listener), Ok(name("0.0.0.0:5000")));
}

#[test]
fn each_chunk_of_a_failed_message_is_reported() {
    let mut pair = Pair::new();
    let client = pair.socket(0, MANY);
    pair.set(0, client, option::SCTP_EVENTS, &EVENTS).unwrap();
    pair.set(0, client, option::SCTP_MAXSEG, &500u32.to_ne_bytes()).unwrap();
    pair.send_message_to(0, client, &format!("{SERVER}:5999"), &[7; 1200]).unwrap();
    pair.run_one_second();
    assert_eq!(
        kind(&pair.receive_message(0, client, 4096, 0).unwrap().data),
        (0x8001, 4),
        "CANT_STR_ASSOC"
    );
    // The flags of the chunks: first, middle and last.
    for (length, flags) in [(500, 2), (500, 0), (200, 1)] {
        let failed = pair.receive_message(0, client, 4096, 0).unwrap();
        assert_eq!((kind(&failed.data).0, failed.data.len()), (0x8003, 48 + length));
        assert_eq!(failed.data[16..18], u16::to_ne_bytes(flags));
    }
    assert_eq!(pair.receive_message(0, client, 4096, msg::MSG_DONTWAIT), Err(Errno::EAGAIN));
}

#[test]
fn a_heartbeat_is_requested_of_an_association() {
    let mut pair = Pair::new();
    let (client, ..) = pair.connected(&[0; 14]);
    let unconnected = pair.socket(0, MANY);
    let mut params = [0; 156];
    params[146..150].copy_from_slice(&4u32.to_ne_bytes());
    let refused = pair.set(0, unconnected, option::SCTP_PEER_ADDR_PARAMS, &params);
    assert_eq!(refused, Err(Errno::EINVAL));
    let sent = |pair: &Pair| pair.hosts[0].stack.status().counters.packets_out;
    let before = sent(&pair);
    pair.set(0, client, option::SCTP_PEER_ADDR_PARAMS, &params).unwrap();
    pair.run(Duration::from_millis(100));
    assert!(sent(&pair) > before, "the HEARTBEAT has left");
}

#[test]
fn an_unknown_socket_type_is_an_invalid_argument() {
    let mut pair = Pair::new();
    let created = pair.at(0, |stack, _| stack.socket(socket::AF_INET, -1, 132));
    assert_eq!(created, Err(Errno::EINVAL));
}

#[test]
fn the_end_of_file_follows_its_notification() {
    let mut pair = Pair::new();
    let (client, server, _) = pair.connected(&EVENTS);
    pair.receive_message(1, server, 100, 0).unwrap();
    pair.at(0, |stack, now| stack.close(now, client));
    pair.run(Duration::from_micros(1100));
    let shutdown = pair.receive_message(1, server, 100, 0).unwrap();
    assert_eq!(kind(&shutdown.data).0, 0x8005);
    // SHUTDOWN COMPLETE has not arrived yet.
    assert_eq!(pair.receive_message(1, server, 100, 0), Err(Errno::EAGAIN));
    assert_eq!(format!("{:?}", pair.poll(1, server)), "OUT");
    pair.run_one_second();
    assert_eq!(kind(&pair.receive_message(1, server, 100, 0).unwrap().data), (0x8001, 3));
    assert!(pair.receive_message(1, server, 100, 0).unwrap().data.is_empty());
}

#[test]
fn an_unused_port_over_ip_is_refused_only_if_no_other_program_uses_it() {
    let stack = |seed, address: &str| {
        let addresses = vec![address.parse().unwrap()];
        let config = StackConfig { addresses, encapsulation_port: 0, ..StackConfig::default() };
        Stack::new(config, [seed; 32], Duration::ZERO)
    };
    let (mut client, mut server) = (stack(1, CLIENT), stack(2, SERVER));
    let now = Duration::ZERO;
    let socket = client.socket(socket::AF_INET, ONE, 132).unwrap();
    let to = name(&format!("{SERVER}:5000"));
    let association = client.connect(now, socket, to.as_bytes()).unwrap();
    let arrival = |output: StackOutput, from: &str| match output {
        StackOutput::Transmit(packets) => Received {
            local: Some(packets.remote.ip()),
            remote: (from.parse::<std::net::IpAddr>().unwrap(), 0).into(),
            ecn: packets.ecn,
            peer: None,
            contents: packets.contents,
            segment_size: packets.segment_size,
        },
        other => panic!("no packet: {other:?}"),
    };
    let init = arrival(client.poll_output(now), CLIENT);
    server.handle_input(now, StackInput::Packets(init.clone()));
    assert_eq!(
        server.poll_output(now),
        StackOutput::OutOfTheBlue(init.clone()),
        "it may belong to another program"
    );
    assert_eq!(server.poll_output(now), StackOutput::Timeout(None));
    server.handle_input(now, StackInput::Refused(init));
    let abort = arrival(server.poll_output(now), SERVER);
    client.handle_input(now, StackInput::Packets(abort));
    while !matches!(client.poll_output(now), StackOutput::Timeout(_)) {}
    assert_eq!(client.connect_result(now, socket, association), Err(Errno::ECONNREFUSED));
}

#[test]
fn a_peeled_off_socket_ignores_the_destination_address() {
    let mut pair = Pair::new();
    let server = pair.listener(MANY, 5000, 5);
    let client = pair.socket(0, MANY);
    pair.send_message_to(0, client, &format!("{SERVER}:5000"), b"implicit").unwrap();
    pair.run_one_second();
    let id = *pair.hosts[1].stack.status().sockets[0].associations.first().unwrap();
    let peeled = pair.at(1, |stack, now| stack.peeloff(now, server, id)).unwrap();
    pair.send_message_to(1, peeled, &format!("{CLIENT}:5999"), b"to whom").unwrap();
    pair.run_one_second();
    assert_eq!(&pair.receive_message(0, client, 100, 0).unwrap().data[..], b"to whom");
}

#[test]
fn sending_to_the_peer_of_an_ended_association_is_a_broken_pipe() {
    let mut pair = Pair::new();
    let (client, server, _) = pair.connected(&[0; 14]);
    let peer = pair.hosts[1].stack.getpeername(server).unwrap();
    pair.at(0, |stack, now| stack.close(now, client));
    pair.run_one_second();
    let (peer, _) = SocketName::read(peer.as_bytes()).unwrap();
    let sent = pair.send_message_to(1, server, &peer.to_string(), b"too late");
    assert_eq!(sent, Err(Errno::EPIPE));
    let sent = pair.send_message_to(1, server, "10.0.0.9:1", b"another peer");
    assert_eq!(sent, Err(Errno::EADDRNOTAVAIL));
}

#[test]
fn autoclose_is_not_supported_by_one_to_one_sockets() {
    let mut pair = Pair::new();
    let one = pair.socket(0, ONE);
    assert_eq!(pair.set(0, one, option::SCTP_AUTOCLOSE, &[]), Err(Errno::EOPNOTSUPP));
}

#[test]
fn the_address_of_a_peer_includes_its_port() {
    let mut pair = Pair::new();
    let (client, ..) = pair.connected(&[0; 14]);
    for (port, expected) in [(5000, Ok(152)), (5001, Err(Errno::EINVAL))] {
        let mut info = [0; 152];
        let peer = name(&format!("{SERVER}:{port}"));
        info[4..4 + peer.as_bytes().len()].copy_from_slice(peer.as_bytes());
        let got = pair.get(0, client, option::SCTP_GET_PEER_ADDR_INFO, &info);
        assert_eq!(got.map(|info| info.len()), expected, "port {port}");
    }
}

#[test]
fn the_minimum_differs_for_each_buffer() {
    let mut pair = Pair::new();
    let one = pair.socket(0, ONE);
    let mut minimum_size = |option| {
        let level = level::SOL_SOCKET;
        pair.at(0, |stack, now| stack.setsockopt(now, one, level, option, &[0; 4])).unwrap();
        let got = pair.at(0, |stack, now| stack.getsockopt(now, one, level, option, &[0; 4]));
        u32::from_ne_bytes(got.unwrap().try_into().unwrap())
    };
    assert_eq!([minimum_size(so::SO_SNDBUF), minimum_size(so::SO_RCVBUF)], [4608, 2304]);
}

#[test]
fn so_error_reports_a_refused_connect_too() {
    let mut pair = Pair::new();
    let client = pair.socket(0, ONE);
    let to = name(&format!("{SERVER}:5999"));
    let association = pair.at(0, |stack, now| stack.connect(now, client, to.as_bytes())).unwrap();
    pair.run_one_second();
    let result = pair.at(0, |stack, now| stack.connect_result(now, client, association));
    assert_eq!(result, Err(Errno::ECONNREFUSED));
    assert_eq!(format!("{:?}", pair.poll(0, client)), "ERR");
    let error = |pair: &mut Pair| {
        let (level, option) = (level::SOL_SOCKET, so::SO_ERROR);
        let got = pair.at(0, |stack, now| stack.getsockopt(now, client, level, option, &[0; 4]));
        Errno(i32::from_ne_bytes(got.unwrap().try_into().unwrap()))
    };
    assert_eq!([error(&mut pair), error(&mut pair)], [Errno::ECONNREFUSED, Errno(0)]);
    assert_eq!(format!("{:?}", pair.poll(0, client)), "nothing");
    let nowhere = name(&format!("{SERVER}:0"));
    let refused = pair.at(0, |stack, now| stack.connect(now, client, nowhere.as_bytes()));
    assert_eq!(refused, Err(Errno::ECONNREFUSED));
}
