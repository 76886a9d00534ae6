//! The contents of packets: bundling, fragmentation, order, flags.

use super::*;
use crate::config::SchedulerKind;
use crate::wire::DataOrder;

/// The bytes of user data in a full packet: 1,500 without the headers of IP, SCTP and DATA.
const WHOLE: usize = 1500 - 20 - 12 - 16;

//= rfc9260 §6.10
//# small messages share a packet, control chunks first
#[test]
fn small_messages_share_a_packet() {
    let mut bench = Bench::new();
    for _ in 0..30 {
        bench.send(on(0), 64).expect("taken");
    }
    let packets = bench.output();
    let counts: Vec<usize> = packets.iter().map(|packet| packet.chunks.len()).collect();
    assert_eq!(counts, [18, 12]);
    assert!(
        packets
            .iter()
            .flat_map(|packet| &packet.chunks)
            .all(|chunk| { chunk.flags.begin && chunk.flags.end })
    );
}

#[test]
fn the_tail_of_a_message_shares_a_packet_with_the_next_head() {
    let mut bench = Bench::new();
    for _ in 0..40 {
        bench.send(on(0), WHOLE + 8).expect("taken");
    }
    let mut packets = Vec::new();
    while let Some(packet) = bench.packet(PathId(0)) {
        packets.push(packet);
    }
    let (last, full) = packets.split_last().expect("packets");
    assert!(full.iter().all(|packet| packet.size == 1480), "a train needs packets of one size");
    assert!(last.size <= 1480);
    let bytes: usize = packets.iter().flat_map(|p| &p.chunks).map(|c| c.payload.len()).sum();
    assert_eq!(bytes, 40 * (WHOLE + 8));
    assert!(packets.len() <= 42, "{} packets for 40 messages", packets.len());
}

#[test]
fn a_message_that_fits_into_a_packet_is_not_fragmented() {
    let mut bench = Bench::new();
    bench.send(on(0), 1000).expect("taken");
    bench.send(on(0), WHOLE).expect("taken");
    let sizes: Vec<usize> =
        bench.output().iter().flat_map(|p| &p.chunks).map(|c| c.payload.len()).collect();
    assert_eq!(sizes, [1000, WHOLE]);
}

//= rfc9260 §6.9
//# fragments have consecutive TSNs, B and E bits, one SSN
#[test]
fn fragments_have_their_flags_and_one_number() {
    let mut bench = Bench::new();
    bench.send(on(5), 3000).expect("taken");
    bench.send(on(5), 10).expect("taken");
    let packets = bench.output();
    let chunks: Vec<&DataChunk> = packets.iter().flat_map(|packet| &packet.chunks).collect();
    let marks: Vec<(bool, bool)> =
        chunks.iter().map(|chunk| (chunk.flags.begin, chunk.flags.end)).collect();
    assert_eq!(marks, [(true, false), (false, false), (false, true), (true, true)]);
    let numbers: Vec<DataOrder> = chunks.iter().map(|chunk| chunk.order).collect();
    let ssn = |number| DataOrder::Ssn(crate::serial::Ssn(number));
    assert_eq!(numbers, [ssn(0), ssn(0), ssn(0), ssn(1)]);
    let tsns: Vec<Tsn> = chunks.iter().map(|chunk| chunk.tsn).collect();
    assert_eq!(tsns, [FIRST, FIRST.plus(1), FIRST.plus(2), FIRST.plus(3)]);
}

#[test]
fn unordered_messages_use_no_number() {
    let mut bench = Bench::new();
    bench.send(SendInfo { unordered: true, ..on(5) }, 10).expect("taken");
    bench.send(on(5), 10).expect("taken");
    let packets = bench.output();
    assert!(packets[0].chunks[0].flags.unordered);
    assert_eq!(packets[0].chunks[1].order, DataOrder::Ssn(crate::serial::Ssn(0)));
}

//= rfc8260 §2.2.2
//# one message of a stream is sent at a time, several streams by turns; TSNs in the order of
//# sending
#[test]
fn interleaved_messages_take_turns_by_chunk() {
    let config = AssociationConfig { scheduler: SchedulerKind::RoundRobin.into(), ..config() };
    let mut bench = Bench::with(config, SenderTerms { interleaving: true, ..terms() });
    bench.send(on(1), 4000).expect("taken");
    bench.send(on(2), 2000).expect("taken");
    bench.send(SendInfo { unordered: true, ..on(1) }, 10).expect("taken");
    let packets: Vec<SentPacket> = core::iter::from_fn(|| bench.packet(PathId(0))).collect();
    let chunks: Vec<&DataChunk> = packets.iter().flat_map(|packet| &packet.chunks).collect();
    let streams: Vec<u16> = chunks.iter().map(|chunk| chunk.stream.0).collect();
    assert_eq!(streams, [1, 2, 1, 2, 1, 1, 1]);
    let fragments = |stream: u16| -> Vec<u32> {
        let of = chunks.iter().filter(|chunk| chunk.stream.0 == stream && !chunk.flags.unordered);
        of.map(|chunk| match chunk.order {
            DataOrder::Mid { fsn, .. } => fsn,
            DataOrder::Ssn(_) => panic!("DATA instead of I-DATA"),
        })
        .collect()
    };
    assert_eq!(fragments(1), [0, 1, 2, 3]);
    assert_eq!(fragments(2), [0, 1]);
}

#[test]
fn without_interleaving_a_message_is_finished_first() {
    let config = AssociationConfig { scheduler: SchedulerKind::RoundRobin.into(), ..config() };
    let mut bench = Bench::with(config, terms());
    bench.send(on(1), 4000).expect("taken");
    bench.send(on(2), 2000).expect("taken");
    let packets = bench.output();
    let streams: Vec<u16> =
        packets.iter().flat_map(|packet| &packet.chunks).map(|chunk| chunk.stream.0).collect();
    assert_eq!(streams, [1, 1, 1, 2, 2]);
}

#[test]
fn the_segment_size_can_be_limited() {
    let config = AssociationConfig { max_segment: Some(500), ..config() };
    let mut bench = Bench::with(config, terms());
    bench.send(on(0), 1200).expect("taken");
    let sizes: Vec<usize> =
        bench.output().iter().flat_map(|p| &p.chunks).map(|c| c.payload.len()).collect();
    assert_eq!(sizes, [500, 500, 200]);
}

//= rfc9260 §6.1
//# Nagle's algorithm SHOULD be available; it is off by default
#[test]
fn small_messages_wait_if_allowed() {
    let mut bench = Bench::with(AssociationConfig { nagle: true, ..config() }, terms());
    bench.send(on(0), 100).expect("taken");
    assert_eq!(bench.output().len(), 1, "nothing is in flight yet");
    bench.send(on(0), 100).expect("taken");
    assert_eq!(bench.output().len(), 0);
    bench.send(on(0), WHOLE).expect("taken");
    assert_eq!(bench.output().len(), 2, "enough for a packet");
    bench.send(on(0), 100).expect("taken");
    assert_eq!(bench.output().len(), 0);
    bench.sack(4, &[]);
    assert_eq!(bench.output().len(), 0, "not all of it was sent");
    bench.sack(3, &[]);
    assert_eq!(bench.output().len(), 1);
}

#[test]
fn the_last_chunk_of_a_burst_requests_a_sack() {
    let mut bench = Bench::new();
    for _ in 0..3 {
        bench.send(on(0), WHOLE).expect("taken");
    }
    let asks: Vec<bool> =
        bench.output().iter().flat_map(|p| &p.chunks).map(|c| c.flags.immediate).collect();
    assert_eq!(asks, [false, false, true]);
    bench.sack(3, &[]);
    bench.send(on(0), 100).expect("taken");
    assert!(!bench.output()[0].chunks[0].flags.immediate, "a single message is not a burst");
    bench.send(SendInfo { sack_immediately: true, ..on(0) }, 2000).expect("taken");
    bench.sack(4, &[]);
    let asks: Vec<bool> =
        bench.output().iter().flat_map(|p| &p.chunks).map(|c| c.flags.immediate).collect();
    assert_eq!(asks.last(), Some(&true), "the caller asked for it");
}

#[test]
fn sent_data_shares_the_callers_memory() {
    let mut bench = Bench::new();
    let data: Bytes = (0..5000_u32).map(|n| (n % 251) as u8).collect::<Vec<u8>>().into();
    bench.send_bytes(on(0), data.clone()).expect("taken");
    let sent: Vec<u8> =
        bench.output().iter().flat_map(|p| &p.chunks).flat_map(|c| c.payload.to_vec()).collect();
    assert_eq!(sent, data);
}

/// RFC 7053 §4: nothing follows the third packet, so the peer need not wait for a fourth.
#[test]
fn the_last_packet_of_a_burst_requests_a_sack_if_configured() {
    for wanted in [true, false] {
        let config = AssociationConfig { ask_for_sacks: wanted, ..config() };
        let mut bench = Bench::with(config, terms());
        for _ in 0..3 {
            bench.send(on(0), 1400).expect("taken");
        }
        let packets = bench.output();
        let asks: Vec<bool> = packets
            .iter()
            .flat_map(|packet| packet.chunks.iter().map(|chunk| chunk.flags.immediate))
            .collect();
        assert_eq!(asks, [false, false, wanted]);
    }
}
