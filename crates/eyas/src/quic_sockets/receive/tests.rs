use std::net::{Ipv4Addr, UdpSocket};

use quinn::udp::Transmit;

use super::*;

/// quinn's buffers for datagrams of 1,472 bytes.
const BUFFER: usize = 1472 * SEGMENTS;

/// Two sockets, and the state of the second.
fn pair() -> (Socket, Socket, UdpSocketState) {
    let open = || Socket::from(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    let (here, there) = (open(), open());
    let state = UdpSocketState::new((&there).into()).unwrap();
    (here, there, state)
}

/// Sends a train, or each datagram alone if the kernel makes no trains.
fn send(from: &Socket, to: &Socket, contents: &[u8], segment: usize) {
    let state = UdpSocketState::new(from.into()).unwrap();
    let destination = to.local_addr().unwrap().as_socket().unwrap();
    let train = state.max_gso_segments().max(1) * segment;
    for part in contents.chunks(train) {
        let segment_size = (part.len() > segment).then_some(segment);
        let transmit =
            Transmit { destination, ecn: None, contents: part, segment_size, src_ip: None };
        state.try_send(from.into(), &transmit).unwrap();
    }
}

/// Everything that came, datagram by datagram, in at most so many buffers at a time.
fn datagrams(trains: &mut Trains, buffers: usize) -> Vec<Vec<u8>> {
    let mut memory = vec![vec![0; BUFFER]; buffers];
    let mut all = Vec::new();
    loop {
        let mut meta = vec![RecvMeta::default(); buffers];
        let mut slices: Vec<_> = memory.iter_mut().map(|one| IoSliceMut::new(one)).collect();
        let count = trains.hand_out(&mut slices, &mut meta);
        if count == 0 {
            return all;
        }
        for (meta, buffer) in meta.iter().zip(&memory).take(count) {
            all.extend(buffer[..meta.len].chunks(meta.stride).map(<[u8]>::to_vec));
        }
    }
}

#[test]
fn a_train_is_split_into_its_datagrams() {
    let contents: Vec<u8> = (0..60_000_u32).flat_map(|at| at.to_be_bytes()[2..].to_vec()).collect();
    for (segment, bytes, buffers) in [(1452, 60_000, 32), (1200, 47_000, 2), (60, 3_000, 1)] {
        let (here, there, state) = pair();
        let mut trains = Trains::default();
        let sent = &contents[..bytes];
        send(&here, &there, sent, segment);
        let mut received = Vec::new();
        while received.len() < bytes.div_ceil(segment) {
            trains.receive(&state, &there).unwrap();
            assert!(
                trains.sources().all(|from| Some(from) == here.local_addr().unwrap().as_socket())
            );
            received.extend(datagrams(&mut trains, buffers));
        }
        let wanted: Vec<_> = sent.chunks(segment).map(<[u8]>::to_vec).collect();
        assert_eq!(received, wanted);
    }
}

#[test]
fn memory_grows_with_what_arrives_and_no_further() {
    let (here, there, state) = pair();
    let mut trains = Trains::default();
    let mut rooms = Vec::new();
    for at in 0..40_u8 {
        // Of different lengths, so that they make no train.
        send(&here, &there, &vec![at; 100 + usize::from(at)], 1452);
    }
    while trains.receive(&state, &there).is_ok() {
        rooms.push(trains.memory.len());
        assert!(!datagrams(&mut trains, 32).is_empty());
    }
    assert_eq!(Trains::default().memory.len(), 1);
    assert_eq!(rooms.iter().max(), Some(&MAX_TRAINS), "{rooms:?}");
}

#[test]
fn an_oversized_datagram_is_skipped() {
    let (here, there, state) = pair();
    let mut trains = Trains::default();
    send(&here, &there, &vec![1; BUFFER + 1], BUFFER + 1);
    send(&here, &there, b"hello", 5);
    let mut received = Vec::new();
    while received.is_empty() {
        trains.receive(&state, &there).unwrap();
        received = datagrams(&mut trains, 4);
    }
    assert_eq!(received, [b"hello".to_vec()]);
}
