//! The schedulers with streams that always have messages to send.

use alloc::vec::Vec;

use super::kind::SchedulerKind;
use super::{Scheduler, SchedulerFactory, StreamSlot, StreamTurn};

/// Messages in queueing order: (stream, chunks of 100 bytes in the message).
struct Bench {
    scheduler: alloc::boxed::Box<dyn Scheduler>,
    /// The remaining chunks of each message, by stream.
    queues: Vec<alloc::collections::VecDeque<usize>>,
    by_chunk: bool,
    current: Option<u16>,
}

impl Bench {
    fn new(kind: SchedulerKind, by_chunk: bool, messages: &[(u16, usize)]) -> Self {
        let queues = Vec::new();
        let mut bench = Self { scheduler: kind.build(by_chunk), queues, by_chunk, current: None };
        for &(stream, chunks) in messages {
            bench.queue(stream, chunks);
        }
        bench
    }

    fn queue(&mut self, stream: u16, chunks: usize) {
        self.queues.resize_with(self.queues.len().max(usize::from(stream) + 1), Default::default);
        self.queues[usize::from(stream)].push_back(chunks);
        self.scheduler.on_queued(StreamSlot(stream));
    }

    /// Sends one chunk of whichever stream is next.
    fn send(&mut self, eligible: impl Fn(u16) -> bool) -> Option<u16> {
        let stream = match self.current {
            Some(stream) if !self.by_chunk => stream,
            _ => self.scheduler.next(&mut |stream| eligible(stream.0))?.0,
        };
        let queue = &mut self.queues[usize::from(stream)];
        let left = queue.front_mut().expect("a stream without messages was chosen");
        *left -= 1;
        let ends_message = *left == 0;
        if ends_message {
            queue.pop_front();
        }
        self.current = (!ends_message).then_some(stream);
        let ends_stream = queue.is_empty();
        let stream_slot = StreamSlot(stream);
        self.scheduler.on_sent(&StreamTurn {
            stream: stream_slot,
            bytes: 100,
            ends_message,
            ends_stream,
        });
        Some(stream)
    }

    fn send_all(&mut self) -> Vec<u16> {
        core::iter::from_fn(|| self.send(|_| true)).collect()
    }
}

//= rfc8260 §3.1
//# first come, first served
#[test]
fn first_come_first_served_preserves_the_order() {
    let mut bench = Bench::new(SchedulerKind::Fcfs, false, &[(2, 1), (0, 2), (2, 1), (1, 1)]);
    assert_eq!(bench.send_all(), [2, 0, 0, 2, 1]);
}

#[test]
fn first_come_first_served_skips_ineligible_streams() {
    let mut bench = Bench::new(SchedulerKind::Fcfs, false, &[(2, 1), (0, 1), (2, 1), (1, 1)]);
    assert_eq!(bench.send(|stream| stream != 2), Some(0));
    assert_eq!(bench.send(|stream| stream != 2), Some(1));
    assert_eq!(bench.send(|stream| stream != 2), None);
    assert_eq!(bench.send_all(), [2, 2]);
}

//= rfc8260 §3.2
//# round robin: a message each
#[test]
fn round_robin_gives_a_message_each() {
    let messages = [(0, 2), (0, 1), (0, 1), (1, 1), (1, 3)];
    let mut bench = Bench::new(SchedulerKind::RoundRobin, false, &messages);
    assert_eq!(bench.send_all(), [0, 0, 1, 0, 1, 1, 1, 0]);
}

//= rfc8260 §3.2
//# round robin with I-DATA: a chunk each
#[test]
fn round_robin_gives_a_chunk_each_with_interleaving() {
    let mut bench = Bench::new(SchedulerKind::RoundRobin, true, &[(0, 3), (1, 2), (2, 1)]);
    assert_eq!(bench.send_all(), [0, 1, 2, 0, 1, 0]);
}

//= rfc8260 §3.3
//# round robin by packet
#[test]
fn round_robin_by_packet_keeps_a_packet_to_one_stream() {
    let messages = [(0, 1), (0, 1), (0, 1), (1, 1), (1, 1)];
    let mut bench = Bench::new(SchedulerKind::RoundRobinPacket, false, &messages);
    let mut packets = Vec::new();
    while bench.queues.iter().any(|queue| !queue.is_empty()) {
        bench.scheduler.on_packet();
        let packet: Vec<u16> = core::iter::from_fn(|| bench.send(|_| true)).take(2).collect();
        packets.push(packet);
    }
    assert_eq!(packets, [alloc::vec![0, 0], alloc::vec![1, 1], alloc::vec![0]]);
}

//= rfc8260 §3.4
//# strict priority; round robin among equals
#[test]
fn priority_is_strict_and_fair_among_equals() {
    let mut bench = Bench::new(SchedulerKind::Priority, false, &[(0, 1), (0, 1)]);
    bench.scheduler.set_value(StreamSlot(0), 7);
    bench.scheduler.set_value(StreamSlot(1), 3);
    bench.scheduler.set_value(StreamSlot(2), 3);
    for (stream, chunks) in [(1, 1), (1, 1), (2, 1), (2, 1)] {
        bench.queue(stream, chunks);
    }
    assert_eq!(bench.send_all(), [1, 2, 1, 2, 0, 0]);
}

#[test]
fn a_priority_may_change_while_messages_wait() {
    let mut bench = Bench::new(SchedulerKind::Priority, true, &[(0, 2), (1, 2)]);
    bench.scheduler.set_value(StreamSlot(0), 1);
    assert_eq!(bench.send(|_| true), Some(1));
    bench.scheduler.set_value(StreamSlot(1), 2);
    assert_eq!(bench.send_all(), [0, 0, 1]);
}

//= rfc8260 §3
//# all six schedulers; fair capacity by default
#[test]
fn fair_bandwidth_shares_bytes_not_messages() {
    let mut bench = Bench::new(SchedulerKind::FairBandwidth, false, &[]);
    for _ in 0..20 {
        bench.queue(0, 4);
        bench.queue(1, 1);
    }
    let sent: Vec<u16> = core::iter::from_fn(|| bench.send(|_| true)).take(32).collect();
    let first = sent.iter().filter(|stream| **stream == 0).count();
    assert!((14..=18).contains(&first), "{first} of 32 chunks for one of two streams");
}

//= rfc8260 §3.6
//# weighted fair queueing
#[test]
fn weights_determine_shares() {
    let mut bench = Bench::new(SchedulerKind::WeightedFairQueueing, true, &[]);
    bench.scheduler.set_value(StreamSlot(0), 3);
    bench.queue(0, 1000);
    bench.queue(1, 1000);
    let sent: Vec<u16> = core::iter::from_fn(|| bench.send(|_| true)).take(400).collect();
    let first = sent.iter().filter(|stream| **stream == 0).count();
    assert!((295..=305).contains(&first), "{first} of 400 chunks at weight 3 against 1");
}

#[test]
fn an_idle_stream_gets_no_credit() {
    let mut bench = Bench::new(SchedulerKind::FairBandwidth, true, &[(0, 1000), (1, 1)]);
    for _ in 0..200 {
        bench.send(|_| true);
    }
    bench.queue(1, 1000);
    let sent: Vec<u16> = core::iter::from_fn(|| bench.send(|_| true)).take(100).collect();
    let second = sent.iter().filter(|stream| **stream == 1).count();
    assert!((48..=52).contains(&second), "{second} of 100 chunks after an idle time");
}

#[test]
fn every_scheduler_sends_everything_once() {
    for kind in [
        SchedulerKind::Fcfs,
        SchedulerKind::RoundRobin,
        SchedulerKind::Priority,
        SchedulerKind::FairBandwidth,
        SchedulerKind::WeightedFairQueueing,
    ] {
        for by_chunk in [false, true] {
            let messages: Vec<(u16, usize)> =
                (0..100).map(|n| (n * 7 % 11, usize::from(n % 4) + 1)).collect();
            let mut bench = Bench::new(kind, by_chunk, &messages);
            let wanted: usize = messages.iter().map(|(_, chunks)| chunks).sum();
            assert_eq!(bench.send_all().len(), wanted, "{kind:?}, by chunk: {by_chunk}");
        }
    }
}

#[test]
fn an_ineligible_stream_catches_up_only_a_little() {
    for kind in [SchedulerKind::FairBandwidth, SchedulerKind::WeightedFairQueueing] {
        let mut bench = Bench::new(kind, true, &[(0, 20_000), (1, 20_000)]);
        // For ten chunks of one stream, only one of the other stream is eligible, as with a slow
        // and a fast path.
        for turn in 0..11_000 {
            bench.send(|stream| stream == u16::from(turn % 11 == 0));
        }
        let sent: Vec<u16> = core::iter::from_fn(|| bench.send(|_| true)).take(2_000).collect();
        let next_slot = sent.iter().take_while(|stream| **stream == 1).count();
        assert!(
            (1..=340).contains(&next_slot),
            "{kind:?}: {next_slot} chunks of 100 bytes at once"
        );
        let shared = &sent[next_slot..];
        let first = shared.iter().filter(|stream| **stream == 0).count();
        assert!(first * 2 >= shared.len() - 2, "{kind:?}: {first} of {}", shared.len());
    }
}
