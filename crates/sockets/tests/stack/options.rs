//! Tests of options: lengths, directions, defaults and arbitrary input.

use eyas_sockets::abi::number::{cmsg, level, option::*, socket};
use eyas_sockets::{Errno, SendRequest, SocketId};
use proptest::prelude::*;

use super::pair::{Pair, SERVER};

#[test]
fn defaults_are_those_of_linux() {
    let mut pair = Pair::new();
    let created = pair.socket(0, socket::SOCK_STREAM);
    let mut get = |name, length| pair.get(0, created, name, &vec![0; length]).unwrap();
    let short =
        |fields: [u16; 4]| fields.iter().flat_map(|it| it.to_ne_bytes()).collect::<Vec<_>>();
    let ints = |all: &[u32]| all.iter().flat_map(|it| it.to_ne_bytes()).collect::<Vec<_>>();
    assert_eq!(get(SCTP_INITMSG, 8), short([10, 65_535, 8, 60_000]));
    assert_eq!(get(SCTP_RTOINFO, 16), ints(&[0, 3000, 60_000, 1000]));
    assert_eq!(get(SCTP_DELAYED_SACK, 12), ints(&[0, 200, 2]));
    assert_eq!(get(SCTP_MAX_BURST, 8), ints(&[0, 4]));
    assert_eq!(get(SCTP_I_WANT_MAPPED_V4_ADDR, 4), ints(&[1]));
    assert_eq!(get(SCTP_PR_SUPPORTED, 8), ints(&[0, 1]));
    assert_eq!(get(SCTP_RECONFIG_SUPPORTED, 8), ints(&[0, 0]));
    assert_eq!(get(SCTP_EVENTS, 256).len(), 14, "as libosmo requests it");
    assert_eq!(get(SCTP_PEER_ADDR_PARAMS, 256).len(), 156, "as Open5GS requests it");
    assert_eq!(get(SCTP_PEER_ADDR_PARAMS, 152).len(), 152);
}

#[test]
fn lengths_and_directions_are_checked() {
    let mut pair = Pair::new();
    let created = pair.socket(0, socket::SOCK_STREAM);
    for (name, length, outcome) in [
        (SCTP_EVENTS, 8, Ok(())),
        (SCTP_EVENTS, 14, Ok(())),
        (SCTP_EVENTS, 15, Err(Errno::EINVAL)),
        (SCTP_INITMSG, 4, Err(Errno::EINVAL)),
        (SCTP_INITMSG, 12, Err(Errno::EINVAL)),
        (SCTP_PEER_ADDR_PARAMS, 160, Err(Errno::EINVAL)),
        (SCTP_PEER_ADDR_PARAMS, 152, Ok(())),
        (SCTP_MAXSEG, 4, Ok(())),
        (SCTP_MAXSEG, 8, Ok(())),
        (SCTP_AUTOCLOSE, 4, Err(Errno::EOPNOTSUPP)),
        (SCTP_STATUS, 176, Err(Errno::ENOPROTOOPT)),
        (SCTP_GET_ASSOC_STATS, 256, Err(Errno::ENOPROTOOPT)),
        (999, 4, Err(Errno::ENOPROTOOPT)),
    ] {
        assert_eq!(pair.set(0, created, name, &vec![0; length]), outcome, "{name}, {length} bytes");
    }
    assert_eq!(pair.get(0, created, SCTP_EVENTS, &[]), Err(Errno::EINVAL));
    assert_eq!(pair.get(0, created, SCTP_INITMSG, &[0; 4]), Err(Errno::EINVAL));
    assert_eq!(pair.hosts[0].stack.status().unknown_options.len(), 3);
}

#[test]
fn options_read_back_as_set() {
    let mut pair = Pair::new();
    let (client, _, _) = pair.connected(&[0; 14]);
    let rto: Vec<u8> = [0u32, 500, 9000, 100].iter().flat_map(|it| it.to_ne_bytes()).collect();
    pair.set(0, client, SCTP_RTOINFO, &rto).unwrap();
    assert_eq!(pair.get(0, client, SCTP_RTOINFO, &[0; 16]).unwrap(), rto);
    let status = pair.get(0, client, SCTP_STATUS, &[0; 176]).unwrap();
    assert_eq!(i32::from_ne_bytes(status[4..8].try_into().unwrap()), 4, "ESTABLISHED");
    assert_eq!(status[16..20], [10, 0, 10, 0], "10 streams each way");
    let peers = pair.get(0, client, SCTP_GET_PEER_ADDRS, &[0; 4096]).unwrap();
    assert_eq!(peers.len(), 8 + 16);
    assert_eq!(pair.get(0, client, SCTP_GET_PEER_ADDRS, &[0; 12]), Err(Errno::ENOMEM));
}

/// Sends a message of this length on a stream, chosen with `SCTP_SNDINFO`.
fn send_on(pair: &mut Pair, socket: SocketId, stream: u16, length: usize) {
    let mut control = (16u64 + 16).to_ne_bytes().to_vec();
    control.extend([level::SOL_SCTP, cmsg::SCTP_SNDINFO].iter().flat_map(|it| it.to_ne_bytes()));
    control.extend(stream.to_ne_bytes());
    control.resize(16 + 16, 0);
    let data = vec![7; length].into();
    let message = SendRequest { data, control: &control, ..SendRequest::default() };
    pair.at(0, |stack, now| stack.send(now, socket, message)).expect("it is accepted");
}

#[test]
fn the_queue_of_each_stream_is_told() {
    let mut pair = Pair::new();
    let (client, _, _) = pair.connected(&[0; 14]);
    let numbers = |bytes: Vec<u8>| -> Vec<u32> {
        bytes.chunks(4).map(|number| u32::from_ne_bytes(number.try_into().unwrap())).collect()
    };
    let queue = |pair: &mut Pair, length: usize| {
        pair.get(0, client, SCTP_SQINFO, &vec![0; length]).map(numbers)
    };
    let empty = queue(&mut pair, 16 + 4 * 20).unwrap();
    assert_eq!((empty[2], empty[3]), (0, 10), "nothing queued, 10 streams");
    assert_eq!(empty[4..], [0; 10]);
    for (stream, length) in [(3, 700), (3, 50), (9, 10)] {
        send_on(&mut pair, client, stream, length);
    }
    let filled = queue(&mut pair, 16 + 4 * 10).unwrap();
    assert_eq!((filled[1], filled[2], filled[3]), (empty[1], 760, 10));
    assert_eq!(filled[4..], [0, 0, 0, 750, 0, 0, 0, 0, 0, 10]);
    assert_eq!(queue(&mut pair, 16 + 4 * 4).unwrap()[4..], [0, 0, 0, 750], "as far as it reaches");
    assert_eq!(queue(&mut pair, 16).unwrap().len(), 4);
    assert_eq!(queue(&mut pair, 12), Err(Errno::EINVAL));
    let unconnected = pair.socket(0, socket::SOCK_STREAM);
    assert_eq!(pair.get(0, unconnected, SCTP_SQINFO, &[0; 16]), Err(Errno::EINVAL));
}

#[test]
fn rarely_used_options_are_supported_too() {
    let mut pair = Pair::new();
    let created = pair.socket(0, socket::SOCK_STREAM);
    let mut thresholds = vec![0; 144];
    thresholds[136..140].copy_from_slice(&[7u16, 2].map(u16::to_ne_bytes).concat());
    pair.set(0, created, SCTP_PEER_ADDR_THLDS, &thresholds).unwrap();
    assert_eq!(pair.get(0, created, SCTP_PEER_ADDR_THLDS, &[0; 144]).unwrap(), thresholds);
    let port = pair.get(0, created, SCTP_REMOTE_UDP_ENCAPS_PORT, &[0; 144]).unwrap();
    assert_eq!(port[136..138], 9899u16.to_be_bytes());
    assert_eq!(pair.get(0, created, SCTP_LOCAL_AUTH_CHUNKS, &[0; 8]), Err(Errno::EACCES));
    assert_eq!(pair.set(0, created, SCTP_PEER_ADDR_THLDS, &[0; 100]), Err(Errno::EINVAL));
}

proptest! {
    /// Any input of a program is answered without a panic.
    #[test]
    fn any_option_and_any_control_message_is_answered(
        calls in prop::collection::vec(
            (any::<bool>(), 0i32..140, prop::collection::vec(any::<u8>(), 0..200)), 1..60),
        small in prop::collection::vec(0u8..4, 200),
    ) {
        let mut pair = Pair::new();
        let (client, server, _) = pair.connected(&[1; 14]);
        for (index, (is_set, name, bytes)) in calls.iter().enumerate() {
            // Small numbers are valid more often than random ones.
            let bytes = if index % 2 == 0 { &small[..bytes.len()] } else { &bytes[..] };
            if *is_set {
                let _ = pair.set(0, client, *name, bytes);
            } else if let Ok(got) = pair.get(0, client, *name, bytes) {
                prop_assert!(got.len() <= bytes.len(), "option {} grows", name);
            }
            let mut control = Vec::new();
            control.extend_from_slice(&(16 + bytes.len() as u64).to_ne_bytes());
            control.extend_from_slice(&level::SOL_SCTP.to_ne_bytes());
            control.extend_from_slice(&(name % 10).to_ne_bytes());
            control.extend_from_slice(bytes);
            let message = SendRequest { data: "x".into(), control: &control, ..SendRequest::default() };
            let _ = pair.at(0, |stack, now| stack.send(now, client, message));
            let raw = SendRequest { data: "y".into(), control: bytes, name: bytes, ..Default::default() };
            let _ = pair.at(0, |stack, now| stack.send(now, client, raw));
        }
        pair.run_one_second();
        let _ = pair.receive_message(1, server, 100, 0);
        let to = format!("{SERVER}:5000");
        let fresh = pair.socket(0, socket::SOCK_SEQPACKET);
        let _ = pair.send_message_to(0, fresh, &to, b"still there");
        pair.run_one_second();
    }
}
