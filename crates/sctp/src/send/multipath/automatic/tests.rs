//! The automatic mapping of streams to paths.

use alloc::vec::Vec;
use core::time::Duration;

use super::super::tests::{bench_with, output, queue};
use super::estimates::PathView;
use crate::config::{AssociationConfig, MultipathConfig, SchedulerKind, StreamPreference};
use crate::identifier::{PathId, StreamId};
use crate::send::SenderTerms;
use crate::send::tests::{Bench, SentPacket, config, on, sack_of, terms};

const MILLISECOND: u64 = 1_000_000;

/// Two paths of the same rate; the second delivers `lag` milliseconds later.
fn bench(lag: u64, send_buffer: usize) -> Bench {
    with_preferences(lag, send_buffer, Vec::new())
}

/// The same with path preferences for the streams.
fn with_preferences(
    lag: u64,
    send_buffer: usize,
    preferences: Vec<(StreamId, StreamPreference)>,
) -> Bench {
    let multipath =
        Some(MultipathConfig { flight_cap: None, preferences, ..MultipathConfig::default() });
    let scheduler = SchedulerKind::RoundRobin.into();
    let bench = bench_with(AssociationConfig { multipath, send_buffer, scheduler, ..config() });
    with_estimates(bench, lag)
}

/// Sets the estimates of two paths; the second one is behind by `lag` ms.
fn with_estimates(mut bench: Bench, lag: u64) -> Bench {
    let concurrent = bench.sender.multipath.as_mut().expect("several paths");
    let view =
        |path, lag| PathView { path, lag, rate: 1_250_000, rtt: 20 * MILLISECOND + lag, fill: 0 };
    concurrent.automatic.views =
        alloc::vec![view(PathId(0), 0), view(PathId(1), lag * MILLISECOND)];
    concurrent.automatic.window = 1 << 20;
    bench
}

/// The streams sent on a path, in order.
fn streams_on(packets: &[SentPacket], path: u16) -> Vec<u16> {
    let on_path = packets.iter().filter(|packet| packet.path == PathId(path));
    on_path.flat_map(|packet| packet.chunks.iter().map(|chunk| chunk.stream.0)).collect()
}

#[test]
fn a_slower_path_keeps_to_one_stream() {
    let mut bench = bench(65, 1 << 20);
    queue(&mut bench, (0..40).map(|message| message % 4));
    let packets = output(&mut bench);
    let slow = streams_on(&packets, 1);
    assert!(!slow.is_empty(), "all paths are used");
    assert!(slow.iter().all(|stream| *stream == slow[0]), "{slow:?}");
    let quick = streams_on(&packets, 0);
    assert!(quick.len() >= 3, "{quick:?}");
}

#[test]
fn the_faster_path_takes_the_other_streams_in_turn() {
    let mut bench = bench(65, 1 << 20);
    queue(&mut bench, (0..40).map(|message| message % 4));
    let packets = output(&mut bench);
    let slow = streams_on(&packets, 1)[0];
    let quick = streams_on(&packets, 0);
    let free = [0, 1, 2, 3].into_iter().filter(|stream| *stream != slow).count();
    assert_eq!(free, 3);
    let mut first: Vec<u16> = quick[..3].to_vec();
    first.sort_unstable();
    first.dedup();
    assert_eq!(first.len(), 3, "{quick:?} beside {slow}");
}

#[test]
fn a_slower_path_is_not_used_if_it_would_block_everything() {
    // One stream: everything that arrives meanwhile on the faster path, 81,250 bytes, would wait.
    let mut small = bench(65, 64 << 10);
    queue(&mut small, [0; 20]);
    assert!(streams_on(&output(&mut small), 1).is_empty());
    let mut large = bench(65, 256 << 10);
    queue(&mut large, [0; 20]);
    assert!(!streams_on(&output(&mut large), 1).is_empty());
}

#[test]
fn a_slower_path_is_not_used_if_other_streams_have_too_little_for_the_faster_one() {
    // A keystroke beside bulk does not fill the faster path for as long as the slower one takes.
    let mut small = bench(65, 64 << 10);
    queue(&mut small, [0; 20].into_iter().chain([1]));
    let slow = streams_on(&output(&mut small), 1);
    assert!(!slow.contains(&0), "{slow:?}");
}

/// Bulk that a slower path carries is left to it while another stream fills the faster one, which
/// keystrokes do not.
#[test]
fn keystrokes_do_not_keep_a_faster_path_from_bulk() {
    let is_left = |others: usize| {
        let mut bench = bench(65, 1 << 20);
        queue(&mut bench, [0; 100]);
        bench.send(on(1), others).expect("taken");
        let slot = bench.sender.queue.streams().find(StreamId(0)).expect("in use");
        let fast = bench.paths.get(PathId(0)).expect("present");
        let automatic = &bench.sender.multipath.as_ref().expect("several paths").automatic;
        let forecast = automatic.forecast(fast, &bench.paths);
        bench.sender.is_better_left_to_other(slot, fast, &forecast)
    };
    assert!(is_left(10_000));
    assert!(!is_left(100));
}

#[test]
fn paths_of_equal_delay_are_both_used_with_any_buffer() {
    let mut bench = bench(0, 16 << 10);
    queue(&mut bench, [0; 8]);
    let packets = output(&mut bench);
    assert_eq!(streams_on(&packets, 0).len(), 4);
    assert_eq!(streams_on(&packets, 1).len(), 4);
}

#[test]
fn nothing_is_reserved_once_everything_has_arrived() {
    let mut bench = bench(65, 64 << 10);
    queue(&mut bench, [0; 2]);
    output(&mut bench);
    bench.handle_on(&sack_of(2, &[], 2), PathId(0));
    let slot = bench.sender.queue.streams().find(StreamId(0)).expect("in use");
    let concurrent = bench.sender.multipath.as_mut().expect("several paths");
    // An estimate that is long out of date.
    concurrent.automatic.streams[slot.index()].arrival = u64::MAX / 2;
    queue(&mut bench, [0; 2]);
    assert!(!output(&mut bench).is_empty());
}

#[test]
fn a_small_buffer_is_reserved_for_paths_with_short_rtts() {
    let slow_packets = |send_buffer| {
        let mut bench = bench(65, send_buffer);
        let concurrent = bench.sender.multipath.as_mut().expect("several paths");
        concurrent.automatic.views[0].fill = 25_000;
        queue(&mut bench, (0..16).map(|message| message % 2));
        streams_on(&output(&mut bench), 1).len()
    };
    assert_eq!(slow_packets(26_000), 0, "the quicker path fills it");
    assert!(slow_packets(64 << 10) > 0);
}

#[test]
fn data_waiting_at_the_receiver_reduces_its_window() {
    let slow_packets = |waits: usize| {
        let mut bench = bench(65, 1 << 20);
        let concurrent = bench.sender.multipath.as_mut().expect("several paths");
        let automatic = &mut concurrent.automatic;
        automatic.window = 64 << 10;
        // Every byte waits for a period, so the cost is that period per byte that waits on average.
        automatic.set_receiver_wait(waits);
        queue(&mut bench, (0..16).map(|message| message % 2));
        streams_on(&output(&mut bench), 1).len()
    };
    assert_eq!(slow_packets(64 << 10), 0);
    assert!(slow_packets(0) > 0);
}

#[test]
fn streams_of_higher_priority_are_sent_first_on_the_faster_path() {
    let preference = |priority| StreamPreference { priority, deadline: None };
    let preferences = (0..3).map(|stream| (StreamId(stream), preference(1)));
    let mut bench = with_preferences(65, 1 << 20, preferences.collect());
    queue(&mut bench, (0..40).map(|message| message % 4));
    let packets = output(&mut bench);
    let (quick, slow) = (streams_on(&packets, 0), streams_on(&packets, 1));
    assert!(quick.iter().take(3).all(|stream| *stream == 3), "{quick:?}");
    assert!(!slow.is_empty() && !slow.contains(&3), "{slow:?}");
}

#[test]
fn a_stream_with_a_deadline_leaves_slow_paths_to_others() {
    let preference = |milliseconds| StreamPreference {
        priority: 0,
        deadline: Some(Duration::from_millis(milliseconds)),
    };
    for (deadline, takes) in [(30, false), (200, true)] {
        let mut bench =
            with_preferences(65, 1 << 20, alloc::vec![(StreamId(0), preference(deadline))]);
        queue(&mut bench, [0; 8]);
        let slow = streams_on(&output(&mut bench), 1);
        assert_eq!(!slow.is_empty(), takes, "{deadline} ms: {slow:?}");
    }
}

/// Interleaved, the rest of a message need not follow at once: the slow path does not get it.
#[test]
fn the_rest_of_a_message_with_a_deadline_waits_for_the_fast_path() {
    let deadline = Some(Duration::from_millis(30));
    let preferences = alloc::vec![(StreamId(0), StreamPreference { priority: 0, deadline })];
    let multipath =
        Some(MultipathConfig { flight_cap: None, preferences, ..MultipathConfig::default() });
    let config = AssociationConfig { multipath, ..config() };
    let mut bench = Bench::with(config, SenderTerms { interleaving: true, ..terms() });
    bench.add_path();
    let mut bench = with_estimates(bench, 65);
    bench.send(on(0), 12_000).expect("taken");
    let packets = output(&mut bench);
    assert_eq!(streams_on(&packets, 1), []);
    assert!(streams_on(&packets, 0).len() > 2);
}

#[test]
fn other_streams_must_fill_all_paths_faster_than_a_streams_own() {
    // Two fast paths of 25,000 bytes each, and a slow one.
    let mut bench = bench(0, 1 << 20);
    let concurrent = bench.sender.multipath.as_mut().expect("several paths");
    let automatic = &mut concurrent.automatic;
    automatic.now = MILLISECOND;
    let slow = PathView { path: PathId(2), lag: 60 * MILLISECOND, ..automatic.views[0] };
    automatic.views.push(slow);
    let path_entry = bench.paths.get(PathId(0)).expect("present");
    let slot = crate::scheduler::StreamSlot(0);
    assert_eq!(automatic.fills_before(slot, path_entry), 50_000);
}
