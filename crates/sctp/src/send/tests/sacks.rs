//! SACKs: valid, late, duplicate, contradictory and forged ones.

use super::*;

/// A sender with `count` packets of one message each in flight.
pub(super) fn bench_with(count: usize) -> Bench {
    let mut bench = Bench::new();
    for _ in 0..count {
        bench.send(on(0), 1400).expect("taken");
    }
    for _ in 0..count {
        bench.packet(PathId(0)).expect("a packet");
    }
    bench.pass(milliseconds(100));
    bench
}

#[test]
fn acknowledged_data_leaves_the_buffer() {
    let mut bench = bench_with(4);
    let outcome = bench.sack(3, &[]);
    assert_eq!(outcome, SackOutcome { accepted: true, advanced: true, acknowledged: 4200 });
    assert_eq!(bench.sender.queued_bytes(), 1400);
    assert_eq!(bench.sender.in_flight(), 1400);
    assert_eq!(
        bench.paths.get(PathId(0)).and_then(|path| path.rto.smoothed()),
        Some(milliseconds(100))
    );
}

#[test]
fn gap_blocks_reduce_the_flight_size_but_free_nothing() {
    let mut bench = bench_with(5);
    let outcome = bench.sack(0, &[(1, 2), (4, 4)]);
    assert_eq!(outcome, SackOutcome { accepted: true, advanced: false, acknowledged: 4200 });
    assert_eq!(bench.sender.in_flight(), 2800);
    assert_eq!(bench.sender.queued_bytes(), 7000);
    let again = bench.sack(0, &[(1, 2), (4, 4)]);
    assert_eq!(again.acknowledged, 0, "nothing new");
    assert_eq!(bench.sack(5, &[]).acknowledged, 2800);
    assert!(bench.sender.is_drained());
}

//= rfc9260 §6.2.1 D i
//# an overtaken SACK is dropped
#[test]
fn an_outdated_sack_is_ignored() {
    let mut bench = bench_with(4);
    bench.sack(3, &[]);
    assert!(!bench.sack(1, &[]).accepted);
    assert_eq!(bench.counters.bad_sacks, 0);
}

#[test]
fn invalid_sacks_are_counted_and_change_nothing() {
    let mut bench = bench_with(5);
    for (cumulative, beyond) in [
        (6, &[][..]),
        (0, &[(1, 5)]),
        (0, &[(3, 4), (1, 1)]),
        (0, &[(2, 1)]),
        (0, &[(1, 2), (2, 3)]),
        (2, &[(2, 3)]),
    ] {
        assert!(!bench.sack(cumulative, beyond).accepted, "{cumulative} {beyond:?}");
    }
    assert_eq!(bench.counters.bad_sacks, 6);
    assert_eq!(bench.sender.in_flight(), 7000);
}

//= rfc9260 §6.2.1 D iii
//# reneged data counts as one miss; believed when it is missing twice, or is the next TSN
#[test]
fn reneging_needs_two_sacks() {
    let mut bench = bench_with(7);
    bench.sack(0, &[(1, 3)]);
    bench.sack(0, &[(1, 1)]);
    assert_eq!(bench.sender.in_flight(), 4 * 1400);
    assert!(!bench.has_data(PathId(0)), "another SACK may have overtaken it");
    bench.sack(0, &[(1, 3)]);
    bench.sack(0, &[(1, 1)]);
    assert!(!bench.has_data(PathId(0)));
    bench.sack(0, &[(1, 1)]);
    // It is in flight again, with one missing report; two more make three.
    assert_eq!(bench.sender.in_flight(), 6 * 1400);
    bench.sack(0, &[(1, 1), (4, 4)]);
    assert!(!bench.has_data(PathId(0)));
    bench.sack(0, &[(1, 1), (4, 5)]);
    for tsn in [0, 2, 3] {
        assert_eq!(bench.packet(PathId(0)).expect("sent again").tsns(), [tsn]);
    }
}

#[test]
fn reneging_on_the_next_chunk_needs_one_sack() {
    let mut bench = bench_with(4);
    bench.sack(0, &[(1, 3)]);
    bench.sack(1, &[(3, 3)]);
    assert!(!bench.has_data(PathId(0)), "one missing report is not a loss");
    assert_eq!(bench.sender.in_flight(), 2 * 1400);
    bench.timeout();
    assert_eq!(bench.packet(PathId(0)).expect("sent again").tsns(), [1]);
    assert_eq!(bench.packet(PathId(0)).expect("sent again").tsns(), [2]);
    assert!(bench.packet(PathId(0)).is_none());
    assert!(bench.sack(4, &[]).advanced);
    assert!(bench.sender.is_drained());
}

//= rfc9260 §6.2.1 D iii
//# T3 starts for reneged data
/// If no other data was outstanding, T3-rtx is started (RFC 9260 §6.2.1 D iii).
#[test]
fn reneged_chunks_are_covered_by_t3() {
    for detection in [LossDetection::Classic, LossDetection::Rack] {
        let mut bench = bench_with(3);
        bench.sender.rules.detection = detection;
        bench.sack(0, &[(1, 2)]);
        bench.timeout();
        bench.packet(PathId(0)).expect("the first chunk again");
        bench.sack(1, &[(2, 2)]);
        assert_eq!(bench.sender.in_flight(), 1400);
        let t3 = bench.paths.get(PathId(0)).and_then(|path| path.t3);
        assert!(t3.is_some_and(|t3| t3 > bench.now));
        bench.timeout();
        assert_eq!(bench.packet(PathId(0)).expect("sent again").tsns(), [1]);
        bench.sack(3, &[]);
        assert!(bench.sender.is_drained());
    }
}

//= hostile sctp-lies
//# gaps revoked again and again
//= bound: twice the outstanding data
/// A peer that alternately reneges and acknowledges does not make anything grow.
#[test]
fn repeated_reneging_leaves_nothing_behind() {
    let mut bench = bench_with(9);
    for _ in 0..1000 {
        bench.sack(0, &[(1, 1), (3, 4), (6, 7)]);
        bench.sack(0, &[(2, 2)]);
        bench.sack(0, &[(2, 2)]);
    }
    assert!(bench.sender.outstanding.flight(0).runs().count() < 100);
}

#[test]
fn nr_gap_blocks_free_the_buffer() {
    let mut bench = bench_with(5);
    let block = |start, end| GapBlock { start, end };
    let sack = SackBuilder {
        cumulative_tsn: FIRST.previous(),
        a_rwnd: 1 << 20,
        gap_blocks: &[block(5, 5)],
        nr_gap_blocks: &[block(2, 3)],
        is_nr: true,
        ..Default::default()
    };
    bench.handle(&sack.build());
    assert_eq!(bench.sender.in_flight(), 2800);
    assert_eq!(bench.sender.queued_bytes(), 4200);
    bench.handle(&sack.build());
    assert_eq!(bench.sender.queued_bytes(), 4200, "freed once");
    bench.sack(5, &[]);
    assert_eq!(bench.sender.queued_bytes(), 0);
}

//= rfc9260 §6.3.1 C4, C5
//# one sample per round trip, none from retransmissions
#[test]
fn rtt_samples_come_from_chunks_sent_once() {
    let mut bench = bench_with(1);
    bench.pass(milliseconds(5000));
    bench.timeout();
    bench.packet(PathId(0)).expect("sent again");
    bench.pass(milliseconds(10));
    bench.sack(1, &[]);
    assert_eq!(bench.paths.get(PathId(0)).and_then(|path| path.rto.smoothed()), None);
}

#[test]
fn a_window_with_many_gaps_is_processed() {
    let mut bench = Bench::with(
        AssociationConfig { send_buffer: 10 << 20, ..config() },
        SenderTerms { peer_window: 10 << 20, ..terms() },
    );
    for _ in 0..2000 {
        bench.send(on(0), 1400).expect("taken");
        bench.packet(PathId(0)).expect("a packet");
    }
    let beyond: Vec<(u32, u32)> = (0..350).map(|n| (2 * n + 1, 2 * n + 1)).collect();
    for count in 1..=350 {
        bench.sack(0, &beyond[..count]);
    }
    assert_eq!(bench.sender.in_flight(), bench.sender.queued_bytes() - 350 * 1400 - lost(&bench));
    bench.sack(2000, &[]);
    assert!(bench.sender.is_drained());
}

fn lost(bench: &Bench) -> usize {
    bench
        .sender
        .outstanding
        .flights()
        .iter()
        .map(|flight| flight.pending_retransmissions() * 1400)
        .sum()
}
