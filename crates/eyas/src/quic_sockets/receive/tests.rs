use std::net::{Ipv4Addr, UdpSocket};

use quinn::udp::Transmit;

use super::*;

/// quinn's buffers for datagrams of 1,472 bytes.
const BUFFER: usize = 1472 * SEGMENTS;

/// Two sockets, and the offload of the second.
fn pair() -> (Socket, Socket, UdpOffload) {
    let open = || Socket::from(UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    let (sender, receiver) = (open(), open());
    let offload = UdpOffload::new(&receiver).unwrap();
    (sender, receiver, offload)
}

/// Sends a train, or single datagrams if the kernel does not support trains.
fn send(from: &Socket, to: &Socket, contents: &[u8], segment: usize) {
    let offload = UdpOffload::new(from).unwrap();
    let destination = to.local_addr().unwrap().as_socket().unwrap();
    let train = offload.max_gso_segments().max(1) * segment;
    for part in contents.chunks(train) {
        let segment_size = (part.len() > segment).then_some(segment);
        let transmit =
            Transmit { destination, ecn: None, contents: part, segment_size, src_ip: None };
        offload.send(from, &transmit).unwrap();
    }
}

/// Returns the received datagrams, read into this many buffers at a time.
fn datagrams(trains: &mut ReceivedTrains, buffers: usize) -> Vec<Vec<u8>> {
    let mut memory = vec![vec![0; BUFFER]; buffers];
    let mut all = Vec::new();
    loop {
        let mut meta = vec![RecvMeta::default(); buffers];
        let mut slices: Vec<_> = memory.iter_mut().map(|buffer| IoSliceMut::new(buffer)).collect();
        let count = trains.fill(&mut slices, &mut meta);
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
        let (sender, receiver, offload) = pair();
        let mut trains = ReceivedTrains::default();
        let sent = &contents[..bytes];
        send(&sender, &receiver, sent, segment);
        let mut received = Vec::new();
        while received.len() < bytes.div_ceil(segment) {
            trains.receive(&offload, &receiver).unwrap();
            assert!(
                trains.sources().all(|from| Some(from) == sender.local_addr().unwrap().as_socket())
            );
            received.extend(datagrams(&mut trains, buffers));
        }
        let expected: Vec<_> = sent.chunks(segment).map(<[u8]>::to_vec).collect();
        assert_eq!(received, expected);
    }
}

#[test]
fn memory_grows_with_what_arrives_and_no_further() {
    let (sender, receiver, offload) = pair();
    let mut trains = ReceivedTrains::default();
    let mut capacities = Vec::new();
    for at in 0..40_u8 {
        // Of different lengths, so that they do not form a train.
        send(&sender, &receiver, &vec![at; 100 + usize::from(at)], 1452);
    }
    while trains.receive(&offload, &receiver).is_ok() {
        capacities.push(trains.memory.len());
        assert!(!datagrams(&mut trains, 32).is_empty());
    }
    assert_eq!(ReceivedTrains::default().memory.len(), 1);
    assert_eq!(capacities.iter().max(), Some(&MAX_TRAINS), "{capacities:?}");
}

#[test]
fn an_oversized_datagram_is_skipped() {
    let (sender, receiver, offload) = pair();
    let mut trains = ReceivedTrains::default();
    send(&sender, &receiver, &vec![1; BUFFER + 1], BUFFER + 1);
    send(&sender, &receiver, b"hello", 5);
    let mut received = Vec::new();
    while received.is_empty() {
        trains.receive(&offload, &receiver).unwrap();
        received = datagrams(&mut trains, 4);
    }
    assert_eq!(received, [b"hello".to_vec()]);
}
