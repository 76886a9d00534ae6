//! Queueing of messages, the send buffer, and its events.

use super::*;
use crate::message::MessageReliability;
use crate::send::QueueInfo;

#[test]
fn misuse_is_refused() {
    let mut bench = Bench::new();
    assert_eq!(bench.send(on(0), 0), Err(Error::EmptyMessage));
    assert_eq!(bench.send(on(100), 1), Err(Error::NoSuchStream));
    assert_eq!(bench.send(on(0), (1 << 20) + 1), Err(Error::MessageTooLarge { limit: 1 << 20 }));
    assert_eq!(bench.sender.queued_bytes(), 0);
    assert!(bench.sender.is_drained());
}

#[test]
fn a_full_buffer_reports_when_there_is_room() {
    let config = AssociationConfig { send_buffer: 5000, ..config() };
    let mut bench = Bench::with(config, terms());
    assert_eq!(bench.send(on(0), 1400), Ok(()));
    assert_eq!(bench.send(on(0), 1400), Ok(()));
    assert_eq!(bench.send(on(0), 1400), Ok(()));
    assert_eq!(bench.send(on(0), 1400), Err(Error::Full));
    assert_eq!(bench.events(), []);
    assert_eq!(bench.output().len(), 3);
    bench.sack(1, &[]);
    assert_eq!(bench.events(), [Event::Writable]);
    assert_eq!(bench.send(on(0), 1400), Ok(()));
    bench.sack(2, &[]);
    assert_eq!(bench.events(), [], "no one is waiting for room");
}

#[test]
fn sent_data_still_fills_the_buffer() {
    let config = AssociationConfig { send_buffer: 3000, ..config() };
    let mut bench = Bench::with(config, terms());
    assert_eq!(bench.send(on(0), 3000), Ok(()));
    assert_eq!(bench.output().len(), 3);
    assert_eq!(bench.send(on(0), 1), Err(Error::Full));
    bench.sack(1, &[(2, 2)]);
    assert_eq!(bench.sender.queued_bytes(), 3000 - 1452, "a gap block frees nothing");
}

#[test]
fn tiny_messages_are_bounded_by_their_number() {
    let config = AssociationConfig { send_buffer: 16 << 10, ..config() };
    let mut bench = Bench::with(config, terms());
    let taken = (0..20_000).take_while(|_| bench.send(on(0), 1).is_ok()).count();
    assert_eq!(taken, 1024);
}

#[test]
fn an_empty_sender_reports_it_once() {
    let mut bench = Bench::new();
    bench.send(on(1), 10).expect("taken");
    bench.send(on(2), 10).expect("taken");
    bench.output();
    bench.sack(1, &[]);
    assert_eq!(bench.events(), []);
    bench.sack(2, &[]);
    assert_eq!(bench.events(), [Event::SenderDry]);
    bench.sack(2, &[]);
    assert_eq!(bench.events(), []);
}

#[test]
fn queues_are_reported_by_stream() {
    let mut bench = Bench::new();
    bench.send(on(1), 10_000).expect("taken");
    bench.send(on(2), 100).expect("taken");
    bench.packet(PathId(0)).expect("a packet");
    let queue = bench.sender.stream_queue(StreamId(1));
    assert_eq!(queue, QueueInfo { unsent: 10_000 - 1452, unacknowledged: 1452 });
    assert_eq!(queue.total(), 10_000);
    assert_eq!(bench.sender.stream_queue(StreamId(2)).total(), 100);
    assert_eq!(bench.sender.stream_queue(StreamId(3)), QueueInfo::default());
    bench.sack(1, &[]);
    assert_eq!(bench.sender.stream_queue(StreamId(1)).unacknowledged, 0);
}

//= rfc3758 RFC 7496 §3.2
//# without room, messages of lower priority are abandoned, the lowest first
#[test]
fn a_message_of_higher_priority_replaces_one_of_lower_priority() {
    let config = AssociationConfig { send_buffer: 3000, ..config() };
    let mut bench = Bench::with(config, terms());
    let with_priority = |priority| SendInfo {
        reliability: MessageReliability::Priority(priority),
        context: priority,
        ..on(3)
    };
    for priority in [5, 9, 7] {
        assert_eq!(bench.send(with_priority(priority), 1000), Ok(()));
    }
    assert_eq!(bench.send(with_priority(9), 1000), Err(Error::Full));
    assert_eq!(
        bench.send(on(0), 1000),
        Err(Error::Full),
        "reliable messages do not displace others"
    );
    assert_eq!(bench.send(with_priority(6), 1000), Ok(()));
    assert_eq!(failures(&bench.events()), [(3, 9, false)]);
    let ppids: usize = bench.output().iter().map(|packet| packet.chunks.len()).sum();
    assert_eq!(ppids, 3);
    bench.check();
}

#[test]
fn memory_is_small() {
    use crate::send::outstanding::SentChunk;
    use crate::send::queue::QueuedMessage;
    assert!(size_of::<SentChunk>() <= 28, "{} bytes for a chunk", size_of::<SentChunk>());
    assert!(size_of::<QueuedMessage>() <= 104, "{} bytes a message", size_of::<QueuedMessage>());
    assert!(
        size_of::<AssociationSender>() <= 768,
        "{} bytes a sender",
        size_of::<AssociationSender>()
    );
}

#[test]
fn the_queue_is_reported_per_stream() {
    let mut bench = Bench::new();
    bench.send(on(7), 1400).expect("taken");
    bench.send(on(3), 1000).expect("taken");
    bench.output();
    bench.send(on(7), 500).expect("taken");
    let info = bench.sender.queue_info();
    assert_eq!((info.limit, info.queued, info.streams), (1 << 20, 2900, 100));
    assert_eq!(info.stream(StreamId(7)).total(), 1900);
    assert_eq!(info.stream(StreamId(7)), bench.sender.stream_queue(StreamId(7)));
    assert_eq!(info.stream(StreamId(3)).unacknowledged, 1000);
    assert_eq!(info.stream(StreamId(4)).total(), 0);
    let streams: Vec<u16> = info.by_stream.iter().map(|(stream, _)| stream.0).collect();
    assert_eq!(streams, [3, 7]);
}

/// With the default scheduler, a message on a stream that seldom sends one goes before what another
/// stream has queued.
#[test]
fn a_sparse_stream_does_not_wait_behind_bulk() {
    let mut bench = Bench::new();
    for _ in 0..20 {
        bench.send(on(0), 1400).expect("taken");
    }
    let sent = bench.output().len() as u32;
    assert!(sent < 20, "the window is full");
    bench.send(on(1), 100).expect("taken");
    bench.pass(milliseconds(20));
    bench.sack(sent, &[]);
    let next = bench.output();
    assert_eq!(next[0].chunks[0].stream, StreamId(1));
}
