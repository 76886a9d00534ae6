//! Tests of messages that a driver accepts before it passes them to the stack.

use bytes::Bytes;
use eyas_sockets::abi::number::poll::POLLOUT;
use eyas_sockets::abi::number::{event, how, level, option, so};
use eyas_sockets::{Errno, SendRequest, SocketId};

use super::pair::Pair;

const MESSAGE: usize = 1000;

/// Sends until the buffer is full, and returns the number of bytes.
fn fill(pair: &mut Pair, socket: SocketId, uses_reserve: bool) -> usize {
    let mut sent = 0;
    loop {
        let data = Bytes::from_static(&[7; MESSAGE]);
        let message = SendRequest { data, uses_reserve, ..SendRequest::default() };
        match pair.at(0, |stack, now| stack.send(now, socket, message)) {
            Ok(done) => sent += done.length,
            Err(error) => {
                assert_eq!(error, Errno::EAGAIN);
                return sent;
            }
        }
    }
}

//= hostile sctp-run
//# more messages written to a socket than its send buffer holds
//= bound: the send buffer, and twice the part of it that programs write to
#[test]
fn the_reserve_counts_against_the_send_buffer_and_has_an_end() {
    let mut pair = Pair::new();
    let (client, _, _) = pair.connected(&[]);
    let buffer = pair.hosts[0].stack.send_buffer(client);
    let reserve = buffer / 4;
    pair.hosts[0].stack.reserve_room(client, reserve);
    pair.is_cut = true;
    let own = fill(&mut pair, client, false);
    assert!((buffer - reserve..buffer - reserve + MESSAGE).contains(&own), "{own} of {buffer}");
    assert!(!pair.poll(0, client).has(POLLOUT));
    let more = own + fill(&mut pair, client, true);
    assert!((buffer..=buffer + 2 * reserve + MESSAGE).contains(&more), "{more} of {buffer}");
    pair.is_cut = false;
    for _ in 0..60 {
        pair.run_one_second();
    }
    assert!(pair.poll(0, client).has(POLLOUT), "acknowledged data makes room");
}

#[test]
fn the_end_of_a_reserve_makes_room() {
    let mut pair = Pair::new();
    let (client, _, _) = pair.connected(&[]);
    let buffer = pair.hosts[0].stack.send_buffer(client);
    pair.hosts[0].stack.reserve_room(client, buffer / 4);
    pair.is_cut = true;
    let sent = fill(&mut pair, client, false);
    assert!(!pair.poll(0, client).has(POLLOUT));
    pair.hosts[0].stack.reserve_room(client, 0);
    assert!(pair.poll(0, client).has(POLLOUT));
    assert!(sent + fill(&mut pair, client, false) >= buffer);
}

#[test]
fn options_and_the_end_decide_whether_a_plain_message_can_fail() {
    let accepts = |pair: &Pair, socket| pair.hosts[0].stack.accepts_plain_messages(socket);
    let mut pair = Pair::new();
    let (client, server, listener) = pair.connected(&[]);
    assert!(accepts(&pair, client));
    assert!(!pair.hosts[1].stack.accepts_plain_messages(listener));
    let failures = event::SCTP_SEND_FAILED & 0xff;
    let mut events = [0; 14];
    let on = 1_i32.to_ne_bytes();
    for wanted in [failures, event::SCTP_ASSOC_CHANGE & 0xff] {
        events[usize::from(wanted)] = 1;
        pair.set(0, client, option::SCTP_EVENTS, &events).unwrap();
        assert!(!accepts(&pair, client), "a notification of {wanted}");
        events[usize::from(wanted)] = 0;
        pair.set(0, client, option::SCTP_EVENTS, &events).unwrap();
        assert!(accepts(&pair, client));
    }
    pair.set(0, client, option::SCTP_DISABLE_FRAGMENTS, &on).unwrap();
    assert!(!accepts(&pair, client) && pair.hosts[0].stack.can_send(client));
    pair.set(0, client, option::SCTP_DISABLE_FRAGMENTS, &[0; 4]).unwrap();
    let size = 50_000_i32.to_ne_bytes();
    pair.at(0, |stack, now| stack.setsockopt(now, client, level::SOL_SOCKET, so::SO_SNDBUF, &size))
        .unwrap();
    assert_eq!(pair.hosts[0].stack.send_buffer(client), 100_000);
    pair.at(1, |stack, now| stack.shutdown(now, server, how::SHUT_WR)).unwrap();
    pair.run_one_second();
    assert!(!accepts(&pair, client) && !pair.hosts[0].stack.can_send(client), "after SHUTDOWN");
}
