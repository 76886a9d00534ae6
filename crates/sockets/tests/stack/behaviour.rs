//! Tests of the measured behaviour of Linux 6.1: errno, `poll`, lengths.

use eyas_sockets::abi::number::{how, level, msg, option, so, socket};
use eyas_sockets::{CloseResult, Errno};

use super::pair::{Pair, SERVER, name};

const STREAM: i32 = socket::SOCK_STREAM;
const MANY: i32 = socket::SOCK_SEQPACKET;
const NO_EVENTS: [u8; 14] = [0; 14];
/// Data, association changes and SHUTDOWN.
const EVENTS: [u8; 14] = [1, 1, 0, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 1];
const DONTWAIT: i32 = msg::MSG_DONTWAIT;

fn poll(pair: &Pair, host: usize, socket: eyas_sockets::SocketId) -> String {
    format!("{:?}", pair.poll(host, socket))
}

fn kind(bytes: &[u8]) -> (u16, u16) {
    let field = |at: usize| u16::from_ne_bytes([bytes[at], bytes[at + 1]]);
    (field(0), field(8))
}

#[test]
fn sockets_by_domain_type_and_protocol() {
    let mut pair = Pair::new();
    for (domain, kind, protocol, outcome) in [
        (2, STREAM, 132, Ok(())),
        (10, MANY, 132, Ok(())),
        (2, MANY, 0, Ok(())),
        (2, socket::SOCK_DGRAM, 132, Err(Errno::EPROTONOSUPPORT)),
        (1, STREAM, 132, Err(Errno::EAFNOSUPPORT)),
    ] {
        let created = pair.at(0, |stack, _| stack.socket(domain, kind, protocol));
        assert_eq!(created.map(drop), outcome, "socket({domain}, {kind}, {protocol})");
    }
}

#[test]
fn bind_returns_the_specific_errno() {
    let mut pair = Pair::new();
    let (one, two) = (pair.socket(1, STREAM), pair.socket(1, STREAM));
    let bind = |pair: &mut Pair, socket, to: &str| {
        let to = name(to);
        pair.at(1, |stack, now| stack.bind(now, socket, to.as_bytes()))
    };
    assert_eq!(bind(&mut pair, one, "192.0.2.9:5000"), Err(Errno::EADDRNOTAVAIL));
    assert_eq!(bind(&mut pair, one, "127.0.0.9:5000"), Ok(()));
    assert_eq!(bind(&mut pair, one, "127.0.0.9:5000"), Err(Errno::EINVAL), "again");
    assert_eq!(bind(&mut pair, two, "0.0.0.0:5000"), Err(Errno::EADDRINUSE));
    assert_eq!(bind(&mut pair, two, "127.0.0.8:5000"), Ok(()), "another address");
    let unix = [1u8, 0, b'/', b't'];
    let three = pair.socket(1, STREAM);
    let outcome = pair.at(1, |stack, now| stack.bind(now, three, &unix));
    assert_eq!(outcome, Err(Errno::EAFNOSUPPORT));
    let add = |pair: &mut Pair, to: &str, add| {
        let to = name(to);
        pair.at(1, |stack, now| stack.bindx(now, one, to.as_bytes(), add))
    };
    assert_eq!(add(&mut pair, "127.0.0.7:5001", true), Err(Errno::EINVAL), "another port");
    assert_eq!(add(&mut pair, "127.0.0.7:0", true), Ok(()));
    assert_eq!(add(&mut pair, "127.0.0.7:0", false), Ok(()));
    assert_eq!(add(&mut pair, "127.0.0.9:0", false), Err(Errno::EBUSY), "the last one");
}

#[test]
fn a_port_that_is_shared_is_listened_on_once() {
    let mut pair = Pair::new();
    let sockets = [pair.socket(1, STREAM), pair.socket(1, STREAM)];
    for socket in sockets {
        let on = 1u32.to_ne_bytes();
        let name = name("0.0.0.0:5000");
        pair.at(1, |stack, now| {
            stack.setsockopt(now, socket, level::SOL_SOCKET, so::SO_REUSEADDR, &on).unwrap();
            stack.bind(now, socket, name.as_bytes()).unwrap();
        });
    }
    let outcomes = sockets.map(|socket| pair.at(1, |stack, now| stack.listen(now, socket, 1)));
    assert_eq!(outcomes, [Ok(()), Err(Errno::EADDRINUSE)]);
}

#[test]
fn poll_reports_each_state_of_a_connection() {
    let mut pair = Pair::new();
    let listener = pair.listener(STREAM, 5000, 1);
    let client = pair.socket(0, STREAM);
    assert_eq!(poll(&pair, 0, client), "nothing", "fresh");
    assert_eq!(poll(&pair, 1, listener), "nothing", "listening");
    let to = name(&format!("{SERVER}:5000"));
    let connect = |pair: &mut Pair| pair.at(0, |it, now| it.connect(now, client, to.as_bytes()));
    let id = connect(&mut pair).unwrap();
    assert_eq!(connect(&mut pair), Err(Errno::EALREADY));
    assert_eq!(poll(&pair, 0, client), "nothing", "connecting");
    let result = pair.at(0, |stack, now| stack.connect_result(now, client, id));
    assert_eq!(result, Err(Errno::EINPROGRESS));
    pair.run_one_second();
    assert_eq!(pair.at(0, |stack, now| stack.connect_result(now, client, id)), Ok(()));
    assert_eq!(connect(&mut pair), Err(Errno::EISCONN));
    assert_eq!(poll(&pair, 0, client), "OUT", "established");
    assert_eq!(poll(&pair, 1, listener), "IN", "one waits");
    let (server, peer) = pair.at(1, |stack, now| stack.accept(now, listener)).unwrap();
    assert_eq!(
        pair.hosts[0].stack.getsockname(client).unwrap().as_bytes()[2..4],
        peer.as_bytes()[2..4]
    );
    assert_eq!(pair.at(1, |stack, now| stack.accept(now, listener)), Err(Errno::EAGAIN));
    pair.send_message(0, client, b"hello").unwrap();
    pair.run_one_second();
    assert_eq!(poll(&pair, 1, server), "IN|OUT", "with data");
    let received = pair.receive_message(1, server, 100, DONTWAIT).unwrap();
    assert_eq!((&received.data[..], received.flags), (&b"hello"[..], msg::MSG_EOR));
    assert_eq!(pair.receive_message(1, server, 100, 0), Err(Errno::EAGAIN));
    assert_eq!(pair.at(0, |stack, now| stack.close(now, client)), CloseResult::Done);
    pair.run_one_second();
    assert_eq!(poll(&pair, 1, server), "IN|OUT|RDHUP", "the peer closed");
    for _ in 0..2 {
        let end = pair.receive_message(1, server, 100, 0).unwrap();
        assert!(end.data.is_empty(), "0 for all further reads");
    }
    assert_eq!(pair.send_message(1, server, b"late"), Err(Errno::EPIPE));
    assert!(pair.hosts[1].stack.status().sockets.len() == 2);
}

#[test]
fn a_socket_that_was_refused_may_connect_again() {
    let mut pair = Pair::new();
    let client = pair.socket(0, STREAM);
    let to = name(&format!("{SERVER}:5999"));
    let id = pair.at(0, |stack, now| stack.connect(now, client, to.as_bytes())).unwrap();
    pair.run_one_second();
    assert_eq!(poll(&pair, 0, client), "ERR");
    let result = pair.at(0, |stack, now| stack.connect_result(now, client, id));
    assert_eq!(result, Err(Errno::ECONNREFUSED));
    assert_eq!(poll(&pair, 0, client), "ERR", "until SO_ERROR is read");
    let again = pair.at(0, |stack, now| stack.connect(now, client, to.as_bytes()));
    assert!(again.is_ok(), "the same socket may try again: {again:?}");
}

#[test]
fn silence_is_a_timeout_after_the_configured_attempts() {
    let mut pair = Pair::new();
    let client = pair.socket(0, STREAM);
    let fields: [u16; 4] = [0, 0, 2, 300];
    let init: Vec<u8> = fields.iter().flat_map(|field| field.to_ne_bytes()).collect();
    pair.set(0, client, option::SCTP_INITMSG, &init).unwrap();
    pair.is_cut = true;
    let to = name(&format!("{SERVER}:5000"));
    let id = pair.at(0, |stack, now| stack.connect(now, client, to.as_bytes())).unwrap();
    pair.run(std::time::Duration::from_secs(4));
    let result = pair.at(0, |stack, now| stack.connect_result(now, client, id));
    assert_eq!(result, Err(Errno::ETIMEDOUT));
}

#[test]
fn a_full_backlog_refuses() {
    let mut pair = Pair::new();
    pair.listener(STREAM, 5000, 1);
    let to = name(&format!("{SERVER}:5000"));
    let mut outcomes = Vec::new();
    for _ in 0..3 {
        let client = pair.socket(0, STREAM);
        let id = pair.at(0, |stack, now| stack.connect(now, client, to.as_bytes())).unwrap();
        pair.run_one_second();
        outcomes.push(pair.at(0, |stack, now| stack.connect_result(now, client, id)));
    }
    assert_eq!(outcomes, [Ok(()), Ok(()), Err(Errno::ECONNREFUSED)], "listen(1) holds two");
}

#[test]
fn an_unconnected_socket_refuses_calls() {
    let mut pair = Pair::new();
    let (one, many) = (pair.socket(0, STREAM), pair.socket(0, MANY));
    let listener = pair.listener(STREAM, 5000, 1);
    assert_eq!(poll(&pair, 0, many), "OUT");
    for socket in [one, many] {
        assert_eq!(pair.send_message(0, socket, b"x"), Err(Errno::EPIPE));
        assert_eq!(pair.receive_message(0, socket, 9, 0), Err(Errno::ENOTCONN));
        assert_eq!(pair.receive_message(0, socket, 9, DONTWAIT), Err(Errno::EAGAIN));
        let ends = pair.at(0, |stack, now| stack.shutdown(now, socket, how::SHUT_RDWR));
        assert_eq!(ends, Err(Errno::ENOTCONN));
        assert_eq!(pair.hosts[0].stack.getpeername(socket), Err(Errno::ENOTCONN));
    }
    assert_eq!(pair.receive_message(1, listener, 9, DONTWAIT), Err(Errno::ENOTCONN));
    let ends = pair.at(1, |stack, now| stack.shutdown(now, listener, how::SHUT_RDWR));
    assert_eq!(ends, Err(Errno::EOPNOTSUPP));
    assert_eq!(pair.at(0, |stack, now| stack.accept(now, many)), Err(Errno::EOPNOTSUPP));
    assert_eq!(pair.at(0, |stack, now| stack.accept(now, one)), Err(Errno::EINVAL));
}

#[test]
fn notifications_frame_the_data() {
    let mut pair = Pair::new();
    let (client, server, _) = pair.connected(&EVENTS);
    let up = pair.receive_message(1, server, 100, 0).unwrap();
    assert_eq!(kind(&up.data), (0x8001, 0), "COMM_UP");
    assert_eq!((up.data.len(), up.flags), (20, msg::MSG_NOTIFICATION | msg::MSG_EOR));
    assert!(up.control.is_empty());
    pair.send_message(0, client, b"first").unwrap();
    pair.at(0, |stack, now| stack.close(now, client));
    pair.run_one_second();
    let data = pair.receive_message(1, server, 100, 0).unwrap();
    assert_eq!((&data.data[..], data.control.len()), (&b"first"[..], 48));
    let ends = [(0x8005, 12), (0x8001, 20)];
    for (expected, length) in ends {
        let end = pair.receive_message(1, server, 100, 0).unwrap();
        assert_eq!((kind(&end.data).0, end.data.len()), (expected, length));
    }
    assert!(pair.receive_message(1, server, 100, 0).unwrap().data.is_empty());
}

#[test]
fn a_short_buffer_keeps_the_rest_for_the_next_read() {
    let mut pair = Pair::new();
    let (client, server, _) = pair.connected(&NO_EVENTS);
    pair.send_message(0, client, b"abcdefgh").unwrap();
    pair.send_message(0, client, b"next").unwrap();
    pair.run_one_second();
    let left = pair.at(1, |stack, now| stack.bytes_readable(now, server));
    assert_eq!(left, Ok(8), "FIONREAD counts the first message");
    let mut parts = Vec::new();
    for flags in [msg::MSG_PEEK, 0, 0, 0] {
        let part = pair.receive_message(1, server, 5, flags).unwrap();
        parts
            .push((String::from_utf8(part.data.to_vec()).unwrap(), part.flags & msg::MSG_EOR != 0));
    }
    let expected = [("abcde", false), ("abcde", false), ("fgh", true), ("next", true)];
    assert_eq!(parts, expected.map(|(text, ends)| (text.to_owned(), ends)));
    let nothing = pair.receive_message(1, server, 0, DONTWAIT);
    assert_eq!(nothing, Err(Errno::EAGAIN));
}

#[test]
fn unread_data_makes_closing_an_abort() {
    let mut pair = Pair::new();
    let (client, server, _) = pair.connected(&EVENTS);
    pair.receive_message(0, client, 100, 0).unwrap();
    pair.send_message(0, client, b"never read").unwrap();
    pair.run_one_second();
    pair.at(1, |stack, now| stack.close(now, server));
    pair.run_one_second();
    assert_eq!(poll(&pair, 0, client), "IN|OUT|ERR");
    let lost = pair.receive_message(0, client, 100, 0).unwrap();
    assert_eq!((kind(&lost.data), lost.data.len()), ((0x8001, 1), 24), "COMM_LOST");
    assert_eq!(lost.data[20..], [0, 12, 0, 4], "the user's abort, as it was on the wire");
    assert_eq!(poll(&pair, 0, client), "OUT|ERR");
    assert_eq!(pair.receive_message(0, client, 100, 0), Err(Errno::ECONNRESET), "once");
    assert_eq!(poll(&pair, 0, client), "OUT");
    assert_eq!(pair.receive_message(0, client, 100, 0), Err(Errno::ENOTCONN));
    assert_eq!(pair.send_message(0, client, b"x"), Err(Errno::EPIPE));
}

#[test]
fn directions_are_shut_down_separately() {
    let mut pair = Pair::new();
    let (client, server, _) = pair.connected(&NO_EVENTS);
    pair.at(0, |stack, now| stack.shutdown(now, client, how::SHUT_RD)).unwrap();
    assert_eq!(poll(&pair, 0, client), "IN|OUT|RDHUP");
    assert!(pair.receive_message(0, client, 9, 0).unwrap().data.is_empty());
    pair.at(1, |stack, now| stack.shutdown(now, server, how::SHUT_WR)).unwrap();
    pair.run_one_second();
    assert_eq!(poll(&pair, 1, server), "OUT", "own SHUT_WR complete");
    assert_eq!(pair.receive_message(1, server, 9, 0), Err(Errno::ENOTCONN));
    assert_eq!(pair.receive_message(1, server, 9, DONTWAIT), Err(Errno::EAGAIN));
    assert_eq!(pair.send_message(1, server, b"x"), Err(Errno::EPIPE));
    assert!(pair.hosts[1].stack.getpeername(server).is_ok());
    let to = name(&format!("{SERVER}:5000"));
    let again = pair.at(1, |stack, now| stack.connect(now, server, to.as_bytes()));
    assert_eq!(again, Err(Errno::EISCONN));
}

#[test]
fn one_socket_communicates_with_many_peers() {
    let mut pair = Pair::new();
    let server = pair.listener(MANY, 5000, 5);
    pair.set(1, server, option::SCTP_EVENTS, &EVENTS).unwrap();
    let client = pair.socket(0, MANY);
    pair.set(0, client, option::SCTP_EVENTS, &EVENTS).unwrap();
    let sent = pair.send_message_to(0, client, &format!("{SERVER}:5000"), b"implicit").unwrap();
    assert!(sent.connecting && sent.length == 8);
    pair.run_one_second();
    assert_eq!(kind(&pair.receive_message(1, server, 100, 0).unwrap().data), (0x8001, 0));
    assert_eq!(&pair.receive_message(1, server, 100, 0).unwrap().data[..], b"implicit");
    let id = *pair.hosts[1].stack.status().sockets[0].associations.first().unwrap();
    let peeled = pair.at(1, |stack, now| stack.peeloff(now, server, id)).unwrap();
    pair.send_message(1, peeled, b"from the peeled").unwrap();
    pair.run_one_second();
    assert_eq!(kind(&pair.receive_message(0, client, 100, 0).unwrap().data), (0x8001, 0));
    assert_eq!(&pair.receive_message(0, client, 100, 0).unwrap().data[..], b"from the peeled");
    pair.send_message_to(0, client, &format!("{SERVER}:5999"), b"no peer").unwrap();
    pair.run_one_second();
    let reported: Vec<_> =
        (0..3).map(|_| pair.receive_message(0, client, 100, 0).unwrap().data).collect();
    assert_eq!(kind(&reported[0]), (0x8001, 4), "CANT_STR_ASSOC");
    for (one, expected, head) in [(&reported[1], 0x8003, 48), (&reported[2], 0x800d, 32)] {
        assert_eq!((kind(one).0, &one[head..]), (expected, &b"no peer"[..]), "with its data");
        assert_eq!(one[4..8], (one.len() as u32).to_ne_bytes());
    }
}

#[test]
fn a_full_send_buffer_becomes_writable_again() {
    let mut pair = Pair::new();
    let (client, server, _) = pair.connected(&NO_EVENTS);
    let message = [7; 50_000];
    let mut sent = 0;
    while pair.send_message(0, client, &message).is_ok() {
        sent += 1;
        assert!(sent < 100, "the buffer never fills");
        pair.run_one_second();
    }
    assert_eq!(poll(&pair, 0, client), "nothing", "no room");
    let mut received = 0;
    while received < sent * message.len() {
        received +=
            pair.receive_message(1, server, 1 << 20, DONTWAIT).map_or(0, |part| part.data.len());
        pair.run_one_second();
    }
    assert_eq!(poll(&pair, 0, client), "OUT");
    assert_eq!(pair.send_message(0, client, &[0; 212_993]), Err(Errno::EMSGSIZE));
    assert_eq!(pair.send_message(0, client, &[]), Err(Errno::EINVAL));
}
