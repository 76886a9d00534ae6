//! Tests of random calls: nothing panics, and received data is a prefix of sent data.

use eyas_sockets::abi::number::{how, msg, socket};
use proptest::prelude::*;
use std::time::Duration;

use super::pair::{Pair, SERVER};

#[derive(Clone, Debug)]
enum Call {
    Send(usize, usize),
    Receive(usize, usize),
    Peek(usize, usize),
    Wait(u64),
    Shutdown(usize, i32),
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        6 => (0usize..2, 1usize..40_000).prop_map(|(host, length)| Call::Send(host, length)),
        8 => (0usize..2, 1usize..30_000).prop_map(|(host, room)| Call::Receive(host, room)),
        1 => (0usize..2, 0usize..100).prop_map(|(host, room)| Call::Peek(host, room)),
        4 => (0u64..500).prop_map(Call::Wait),
        1 => (0usize..2, prop_oneof![Just(how::SHUT_WR)])
            .prop_map(|(host, how)| Call::Shutdown(host, how)),
    ]
}

proptest! {
    #[test]
    fn no_byte_is_lost_reordered_or_duplicated(
        calls in prop::collection::vec(call(), 1..120),
        kind in prop_oneof![Just(socket::SOCK_STREAM), Just(socket::SOCK_SEQPACKET)],
    ) {
        let mut pair = Pair::new();
        let sockets = if kind == socket::SOCK_STREAM {
            let (client, server, _) = pair.connected(&[0; 14]);
            [client, server]
        } else {
            let server = pair.listener(kind, 5000, 5);
            [pair.socket(0, kind), server]
        };
        let mut sent: [Vec<u8>; 2] = Default::default();
        let mut received: [Vec<u8>; 2] = Default::default();
        let mut counter = 0u8;
        for one in &calls {
            match *one {
                Call::Send(host, length) => {
                    let data: Vec<u8> = (0..length).map(|_| { counter = counter.wrapping_add(7); counter }).collect();
                    let outcome = if kind == socket::SOCK_STREAM {
                        pair.send_message(host, sockets[host], &data)
                    } else if host == 0 {
                        pair.send_message_to(0, sockets[0], &format!("{SERVER}:5000"), &data)
                    } else {
                        continue;
                    };
                    if outcome.is_ok() {
                        sent[host].extend_from_slice(&data);
                    }
                }
                Call::Receive(host, room) => {
                    if let Ok(part) = pair.receive_message(host, sockets[host], room, msg::MSG_DONTWAIT) {
                        prop_assert!(part.data.len() <= room);
                        received[1 - host].extend_from_slice(&part.data);
                    }
                }
                Call::Peek(host, room) => {
                    let _ = pair.receive_message(host, sockets[host], room, msg::MSG_DONTWAIT | msg::MSG_PEEK);
                }
                Call::Wait(ms) => pair.run(Duration::from_millis(ms)),
                Call::Shutdown(host, how) => {
                    let _ = pair.at(host, |stack, now| stack.shutdown(now, sockets[host], how));
                }
            }
        }
        // All accepted data arrives, whichever side ends the association.
        for _ in 0..2000 {
            pair.run(Duration::from_millis(300));
            let mut any = false;
            for host in 0..2 {
                if let Ok(part) = pair.receive_message(host, sockets[host], 1 << 20, msg::MSG_DONTWAIT) {
                    any |= !part.data.is_empty();
                    received[1 - host].extend_from_slice(&part.data);
                }
            }
            if !any && received == sent {
                break;
            }
        }
        prop_assert_eq!(received[0].len(), sent[0].len());
        prop_assert_eq!(received[1].len(), sent[1].len());
        prop_assert!(received == sent);
    }
}
