//! Tests of flags, control messages, several addresses, IPv6, `SO_LINGER`, autoclose and blocking
//! calls.

use std::time::Duration;

use bytes::Bytes;
use eyas_sockets::abi::control::{ControlMessages, SndRcvInfo, header};
use eyas_sockets::abi::number::{cmsg, flag, level, msg, option, so, socket};
use eyas_sockets::{AssocId, CloseResult, Errno, SendRequest, SocketId, StackOutput};

use super::pair::{CLIENT, Pair, SERVER, name};

const MANY: i32 = socket::SOCK_SEQPACKET;
const ALL: [u8; 14] = [1; 14];

/// Sends a message with `SCTP_SNDRCV`.
fn send_message_with(
    pair: &mut Pair,
    host: usize,
    socket: SocketId,
    info: &SndRcvInfo,
    data: &'static [u8],
) -> Result<usize, Errno> {
    let mut control = header(level::SOL_SCTP, cmsg::SCTP_SNDRCV, SndRcvInfo::LENGTH).to_vec();
    control.extend_from_slice(&info.encode());
    let data = Bytes::from_static(data);
    let message = SendRequest { data, control: &control, ..SendRequest::default() };
    pair.at(host, |stack, now| stack.send(now, socket, message)).map(|sent| sent.length)
}

/// Returns two one-to-many sockets with an association between them, and its identifier at each.
fn one_to_many_pair(pair: &mut Pair, events: &[u8]) -> [(SocketId, AssocId); 2] {
    let server = pair.listener(MANY, 5000, 5);
    let client = pair.socket(0, MANY);
    pair.set(1, server, option::SCTP_EVENTS, events).unwrap();
    pair.set(0, client, option::SCTP_EVENTS, events).unwrap();
    let to = name(&format!("{SERVER}:5000"));
    let id = pair.at(0, |stack, now| stack.connect(now, client, to.as_bytes())).unwrap();
    pair.run_one_second();
    let theirs = pair.hosts[1].stack.status().sockets[0].associations[0];
    [(client, id), (server, theirs)]
}

/// Returns the types of the queued notifications, with the state of association changes.
fn notices(pair: &mut Pair, host: usize, socket: SocketId) -> Vec<(u16, Option<u16>)> {
    let mut all = Vec::new();
    while let Ok(one) = pair.receive_message(host, socket, 1000, msg::MSG_DONTWAIT) {
        let field = |at: usize| u16::from_ne_bytes([one.data[at], one.data[at + 1]]);
        let kind = field(0);
        all.push((kind, (kind == 0x8001).then(|| field(8))));
    }
    all
}

#[test]
fn a_call_that_would_block_is_retried_when_it_can_succeed() {
    let mut pair = Pair::new();
    let (client, server, listener) = pair.connected(&[0; 14]);
    assert_eq!(pair.receive_message(1, server, 9, 0), Err(Errno::EAGAIN));
    pair.hosts[1].outputs.clear();
    pair.send_message(0, client, b"x").unwrap();
    pair.run_one_second();
    assert!(pair.hosts[1].outputs.contains(&StackOutput::Retry(server)));
    assert!(!pair.hosts[1].outputs.contains(&StackOutput::Retry(listener)));
}

#[test]
fn eof_and_abort_end_one_association_of_many() {
    let mut pair = Pair::new();
    let [(client, id), (server, theirs)] = one_to_many_pair(&mut pair, &ALL);
    notices(&mut pair, 0, client);
    notices(&mut pair, 1, server);
    let eof = SndRcvInfo { flags: flag::SCTP_EOF, association: id.0, ..SndRcvInfo::default() };
    assert_eq!(send_message_with(&mut pair, 0, client, &eof, b"data"), Err(Errno::EINVAL));
    assert_eq!(send_message_with(&mut pair, 0, client, &eof, b""), Ok(0));
    pair.run_one_second();
    assert!(notices(&mut pair, 0, client).contains(&(0x8001, Some(3))), "SHUTDOWN_COMP");
    let at_peer = notices(&mut pair, 1, server);
    assert!(at_peer.starts_with(&[(0x8005, None)]), "SHUTDOWN_EVENT first: {at_peer:x?}");
    assert!(at_peer.contains(&(0x8001, Some(3))));
    let unknown = SndRcvInfo { association: theirs.0, ..SndRcvInfo::default() };
    assert_eq!(
        send_message_with(&mut pair, 1, server, &unknown, b"x"),
        Err(Errno::EPIPE),
        "unknown by now"
    );
}

#[test]
fn an_abort_carries_its_reason_to_the_peer() {
    let mut pair = Pair::new();
    let [(client, id), (server, _)] = one_to_many_pair(&mut pair, &ALL);
    notices(&mut pair, 1, server);
    let abort = SndRcvInfo { flags: flag::SCTP_ABORT, association: id.0, ..SndRcvInfo::default() };
    assert_eq!(send_message_with(&mut pair, 0, client, &abort, b"why"), Ok(0));
    pair.run_one_second();
    let lost = pair.receive_message(1, server, 1000, 0).unwrap();
    assert_eq!(lost.data[8..12], [1, 0, 0, 12], "COMM_LOST, error 12 in network order");
    assert_eq!(lost.data[20..], [0, 12, 0, 7, b'w', b'h', b'y'], "the cause as on the wire");
}

#[test]
fn a_reset_of_an_association_tells_both_ends_the_next_tsns() {
    let mut pair = Pair::new();
    let (server, client) = (pair.listener(MANY, 5000, 5), pair.socket(0, MANY));
    for (host, socket) in [(0, client), (1, server)] {
        for name in [option::SCTP_RECONFIG_SUPPORTED, option::SCTP_ENABLE_STREAM_RESET] {
            // For future associations.
            pair.set(host, socket, name, &[0, 0, 0, 0, 7, 0, 0, 0]).unwrap();
        }
        // `assoc_reset` alone.
        pair.set(host, socket, option::SCTP_EVENTS, &[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]).unwrap();
    }
    let to = name(&format!("{SERVER}:5000"));
    let id = pair.at(0, |stack, now| stack.connect(now, client, to.as_bytes())).unwrap();
    pair.run_one_second();
    pair.set(0, client, option::SCTP_RESET_ASSOC, &id.0.to_ne_bytes()).unwrap();
    pair.run_one_second();
    let [ours, theirs] = [(0, client), (1, server)].map(|(host, socket)| {
        let notice = pair.receive_message(host, socket, 1000, msg::MSG_DONTWAIT).unwrap().data;
        // SCTP_ASSOC_RESET_EVENT, performed, and its length.
        assert_eq!(notice[..8], [0x0b, 0x80, 0, 0, 20, 0, 0, 0]);
        (notice[12..16].to_vec(), notice[16..20].to_vec())
    });
    assert_eq!(ours, (theirs.1, theirs.0), "what one sends next, the other expects");
    assert_ne!(ours.0, [0; 4]);
}

#[test]
fn stream_ppid_and_context_are_received_with_the_data() {
    let mut pair = Pair::new();
    let (client, server, _) = pair.connected(&[1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
    for name in [option::SCTP_RECVRCVINFO, option::SCTP_RECVNXTINFO] {
        pair.set(1, server, name, &1u32.to_ne_bytes()).unwrap();
    }
    let info = SndRcvInfo { stream: 3, ppid: 7u32.to_be(), flags: 1, ..SndRcvInfo::default() };
    send_message_with(&mut pair, 0, client, &info, b"first").unwrap();
    send_message_with(&mut pair, 0, client, &info, b"second").unwrap();
    let wrong = SndRcvInfo { stream: 10, ..SndRcvInfo::default() };
    assert_eq!(
        send_message_with(&mut pair, 0, client, &wrong, b"x"),
        Err(Errno::EINVAL),
        "10 streams"
    );
    let wrong = SndRcvInfo { flags: 0x4000, ..SndRcvInfo::default() };
    assert_eq!(send_message_with(&mut pair, 0, client, &wrong, b"x"), Err(Errno::EINVAL));
    pair.run_one_second();
    let kinds = |control: &[u8]| -> Vec<(i32, usize)> {
        let messages = ControlMessages::new(control).map(Result::unwrap);
        messages.map(|message| (message.kind, message.data.len())).collect()
    };
    let first = pair.receive_message(1, server, 100, 0).unwrap();
    assert_eq!(kinds(&first.control), [(4, 16), (3, 28), (1, 32)], "NXTINFO, RCVINFO, SNDRCV");
    let second = pair.receive_message(1, server, 100, 0).unwrap();
    assert_eq!(kinds(&second.control), [(3, 28), (1, 32)], "no next message");
    let last = ControlMessages::new(&second.control).last().unwrap().unwrap();
    let info = SndRcvInfo::read(last.data);
    assert_eq!((info.stream, info.ppid, info.flags), (3, 7u32.to_be(), 1));
}

#[test]
fn closing_lingers_until_the_peer_has_ended() {
    let mut pair = Pair::new();
    let (client, _, _) = pair.connected(&[0; 14]);
    let linger: Vec<u8> = [1u32, 5].iter().flat_map(|it| it.to_ne_bytes()).collect();
    pair.at(0, |stack, now| {
        stack.setsockopt(now, client, level::SOL_SOCKET, so::SO_LINGER, &linger).unwrap();
    });
    let closing = pair.at(0, |stack, now| stack.close(now, client));
    assert_eq!(closing, CloseResult::Lingers(Duration::from_secs(5)));
    pair.run_one_second();
    assert!(pair.hosts[0].outputs.contains(&StackOutput::Closed(client)));
    let status = pair.hosts[0].stack.status();
    assert!(status.sockets.is_empty() && status.associations.is_empty());
    assert_eq!(pair.receive_message(0, client, 9, 0), Err(Errno::EBADF));
}

#[test]
fn an_idle_association_is_closed_if_requested() {
    let mut pair = Pair::new();
    let server = pair.listener(MANY, 5000, 5);
    let client = pair.socket(0, MANY);
    for (host, socket) in [(0, client), (1, server)] {
        pair.set(host, socket, option::SCTP_EVENTS, &ALL).unwrap();
    }
    pair.set(0, client, option::SCTP_AUTOCLOSE, &5u32.to_ne_bytes()).unwrap();
    pair.send_message_to(0, client, &format!("{SERVER}:5000"), b"hello").unwrap();
    pair.run_one_second();
    notices(&mut pair, 0, client);
    // For future associations.
    pair.set(0, client, option::SCTP_AUTOCLOSE, &1u32.to_ne_bytes()).unwrap();
    pair.run(Duration::from_secs(3));
    assert!(notices(&mut pair, 0, client).is_empty());
    pair.run(Duration::from_secs(3));
    assert!(notices(&mut pair, 0, client).contains(&(0x8001, Some(3))));
    assert_eq!(pair.hosts[1].stack.readiness(server).0 & 1, 1, "the peer is notified");
}

#[test]
fn one_association_over_two_addresses() {
    let mut pair = Pair::new();
    let listener = pair.socket(0, socket::SOCK_STREAM);
    let client = pair.socket(0, socket::SOCK_STREAM);
    let pack = |addresses: [&str; 2]| addresses.map(|one| name(one).as_bytes().to_vec()).concat();
    let (own, to) =
        (pack(["127.0.0.2:0", "127.0.0.3:0"]), pack(["127.0.0.1:5000", "127.0.0.4:5000"]));
    pair.at(0, |stack, now| {
        stack.bindx(now, listener, &to, true).unwrap();
        stack.listen(now, listener, 1).unwrap();
        stack.bindx(now, client, &own, true).unwrap();
        stack.connectx(now, client, &to).unwrap();
    });
    pair.run(Duration::from_secs(5));
    let (server, _) = pair.at(0, |stack, now| stack.accept(now, listener)).unwrap();
    for socket in [client, server] {
        let peers = pair.get(0, socket, option::SCTP_GET_PEER_ADDRS, &[0; 4096]).unwrap();
        assert_eq!(u32::from_ne_bytes(peers[4..8].try_into().unwrap()), 2, "{peers:?}");
    }
    pair.send_message(0, client, b"both").unwrap();
    pair.run_one_second();
    assert_eq!(&pair.receive_message(0, server, 9, 0).unwrap().data[..], b"both");
}

#[test]
fn addresses_are_not_reported_before_the_association_is_established() {
    let mut pair = Pair::new();
    let listener = pair.socket(0, MANY);
    let client = pair.socket(0, MANY);
    let own =
        ["127.0.0.1:5000", "127.0.0.4:5000"].map(|one| name(one).as_bytes().to_vec()).concat();
    pair.set(0, client, option::SCTP_EVENTS, &ALL).unwrap();
    // The INIT ACK contains the second address.
    let to = name("127.0.0.1:5000");
    pair.at(0, |stack, now| {
        stack.bindx(now, listener, &own, true).unwrap();
        stack.listen(now, listener, 1).unwrap();
        stack.connect(now, client, to.as_bytes()).unwrap();
    });
    pair.run_one_second();
    let peers = pair.hosts[0].stack.status().associations[0].paths.len();
    assert_eq!(peers, 2);
    assert_eq!(notices(&mut pair, 0, client).first(), Some(&(0x8001, Some(0))), "COMM_UP");
}

#[test]
fn ipv4_peers_are_mapped_on_ipv6_sockets() {
    let mut pair = Pair::new();
    let listener =
        pair.at(1, |stack, _| stack.socket(socket::AF_INET6, socket::SOCK_STREAM, 132)).unwrap();
    let all = name("[::]:5000");
    pair.at(1, |stack, now| {
        stack.bind(now, listener, all.as_bytes()).unwrap();
        stack.listen(now, listener, 1).unwrap();
    });
    let client = pair.socket(0, socket::SOCK_STREAM);
    let to = name(&format!("{SERVER}:5000"));
    pair.at(0, |stack, now| stack.connect(now, client, to.as_bytes())).unwrap();
    pair.run_one_second();
    let (server, peer) = pair.at(1, |stack, now| stack.accept(now, listener)).unwrap();
    assert_eq!(peer.as_bytes().len(), 28);
    assert!(format!("{peer:?}").starts_with(&format!("[::ffff:{CLIENT}]")), "{peer:?}");
    pair.set(1, server, option::SCTP_I_WANT_MAPPED_V4_ADDR, &[0; 4]).unwrap();
    assert_eq!(pair.hosts[1].stack.getpeername(server).unwrap().as_bytes().len(), 16);
}

#[test]
fn a_message_that_opens_an_association_can_be_waited_for() {
    let mut pair = Pair::new();
    let server = pair.listener(MANY, 5000, 5);
    let client = pair.socket(0, MANY);
    let sent = pair.send_message_to(0, client, &format!("{SERVER}:5000"), b"first").unwrap();
    assert!(sent.connecting);
    assert!(pair.at(0, |stack, now| stack.is_opening(now, client, sent.association)));
    pair.hosts[0].outputs.clear();
    pair.run_one_second();
    assert!(pair.hosts[0].outputs.contains(&StackOutput::Retry(client)));
    assert!(!pair.at(0, |stack, now| stack.is_opening(now, client, sent.association)));
    // Once it is established, closing the socket loses nothing.
    pair.at(0, |stack, now| stack.close(now, client));
    pair.run_one_second();
    assert_eq!(pair.receive_message(1, server, 100, 0).unwrap().data, "first");
    // Without a listener the wait ends, too.
    let client = pair.socket(0, MANY);
    let sent = pair.send_message_to(0, client, &format!("{SERVER}:5001"), b"second").unwrap();
    assert!(pair.at(0, |stack, now| stack.is_opening(now, client, sent.association)));
    pair.hosts[0].outputs.clear();
    pair.run_one_second();
    assert!(pair.hosts[0].outputs.contains(&StackOutput::Retry(client)));
    assert!(!pair.at(0, |stack, now| stack.is_opening(now, client, sent.association)));
}
