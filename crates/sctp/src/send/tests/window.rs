//! The peer's receive window, and zero window probes.

use super::*;

fn with_window(peer_window: u32) -> Bench {
    Bench::with(config(), SenderTerms { peer_window, ..terms() })
}

//= rfc8260 §2.2.2
//# I-DATA stays within the receiver's window
#[test]
fn data_stays_within_the_peer_window() {
    let mut bench = with_window(3000);
    bench.send(on(0), 10_000).expect("taken");
    assert_eq!(bench.output().len(), 2);
    assert_eq!(bench.sender.peer_window(), 3000 - 2 * 1452);
    bench.handle(&sack(2, &[], 1452));
    assert_eq!(bench.output().len(), 1);
}

#[test]
fn gap_acked_data_is_already_counted_in_the_window() {
    let mut bench = with_window(1 << 20);
    for _ in 0..3 {
        bench.send(on(0), 1000).expect("taken");
        bench.packet(PathId(0)).expect("a packet");
    }
    bench.handle(&sack(0, &[(1, 2)], 5000));
    assert_eq!(bench.sender.peer_window(), 4000);
}

//= rfc9260 §6.1 A
//# a closed window is probed with one chunk per RTO, doubled
#[test]
fn a_closed_window_is_probed_with_one_chunk() {
    let mut bench = with_window(0);
    bench.send(on(0), 3000).expect("taken");
    assert_eq!(bench.output().len(), 1);
    assert!(!bench.has_data(PathId(0)));
    bench.handle(&sack(0, &[], 0));
    for _ in 0..12 {
        let outcome = bench.timeout();
        assert!(!outcome.expired[0].is_error, "the peer is alive");
        assert_eq!(bench.output().len(), 1);
        bench.handle(&sack(0, &[], 0));
    }
    assert_eq!(bench.sender.next_tsn(), FIRST.plus(1));
}

#[test]
fn an_unanswered_window_probe_is_an_error() {
    let mut bench = with_window(0);
    bench.send(on(0), 3000).expect("taken");
    bench.output();
    assert!(bench.timeout().expired[0].is_error);
}

#[test]
fn a_probe_is_retransmitted_as_soon_as_the_window_opens() {
    let mut bench = with_window(0);
    bench.send(on(0), 3000).expect("taken");
    bench.output();
    bench.pass(milliseconds(10));
    bench.handle(&sack(0, &[], 0));
    assert!(bench.output().is_empty());
    bench.handle(&sack(0, &[], 100_000));
    let packets = bench.output();
    assert_eq!(packets[0].tsns(), [0]);
    assert_eq!(packets.len(), 3, "the rest follows");
}

#[test]
fn an_acknowledged_probe_is_no_longer_a_probe() {
    let mut bench = with_window(0);
    bench.send(on(0), 3000).expect("taken");
    bench.output();
    bench.handle(&sack(1, &[], 100_000));
    bench.output();
    assert!(bench.timeout().expired[0].is_error);
}
