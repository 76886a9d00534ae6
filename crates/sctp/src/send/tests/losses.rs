//! Losses detected by missing reports, by time and by T3-rtx, and spurious ones.

use super::sacks::bench_with;
use super::*;

fn by_time(count: usize) -> Bench {
    let config = AssociationConfig { loss_detection: LossDetection::Rack, ..config() };
    let mut bench = Bench::with(config, terms());
    // A round trip of 100 ms is known.
    bench.send(on(0), 100).expect("taken");
    bench.packet(PathId(0)).expect("a packet");
    bench.pass(milliseconds(100));
    bench.sack(1, &[]);
    for _ in 0..count {
        bench.send(on(0), 1400).expect("taken");
    }
    for _ in 0..count {
        bench.packet(PathId(0)).expect("a packet");
        bench.pass(milliseconds(1));
    }
    bench.pass(milliseconds(100 - count as u64));
    bench
}

fn window(bench: &Bench) -> usize {
    bench.paths.get(PathId(0)).expect("the first path").congestion.window()
}

fn threshold(bench: &Bench) -> usize {
    bench.paths.get(PathId(0)).expect("the first path").congestion.slow_start_threshold()
}

fn t3(bench: &Bench) -> Option<Duration> {
    bench.paths.get(PathId(0)).expect("the first path").t3
}

//= rfc9260 §7.2.4
//# fast retransmission on the third miss
#[test]
fn three_missing_reports_mark_a_loss() {
    let mut bench = bench_with(8);
    bench.sack(1, &[(2, 2)]);
    bench.sack(1, &[(2, 3)]);
    assert!(!bench.has_data(PathId(0)));
    bench.sack(1, &[(2, 4)]);
    assert_eq!(bench.packet(PathId(0)).expect("sent again").tsns(), [1]);
    assert_eq!(bench.counters.retransmissions, 1);
}

#[test]
fn a_duplicate_sack_is_not_another_missing_report() {
    let mut bench = bench_with(4);
    for _ in 0..5 {
        bench.sack(1, &[(2, 2)]);
    }
    assert!(!bench.has_data(PathId(0)));
}

//= rfc9260 §7.2.4
//# a chunk is fast retransmitted once
#[test]
fn a_chunk_is_fast_retransmitted_once() {
    let mut bench = bench_with(12);
    for last in 2..5 {
        bench.sack(1, &[(2, last)]);
    }
    assert_eq!(bench.packet(PathId(0)).expect("sent again").tsns(), [1]);
    for last in 5..10 {
        bench.sack(1, &[(2, last)]);
    }
    assert!(!bench.has_data(PathId(0)));
}

//= rfc9260 §7.2.4
//# the window is cut once per recovery
#[test]
fn the_window_is_reduced_once_per_recovery() {
    let mut bench = bench_with(20);
    for last in 10..13 {
        bench.sack(0, &[(3, 3), (5, 8), (10, last)]);
    }
    let cut = window(&bench);
    let waiting: usize = bench
        .sender
        .outstanding
        .flights()
        .iter()
        .map(|flight| flight.pending_retransmissions())
        .sum();
    assert_eq!(waiting, 5);
    while bench.packet(PathId(0)).is_some() {}
    for last in 15..18 {
        bench.sack(9, &[(10, 12), (14, last)]);
    }
    assert_eq!(window(&bench), cut, "13 was lost in the same window");
    bench.sack(20, &[]);
    assert!(bench.sender.is_drained());
}

#[test]
fn the_first_fast_retransmit_ignores_the_window() {
    let mut bench = bench_with(12);
    for last in 2..5 {
        bench.sack(0, &[(1, last)]);
    }
    let path = bench.paths.get(PathId(0)).expect("the first path");
    assert!(path.outstanding() >= path.congestion.window(), "the window is closed");
    let packets = bench.output();
    assert_eq!(packets.len(), 1);
    assert_eq!(packets[0].tsns(), [0]);
}

#[test]
fn t3_retransmits_everything_and_doubles() {
    let mut bench = bench_with(3);
    let first = t3(&bench).expect("T3 runs");
    let outcome = bench.timeout();
    assert_eq!(bench.now, first);
    assert_eq!(outcome.expired.len(), 1);
    assert!(outcome.expired[0].is_error);
    assert_eq!(bench.sender.in_flight(), 0);
    assert_eq!(t3(&bench), None, "nothing is in flight");
    assert_eq!(window(&bench), 1500);
    let packets = bench.output();
    assert_eq!(packets.len(), 1, "the others wait for its acknowledgement");
    assert_eq!(t3(&bench), Some(bench.now + milliseconds(2000)));
    bench.timeout();
    bench.output();
    assert_eq!(t3(&bench), Some(bench.now + milliseconds(4000)));
    bench.sack(3, &[]);
    assert_eq!(t3(&bench), None);
}

//= rfc9260 §6.3.2
//# T3 follows the oldest outstanding chunk
#[test]
fn t3_restarts_when_the_oldest_chunk_is_acknowledged() {
    let mut bench = bench_with(3);
    let first = t3(&bench).expect("T3 runs");
    bench.sack(0, &[(1, 1)]);
    assert_eq!(t3(&bench), Some(first), "not the oldest");
    bench.sack(1, &[]);
    assert!(t3(&bench) > Some(first));
    bench.sack(3, &[]);
    assert_eq!(t3(&bench), None);
}

#[test]
fn rack_detects_a_loss_without_three_reports() {
    let mut bench = by_time(4);
    bench.sack(2, &[(3, 3)]);
    let timer = bench.sender.outstanding.flight(0).rack.timer.expect("reordering is given time");
    assert!(timer > bench.now && timer < bench.now + milliseconds(50), "{timer:?}");
    assert!(!bench.has_data(PathId(0)));
    bench.timeout();
    assert_eq!(bench.packet(PathId(0)).expect("sent again").tsns(), [2]);
}

#[test]
fn rack_detects_a_lost_retransmission() {
    let mut bench = by_time(6);
    bench.sack(1, &[(2, 3)]);
    bench.timeout();
    assert_eq!(bench.packet(PathId(0)).expect("sent again").tsns(), [1]);
    for _ in 0..3 {
        bench.send(on(0), 1400).expect("taken");
        bench.pass(milliseconds(1));
        bench.packet(PathId(0)).expect("new data");
    }
    bench.pass(milliseconds(110));
    bench.sack(1, &[(2, 9)]);
    assert_eq!(bench.packet(PathId(0)).expect("sent again").tsns(), [1]);
    assert_eq!(bench.counters.retransmissions, 2);
}

//= rfc9260 RFC 8985 §7
//# a probe when nothing was acknowledged for two round trips: `LossDetection::Rack`
#[test]
fn a_lost_tail_is_probed_long_before_t3() {
    let mut bench = by_time(3);
    bench.sack(2, &[]);
    let start = bench.now;
    let probe = bench.sender.next_timeout(&bench.paths).expect("a timer runs");
    assert!(probe <= start + milliseconds(250), "twice the round trip: {:?}", probe - start);
    let outcome = bench.timeout();
    assert_eq!(outcome, TimeoutOutcome::default());
    let packets = bench.output();
    assert_eq!(packets.len(), 1);
    assert_eq!(packets[0].tsns(), [3], "the last chunk is retransmitted");
    assert!(t3(&bench).is_some(), "T3 stays the last resort");
    bench.pass(milliseconds(100));
    bench.sack(2, &[(3, 3)]);
    let again: Vec<u32> = bench.output().iter().flat_map(SentPacket::tsns).collect();
    assert_eq!(again, [2], "the probe revealed the losses");
}

#[test]
fn a_probe_carries_new_data_if_there_is_some() {
    let mut bench = by_time(3);
    bench.sack(2, &[]);
    bench.send(on(0), 1400).expect("taken");
    bench.timeout();
    let packets = bench.output();
    assert_eq!(packets[0].tsns(), [4]);
}

#[test]
fn a_spurious_loss_restores_the_window() {
    let mut bench = by_time(6);
    bench.sack(1, &[(3, 6)]);
    bench.pass(milliseconds(60));
    bench.timeout();
    assert_eq!(threshold(&bench), 6000, "half the window, at least four packets");
    let outcome = bench.sack(7, &[]);
    assert_eq!(outcome.acknowledged, 0, "late, not new to the path");
    assert_eq!(threshold(&bench), usize::MAX);
    assert!(bench.packet(PathId(0)).is_none());
    assert!(bench.sender.is_drained());
}

#[test]
fn a_duplicate_reveals_a_spurious_retransmission() {
    let mut bench = by_time(6);
    bench.sack(1, &[(2, 6)]);
    bench.timeout();
    bench.packet(PathId(0)).expect("sent again");
    assert_eq!(threshold(&bench), 6000);
    let duplicates = [FIRST.plus(1)];
    let sack = SackBuilder {
        cumulative_tsn: FIRST.plus(6),
        a_rwnd: 1 << 20,
        duplicates: &duplicates,
        ..Default::default()
    };
    bench.sender.handle_sack(
        bench.now,
        &sack.build(),
        PathId(0),
        &mut bench.paths,
        &mut bench.counters,
    );
    assert_eq!(threshold(&bench), usize::MAX);
}

/// All but the last of three chunks arrived, and the probe retransmitted that one.
fn probed() -> Bench {
    let mut bench = by_time(3);
    bench.sack(3, &[]);
    bench.timeout();
    let packets = bench.output();
    assert_eq!(packets.iter().map(SentPacket::tsns).collect::<Vec<_>>(), [[3]]);
    assert_eq!(threshold(&bench), usize::MAX);
    bench
}

//= rfc9260 §6.3, §7.2.4
//# retransmission on T3 or three missing reports; by default also by time and a tail-loss probe
//# (RFC 8985)
//= otherwise: `LossDetection::Classic` does as this RFC says
#[test]
fn a_loss_repaired_by_the_probe_reduces_the_window() {
    let mut bench = probed();
    bench.pass(milliseconds(100));
    bench.sack(4, &[]);
    assert_eq!(threshold(&bench), 6000);
    // The next loss starts a new recovery.
    assert!(bench.sender.is_drained());
    bench.send(on(0), 1400).expect("taken");
    bench.packet(PathId(0)).expect("a packet");
    bench.pass(milliseconds(100));
    bench.sack(5, &[]);
    assert_eq!(threshold(&bench), 6000);
}

#[test]
fn an_unnecessary_probe_keeps_the_window() {
    // The original transmission was only late.
    let mut late = probed();
    late.pass(milliseconds(20));
    late.sack(4, &[]);
    assert_eq!(threshold(&late), usize::MAX);
    // Its SACK was lost: the chunk arrived twice.
    let mut twice = probed();
    twice.pass(milliseconds(100));
    let duplicates = [FIRST.plus(3)];
    let sack = SackBuilder {
        cumulative_tsn: FIRST.plus(3),
        a_rwnd: 1 << 20,
        duplicates: &duplicates,
        ..Default::default()
    };
    twice.handle_on(&sack.build(), PathId(0));
    assert!(twice.sender.is_drained());
    assert_eq!(threshold(&twice), usize::MAX);
}
