//! Abandoned messages (RFC 3758, RFC 7496, RFC 8260).

use super::*;
use crate::config::SchedulerKind;
use crate::message::MessageReliability;
use crate::serial::{Mid, Ssn};
use crate::wire::{ForwardTsnChunk, IForwardTsnChunk, SkippedMid, SkippedSsn};

fn with_lifetime(stream: u16) -> SendInfo {
    SendInfo {
        reliability: MessageReliability::Lifetime(milliseconds(500)),
        context: 77,
        ..on(stream)
    }
}

/// The FORWARD-TSN or I-FORWARD-TSN that is sent now, if any.
fn forward(bench: &mut Bench) -> Option<Chunk> {
    if !bench.sender.forward_tsn_due() {
        return None;
    }
    let mut buffer = BytesMut::new();
    let mut packet = PacketWriter::begin(&mut buffer, HEADER, 1480);
    let paths = &mut bench.paths;
    assert!(bench.sender.write_forward_tsn(bench.now, PathId(0), paths, &mut packet));
    packet.finish(ChecksumKind::Crc32c);
    let contents = buffer.freeze();
    let (_, mut chunks) = PacketParser::parse(&contents, ChecksumKind::Crc32c).expect("a packet");
    chunks.next()
}

fn forwarded(count: u32, skipped: &[(u16, u16)]) -> Option<Chunk> {
    let skipped: Vec<SkippedSsn> = skipped
        .iter()
        .map(|&(stream, ssn)| SkippedSsn { stream: StreamId(stream), ssn: Ssn(ssn) })
        .collect();
    Some(Chunk::ForwardTsn(ForwardTsnChunk::new(FIRST.plus(count).previous(), &skipped)))
}

//= rfc3758 §4.1 TR3
//# an expired message gets no TSN
#[test]
fn an_expired_message_is_not_sent() {
    let mut bench = Bench::new();
    bench.send(with_lifetime(1), 100).expect("taken");
    bench.send(on(1), 100).expect("taken");
    bench.pass(milliseconds(500));
    let packets = bench.output();
    assert_eq!(packets[0].chunks.len(), 1);
    assert_eq!(packets[0].chunks[0].order, crate::wire::DataOrder::Ssn(Ssn(0)), "it had no number");
    assert!(!bench.sender.forward_tsn_due());
    assert_eq!(failures(&bench.events()), [(1, 77, false)]);
    bench.sack(1, &[]);
    assert!(bench.sender.is_drained());
}

//= rfc3758 §4.1 TR3
//# a queued message expires on time; `Event::SendFailed`
#[test]
fn a_queued_message_expires_on_time() {
    let mut bench = Bench::with(config(), SenderTerms { peer_window: 0, ..terms() });
    bench.send(on(0), 100).expect("taken");
    bench.output();
    bench.send(with_lifetime(1), 100).expect("taken");
    bench.pass(milliseconds(100));
    bench.send(with_lifetime(1), 100).expect("taken");
    let start = bench.now;
    for waited in [400, 500] {
        bench.timeout();
        assert_eq!(bench.now, start + milliseconds(waited));
        assert_eq!(failures(&bench.events()), [(1, 77, false)]);
    }
    assert_eq!(bench.sender.queued_bytes(), 100);
}

//= rfc3758 §4.1 TR2, TR4
//# an expired message is not retransmitted, and is reliable before
#[test]
fn an_expired_message_is_not_retransmitted() {
    let mut bench = Bench::new();
    bench.send(with_lifetime(1), 2000).expect("taken");
    bench.send(on(2), 100).expect("taken");
    bench.output();
    let outcome = bench.timeout();
    assert_eq!(outcome.expired.len(), 1);
    assert_eq!(forward(&mut bench), forwarded(2, &[(1, 0)]));
    let packets = bench.output();
    assert_eq!(packets.iter().flat_map(SentPacket::tsns).collect::<Vec<_>>(), [2]);
    assert_eq!(failures(&bench.events()), [(1, 77, true)]);
    assert_eq!(bench.sender.queued_bytes(), 100);
    bench.sack(3, &[]);
    assert!(bench.sender.is_drained());
    assert_eq!(forward(&mut bench), None);
}

#[test]
fn a_forward_tsn_on_a_removed_path_is_sent_again() {
    let mut bench = Bench::new();
    bench.add_path();
    bench.send(with_lifetime(1), 100).expect("taken");
    bench.output();
    bench.timeout();
    assert_eq!(forward(&mut bench), forwarded(1, &[(1, 0)]));
    assert!(!bench.sender.forward_tsn_due(), "its path's timer retransmits it");
    bench.paths.remove(PathId(0));
    bench.sender.paths_changed(bench.now, &mut bench.paths);
    assert!(bench.sender.forward_tsn_due());
}

//= rfc3758 §3.5 F5
//# a lost chunk cuts the window before it is abandoned
#[test]
fn retransmissions_can_be_limited() {
    let mut bench = Bench::new();
    let twice = SendInfo { reliability: MessageReliability::Retransmissions(2), ..on(4) };
    bench.send(twice, 100).expect("taken");
    for _ in 0..2 {
        assert_eq!(bench.output().len(), 1);
        bench.timeout();
        assert_eq!(forward(&mut bench), None);
    }
    assert_eq!(bench.output().len(), 1);
    bench.timeout();
    assert_eq!(bench.output().len(), 0);
    assert_eq!(forward(&mut bench), forwarded(1, &[(4, 0)]));
}

/// One message is abandoned, and the peer has been informed.
fn forwarding_bench() -> Bench {
    let mut bench = Bench::new();
    let once = SendInfo { reliability: MessageReliability::Retransmissions(0), ..on(4) };
    bench.send(once, 100).expect("taken");
    bench.output();
    bench.timeout();
    assert!(forward(&mut bench).is_some());
    bench
}

//= rfc3758 §3.5 C5, A5
//# T3 covers FORWARD TSN
#[test]
fn t3_covers_forward_tsns() {
    let mut bench = forwarding_bench();
    assert_eq!(forward(&mut bench), None);
    let outcome = bench.timeout();
    assert_eq!(outcome.expired.len(), 1, "the peer did not answer");
    assert!(forward(&mut bench).is_some(), "sent again");
    bench.sack(1, &[]);
    assert_eq!(bench.sender.next_timeout(&bench.paths), None);
    assert!(bench.sender.is_drained());
}

/// ```text
/// DATA 0, limited   ─▶ lost, T3
/// FORWARD-TSN to 0  ─▶
///                   ◀─ SACK 0: nothing in flight was acknowledged
/// DATA 1, DATA 2    ─▶ as far as the window allows
/// ```
#[test]
fn more_than_one_packet_follows_an_acknowledged_forward_tsn() {
    let in_flight = |bench: &mut Bench| {
        for _ in 0..2 {
            bench.send(on(1), 100).expect("taken");
            bench.output();
        }
        bench.paths.get(PathId(0)).map(crate::path::Path::outstanding)
    };
    let mut bench = forwarding_bench();
    assert_eq!(in_flight(&mut bench), Some(100), "one packet at a time after T3");
    let mut bench = forwarding_bench();
    bench.sack(1, &[]);
    assert_eq!(in_flight(&mut bench), Some(200), "the peer answered");
}

//= rfc3758 §3.5 F2, F4
//# FORWARD TSN is repeated while SACKs acknowledge less, once per round trip
#[test]
fn the_forward_tsn_is_repeated_while_the_peer_acknowledges_less() {
    let mut bench = forwarding_bench();
    bench.send(on(1), 100).expect("taken");
    bench.output();
    bench.sack(0, &[(1, 1)]);
    assert!(!bench.sender.forward_tsn_due(), "the peer may not have received it yet");
    bench.now += Duration::from_secs(1);
    bench.send(on(1), 100).expect("taken");
    bench.output();
    bench.sack(0, &[(1, 2)]);
    assert_eq!(forward(&mut bench), forwarded(1, &[(4, 0)]));
    assert!(!bench.sender.forward_tsn_due());
}

//= rfc3758 §3.5 A3
//# all TSNs of a message are abandoned together
#[test]
fn a_partly_sent_message_can_be_abandoned() {
    let config = AssociationConfig { send_buffer: 5000, ..config() };
    let mut bench = Bench::with(config, terms());
    let low = SendInfo { reliability: MessageReliability::Priority(9), ..on(1) };
    let high = SendInfo { reliability: MessageReliability::Priority(1), ..on(2) };
    bench.send(low, 4000).expect("taken");
    bench.packet(PathId(0)).expect("the first part");
    bench.sack(1, &[]);
    bench.send(high, 4000).expect("the other message makes room");
    bench.check();
    assert_eq!(bench.sender.queued_bytes(), 4000);
    // One TSN is consumed without a chunk: the peer has a part of the message.
    assert_eq!(forward(&mut bench), forwarded(2, &[(1, 0)]));
    let next = bench.packet(PathId(0)).expect("the other message");
    assert_eq!((next.tsns(), next.chunks[0].stream), (alloc::vec![2], StreamId(2)));
    bench.send(on(1), 10).expect("taken");
    let packets = bench.output();
    let last = packets.last().and_then(|packet| packet.chunks.last()).expect("packets");
    assert_eq!(last.order, crate::wire::DataOrder::Ssn(Ssn(1)), "a number was consumed, too");
}

//= rfc3758 §3.5 A4, C1, C2
//# Advanced.Peer.Ack.Point moves past abandoned chunks once earlier ones are acknowledged
#[test]
fn abandoned_messages_are_forwarded_once_earlier_ones_are_acknowledged() {
    let mut bench = Bench::new();
    bench.send(on(0), 1000).expect("taken");
    bench.packet(PathId(0)).expect("a packet");
    bench
        .send(SendInfo { reliability: MessageReliability::Retransmissions(0), ..on(1) }, 1000)
        .expect("taken");
    bench.packet(PathId(0)).expect("a packet");
    bench.timeout();
    assert_eq!(forward(&mut bench), None, "the first one is still pending");
    bench.output();
    bench.sack(1, &[]);
    assert_eq!(forward(&mut bench), forwarded(2, &[(1, 0)]));
}

//= rfc3758 §3.5 C4
//# FORWARD TSN lists each stream once, with its highest number
#[test]
fn interleaved_messages_are_forwarded_by_their_numbers() {
    let config = AssociationConfig { scheduler: SchedulerKind::Fcfs.into(), ..config() };
    let mut bench = Bench::with(config, SenderTerms { interleaving: true, ..terms() });
    let once = |stream, unordered| SendInfo {
        reliability: MessageReliability::Retransmissions(0),
        unordered,
        ..on(stream)
    };
    for (stream, unordered) in [(1, false), (1, false), (1, true), (2, true)] {
        bench.send(once(stream, unordered), 100).expect("taken");
    }
    bench.output();
    bench.timeout();
    let entry =
        |stream, unordered, mid| SkippedMid { stream: StreamId(stream), unordered, mid: Mid(mid) };
    let skipped = [entry(1, false, 1), entry(1, true, 0), entry(2, true, 0)];
    let expected = IForwardTsnChunk::new(FIRST.plus(3), &skipped);
    assert_eq!(forward(&mut bench), Some(Chunk::IForwardTsn(expected)));
}

//= rfc3758 §3.3.3
//# MUST NOT send FORWARD TSN to a peer without it, which gets everything
#[test]
fn a_peer_without_forward_tsn_gets_everything() {
    let mut bench = Bench::with(config(), SenderTerms { partial_reliability: false, ..terms() });
    bench.send(with_lifetime(1), 100).expect("taken");
    bench.output();
    for _ in 0..4 {
        bench.timeout();
        assert_eq!(bench.output().len(), 1);
    }
    assert!(!bench.sender.forward_tsn_due());
    assert_eq!(bench.events(), []);
}

//= rfc3758 §3.2
//# FORWARD TSN MUST NOT list unordered chunks
/// RFC 3758 §3.2.
#[test]
fn an_unordered_message_is_forwarded_without_a_number() {
    let mut bench = Bench::new();
    let reliability = MessageReliability::Retransmissions(0);
    for unordered in [true, false] {
        bench.send(SendInfo { reliability, unordered, ..on(4) }, 100).expect("taken");
    }
    bench.output();
    bench.timeout();
    assert_eq!(forward(&mut bench), forwarded(2, &[(4, 0)]), "the other side's");
}

//= rfc3758 §3.5 C4
//# a list of streams that does not fit continues once the peer has acknowledged it
/// RFC 3758 §3.5, C4: more streams than fit into one chunk.
#[test]
fn a_full_list_continues_once_the_peer_has_acknowledged_it() {
    let mut bench = Bench::with(config(), SenderTerms { outbound: 500, ..terms() });
    for stream in 0..400 {
        let once = SendInfo { reliability: MessageReliability::Retransmissions(0), ..on(stream) };
        bench.send(once, 5).expect("taken");
    }
    bench.output();
    bench.timeout();
    let streams = |from: u16, to: u16| (from..to).map(|stream| (stream, 0)).collect::<Vec<_>>();
    assert_eq!(forward(&mut bench), forwarded(365, &streams(0, 365)));
    assert_eq!(forward(&mut bench), None, "nothing more before the peer has acknowledged that");
    bench.sack(365, &[]);
    assert_eq!(forward(&mut bench), forwarded(400, &streams(365, 400)));
    bench.sack(400, &[]);
    assert!(bench.sender.is_drained());
}

#[test]
fn messages_behind_the_first_one_can_be_abandoned() {
    let config = AssociationConfig { send_buffer: 3000, ..config() };
    let mut bench = Bench::with(config, terms());
    let low = |context| SendInfo { reliability: MessageReliability::Priority(9), context, ..on(1) };
    bench.send(on(1), 1000).expect("taken");
    bench.send(low(1), 1000).expect("taken");
    bench.send(low(2), 1000).expect("taken");
    let high = SendInfo { reliability: MessageReliability::Priority(1), ..on(1) };
    bench.send(high, 1000).expect("taken");
    bench.send(high, 1000).expect("taken");
    bench.check();
    let sent: usize = bench.output().iter().map(|packet| packet.chunks.len()).sum();
    assert_eq!(sent, 3);
    bench.sack(3, &[]);
    assert!(bench.sender.is_drained());
    assert_eq!(bench.events().len(), 3, "two failures and a drained sender");
}
