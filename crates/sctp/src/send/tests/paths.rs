//! Several paths: the path for new data and for retransmissions, and paths that fail or disappear.

use super::*;

#[test]
fn new_data_uses_the_primary_or_the_requested_path() {
    let mut bench = Bench::new();
    let second = bench.add_path();
    bench.send(on(0), 100).expect("taken");
    bench.send(SendInfo { path: Some(second), ..on(0) }, 100).expect("taken");
    bench.send(on(0), 100).expect("taken");
    let packets = bench.output();
    let paths: Vec<(u16, Vec<u32>)> =
        packets.iter().map(|packet| (packet.path.0, packet.tsns())).collect();
    assert_eq!(paths, [(0, alloc::vec![0]), (1, alloc::vec![1])]);
    let packets = bench.output();
    assert_eq!(packets[0].tsns(), [2], "the stream's order is fixed");
    bench.sack(3, &[]);
    assert!(bench.sender.is_drained());
}

//= rfc9260 §6.4.1
//# retransmissions SHOULD go to another active address
#[test]
fn after_t3_another_path_is_used() {
    let mut bench = Bench::new();
    let second = bench.add_path();
    bench.send(on(0), 1400).expect("taken");
    bench.send(on(0), 1400).expect("taken");
    bench.output();
    bench.timeout();
    let packets = bench.output();
    assert!(packets.iter().all(|packet| packet.path == second));
    assert_eq!(packets.iter().flat_map(SentPacket::tsns).collect::<Vec<_>>(), [0, 1]);
    bench.pass(milliseconds(50));
    bench.sack(2, &[]);
    assert!(bench.sender.is_drained());
    assert_eq!(bench.sender.next_timeout(&bench.paths), None);
}

//= rfc7829 §3.2, 9 and 10
//# acknowledgements of data sent to several addresses confirm none of them
/// RFC 7829 §3.2, 9 and 10.
#[test]
fn data_sent_on_two_paths_confirms_neither() {
    let mut bench = Bench::new();
    let second = bench.add_path();
    bench.send(on(0), 1400).expect("taken");
    bench.output();
    bench.timeout();
    assert!(bench.output().iter().all(|packet| packet.path == second));
    for path in [PathId(0), second] {
        bench.paths.on_error(path, &config());
    }
    let errors =
        |bench: &Bench| [PathId(0), second].map(|id| bench.paths.get(id).expect("a path").errors());
    let before = errors(&bench);
    bench.sack(1, &[]);
    assert_eq!((errors(&bench), bench.paths.errors()), (before, 0));
    let info = SendInfo { path: Some(second), ..on(0) };
    bench.send(info, 100).expect("taken");
    let on: Vec<PathId> = bench.output().iter().map(|packet| packet.path).collect();
    bench.sack(2, &[]);
    let after = errors(&bench);
    assert_eq!(after[usize::from(on[0].0)], 0, "sent on one path alone: {after:?}");
}

#[test]
fn missing_reports_only_count_on_their_path() {
    let mut bench = Bench::new();
    let second = bench.add_path();
    for path in [None, Some(second), Some(second), Some(second), Some(second)] {
        bench.send(SendInfo { path, ..on(0) }, 1400).expect("taken");
    }
    while !bench.output().is_empty() {}
    for last in 1..=3 {
        bench.sack(0, &[(1, last)]);
    }
    assert!(!bench.has_data(PathId(0)), "the first path is only slower");
    let path = bench.paths.get(PathId(0)).expect("the first path");
    assert_eq!(path.congestion.window(), 4404);
}

#[test]
fn data_in_flight_on_a_removed_path_moves_to_another() {
    let mut bench = Bench::new();
    let second = bench.add_path();
    for _ in 0..3 {
        bench.send(SendInfo { path: Some(second), ..on(0) }, 1400).expect("taken");
    }
    bench.output();
    bench.sack(0, &[(1, 1)]);
    bench.paths.remove(second);
    bench.sender.paths_changed(bench.now, &mut bench.paths);
    bench.check();
    let packets = bench.output();
    assert_eq!(packets.iter().flat_map(SentPacket::tsns).collect::<Vec<_>>(), [0, 2]);
    assert!(packets.iter().all(|packet| packet.path == PathId(0)));
    bench.sack(3, &[]);
    assert!(bench.sender.is_drained());
}

#[test]
fn retransmissions_on_a_failed_path_move_to_another() {
    let mut bench = Bench::new();
    let second = bench.add_path();
    bench.send(on(0), 1400).expect("taken");
    bench.output();
    bench.timeout();
    assert!(bench.has_data(second));
    for _ in 0..10 {
        bench.paths.on_error(second, &bench.config);
    }
    bench.sender.paths_changed(bench.now, &mut bench.paths);
    bench.check();
    assert!(bench.has_data(PathId(0)));
    assert!(!bench.has_data(second));
}

#[test]
fn any_number_of_paths_can_be_added_and_removed() {
    let mut bench = Bench::new();
    for round in 1..1000_u16 {
        let id = bench.add_path();
        assert_eq!(id, PathId(round));
        bench.send(SendInfo { path: Some(id), ..on(0) }, 100).expect("taken");
        let sent = bench.output();
        assert_eq!(sent[0].path, id);
        bench.sack(u32::from(round), &[]);
        bench.paths.remove(id);
        bench.sender.paths_changed(bench.now, &mut bench.paths);
    }
    assert!(bench.sender.outstanding.flights().len() <= 2, "slots are reused");
}

#[test]
fn a_mark_reduces_the_window_once() {
    let mut bench = super::sacks::bench_with(8);
    let before = bench.paths.get(PathId(0)).expect("the first path").congestion.window();
    let mut echo = |tsn: Tsn| bench.sender.handle_ecne(bench.now, tsn, PathId(0), &mut bench.paths);
    assert_eq!(echo(FIRST.plus(2)), Some(FIRST.plus(2)));
    assert_eq!(echo(FIRST.plus(3)), Some(FIRST.plus(3)));
    assert_eq!(echo(FIRST.plus(8)), None, "never sent");
    assert_eq!(bench.sender.path_of(FIRST.plus(3)), Some(PathId(0)));
    let after = bench.paths.get(PathId(0)).expect("the first path").congestion.window();
    assert!(after <= before.max(6000), "{after} after {before}");
}

/// One round trip of 20 ms, then silence: when and how data is sent on the other path.
#[test]
fn data_leaves_a_silent_path_before_t3_if_configured() {
    for wanted in [true, false] {
        let config = AssociationConfig { suspect_silent_paths: wanted, ..config() };
        let mut bench = Bench::with(config, terms());
        let second = bench.add_path();
        bench.send(on(0), 1400).expect("taken");
        bench.output();
        bench.pass(milliseconds(20));
        bench.sack(1, &[]);
        let window = bench.paths.get(PathId(0)).expect("the first path").congestion.window();
        bench.send(on(0), 1400).expect("taken");
        bench.output();
        let silent_since = bench.now;
        let outcome = loop {
            let outcome = bench.timeout();
            if bench.output().iter().any(|packet| packet.path == second) {
                break outcome;
            }
            assert!(bench.now < silent_since + milliseconds(10_000), "it was never sent");
        };
        let waited = bench.now - silent_since;
        let path = bench.paths.get(PathId(0)).expect("the first path");
        // RTO.Min is a second.
        assert_eq!(waited < milliseconds(1000), wanted, "{waited:?}");
        assert_eq!(outcome.expired.is_empty(), wanted);
        assert_eq!(path.congestion.window() == window, wanted, "silence is not a loss");
        if wanted {
            assert_eq!(path.state(), crate::path::PathState::PotentiallyFailed);
        }
        bench.pass(milliseconds(20));
        bench.sack(2, &[]);
        assert!(bench.sender.is_drained());
    }
}

/// What has arrived over the first path, late, says nothing about the path that it was moved to.
#[test]
fn late_arrivals_do_not_count_for_the_path_that_data_was_moved_to() {
    let mut bench = Bench::with(config(), terms());
    let second = bench.add_path();
    bench.send(on(0), 1400).expect("taken");
    bench.output();
    bench.pass(milliseconds(20));
    bench.sack(1, &[]);
    bench.send(on(0), 1400).expect("taken");
    bench.output();
    let state = |bench: &Bench| bench.paths.get(PathId(0)).expect("the first path").state();
    while state(&bench) == crate::path::PathState::Active {
        bench.timeout();
    }
    let flight = bench.sender.outstanding.flight_on(second).expect("it was moved");
    assert_eq!(flight.pending_retransmissions(), 1);
    bench.sack(2, &[]);
    assert!(bench.sender.is_drained());
    assert_eq!(bench.paths.get(second).expect("the second path").delivered(), 0);
}
