//! Stream resets, association restarts and the end of an association.

use super::*;
use crate::serial::Ssn;
use crate::wire::DataOrder;

fn numbers(packets: &[SentPacket]) -> Vec<(u16, u16)> {
    let chunks = packets.iter().flat_map(|packet| &packet.chunks);
    chunks
        .map(|chunk| match chunk.order {
            DataOrder::Ssn(Ssn(number)) => (chunk.stream.0, number),
            DataOrder::Mid { .. } => panic!("I-DATA instead of DATA"),
        })
        .collect()
}

//= rfc6525 §5.1.2 A1
//# a reset waits until no message of the streams is partly sent, and queues later ones
#[test]
fn a_paused_stream_sends_nothing_new_and_restarts() {
    let mut bench = Bench::new();
    bench.send(on(1), 10).expect("taken");
    bench.send(on(2), 10).expect("taken");
    bench.output();
    bench.sender.pause_streams(&[StreamId(1)]);
    assert!(bench.sender.are_streams_quiet(&[StreamId(1)]));
    assert_eq!(bench.sender.last_assigned_tsn(), FIRST.plus(1));
    bench.send(on(1), 10).expect("messages are still accepted");
    bench.send(on(2), 10).expect("taken");
    assert_eq!(numbers(&bench.output()), [(2, 1)]);
    bench.sender.reset_streams(&[StreamId(1)]);
    bench.send(on(2), 10).expect("taken");
    assert_eq!(numbers(&bench.output()), [(1, 0), (2, 2)]);
}

#[test]
fn a_stream_can_be_paused_before_it_is_first_used() {
    for (paused, sends_others) in [(&[StreamId(1)][..], true), (&[], false)] {
        let mut bench = Bench::new();
        bench.sender.pause_streams(paused);
        bench.send(on(1), 10).expect("messages are still accepted");
        bench.send(on(2), 10).expect("taken");
        assert_eq!(numbers(&bench.output()), if sends_others { vec![(2, 0)] } else { vec![] });
        bench.sender.resume_streams(paused);
        assert!(numbers(&bench.output()).contains(&(1, 0)));
        bench.send(on(1), 10).expect("taken");
        assert_eq!(numbers(&bench.output()), [(1, 1)]);
    }
}

#[test]
fn a_stream_resumed_before_its_first_use_is_not_paused() {
    for all in [true, false] {
        let mut bench = Bench::new();
        bench.sender.pause_streams(&[StreamId(1), StreamId(2)]);
        bench.sender.reset_streams(if all { &[] } else { &[StreamId(1)] });
        bench.send(on(1), 10).expect("taken");
        bench.send(on(2), 10).expect("taken");
        assert_eq!(numbers(&bench.output()).len(), if all { 2 } else { 1 });
    }
}

#[test]
fn a_reset_that_was_denied_changes_no_number() {
    let mut bench = Bench::new();
    bench.send(on(1), 10).expect("taken");
    bench.output();
    bench.sender.pause_streams(&[]);
    bench.send(on(1), 10).expect("taken");
    assert_eq!(bench.output().len(), 0);
    bench.sender.resume_streams(&[]);
    assert_eq!(numbers(&bench.output()), [(1, 1)]);
}

#[test]
fn a_started_message_is_finished_before_a_reset() {
    let mut bench = Bench::new();
    bench.send(on(1), 2000).expect("taken");
    bench.packet(PathId(0)).expect("the first part");
    bench.sender.pause_streams(&[StreamId(1)]);
    assert!(!bench.sender.are_streams_quiet(&[StreamId(1)]));
    assert!(!bench.sender.are_streams_quiet(&[]));
    assert!(bench.sender.are_streams_quiet(&[StreamId(2)]));
    bench.packet(PathId(0)).expect("the rest");
    assert!(bench.sender.are_streams_quiet(&[StreamId(1)]));
}

#[test]
fn a_restart_keeps_unsent_messages() {
    let mut bench = Bench::new();
    bench.send(SendInfo { context: 1, ..on(1) }, 10).expect("taken");
    bench.output();
    bench.send(SendInfo { context: 2, ..on(1) }, 3000).expect("taken");
    bench.packet(PathId(0)).expect("a part");
    bench.send(SendInfo { context: 3, ..on(1) }, 20).expect("taken");
    bench.send(SendInfo { context: 4, ..on(50) }, 30).expect("taken");
    let terms = SenderTerms { initial_tsn: Tsn(7), outbound: 10, ..terms() };
    bench.sender.restart(terms, &mut bench.paths);
    let failed: Vec<(u32, bool)> = bench
        .events()
        .iter()
        .filter_map(|event| match event {
            Event::SendFailed { context, sent, .. } => Some((*context, *sent)),
            _ => None,
        })
        .collect();
    assert_eq!(failed, [(1, true), (2, true), (4, false)]);
    assert_eq!(bench.sender.queued_bytes(), 20);
    assert_eq!(bench.sender.in_flight(), 0);
    let packets = bench.output();
    assert_eq!(packets[0].chunks[0].tsn, Tsn(7));
    assert_eq!(numbers(&packets), [(1, 0)]);
}

/// The peer reneges on a chunk and then restarts: the reneged chunk is no longer in flight.
#[test]
fn a_restart_forgets_reneged_data() {
    let mut bench = Bench::new();
    for context in 0..3 {
        bench.send(SendInfo { context, ..on(1) }, 1400).expect("taken");
        bench.packet(PathId(0)).expect("a packet");
    }
    let non_renegable = SackBuilder {
        cumulative_tsn: FIRST.previous(),
        a_rwnd: 1 << 20,
        nr_gap_blocks: &[GapBlock { start: 2, end: 2 }],
        is_nr: true,
        ..Default::default()
    };
    bench.handle(&non_renegable.build());
    bench.sack(1, &[]);
    assert_eq!(bench.sender.in_flight(), 2 * 1400);
    let terms = SenderTerms { initial_tsn: Tsn(7), ..terms() };
    bench.sender.restart(terms, &mut bench.paths);
    let failed = bench.events();
    let failed = failed.iter().filter(|event| matches!(event, Event::SendFailed { .. })).count();
    assert_eq!(failed, 2, "both were reneged or never reported");
    assert_eq!(bench.paths.get(PathId(0)).expect("it stays").outstanding(), 0);
    assert_eq!(bench.sender.queued_bytes(), 0);
}

#[test]
fn at_the_end_everything_unacknowledged_has_failed() {
    let mut bench = Bench::new();
    for context in 0..4 {
        bench.send(SendInfo { context, ..on(1) }, 1400).expect("taken");
    }
    bench.packet(PathId(0)).expect("a packet");
    bench.packet(PathId(0)).expect("a packet");
    bench.sack(1, &[]);
    bench.sender.fail_all(&mut bench.paths);
    let of = |context, sent| (1, context, sent);
    assert_eq!(failures(&bench.events()), [of(1, true), of(2, false), of(3, false)]);
    assert_eq!(bench.sender.queued_bytes(), 0);
    assert_eq!(bench.sender.next_timeout(&bench.paths), None);
    assert!(bench.sender.is_drained());
}

//= rfc6525 §5.1.4 C2
//# an SSN/TSN reset waits for outstanding data, and new data for its answer
#[test]
fn tsns_restart_only_when_nothing_is_outstanding() {
    let mut bench = Bench::new();
    bench.send(on(1), 10).expect("taken");
    bench.output();
    assert!(!bench.sender.reset_tsns(Tsn(1)));
    bench.sack(1, &[]);
    assert!(bench.sender.reset_tsns(Tsn(1)));
    bench.send(on(1), 10).expect("taken");
    let packets = bench.output();
    assert_eq!(packets[0].chunks[0].tsn, Tsn(1));
    assert_eq!(numbers(&packets), [(1, 0)]);
}

//= rfc6525 §5.1.5, §5.1.6, §5.2.7 H6
//# new streams wait for success and begin at 0
#[test]
fn streams_can_be_added_later() {
    let mut bench = Bench::new();
    assert_eq!(bench.send(on(100), 1), Err(Error::NoSuchStream));
    bench.sender.set_outbound_streams(101);
    assert_eq!(bench.send(on(100), 1), Ok(()));
}
