//! The sender with several paths.

use alloc::vec::Vec;
use core::time::Duration;

use super::{ConcurrentTransfer, path_instead_of};
use crate::config::{
    AssociationConfig, BufferSplitting, BurstLimit, ChunkRescheduling, CucVersion, LossDetection,
    MultipathConfig, PathOrder, RttSampling, RtxPolicy, SchedulerKind, StreamMapping,
};
use crate::congestion::SiblingPaths;
use crate::identifier::{PathId, StreamId};
use crate::message::SendInfo;
use crate::path::{AssociationPaths, Path, PathProgress};
use crate::send::tests::{Bench, SentPacket, config, milliseconds, on, sack_of, terms};

const A: PathId = PathId(0);
const B: PathId = PathId(1);

/// The minimal multipath configuration.
fn plain() -> MultipathConfig {
    MultipathConfig {
        mapping: StreamMapping::RoundRobin,
        path_order: PathOrder::OldestTransmission,
        flight_cap: None,
        delayed_ack: false,
        ..MultipathConfig::default()
    }
}

/// A sender with two paths.
fn bench(multipath: MultipathConfig) -> Bench {
    bench_with(AssociationConfig { multipath: Some(multipath), ..config() })
}

pub(super) fn bench_with(config: AssociationConfig) -> Bench {
    let mut bench = Bench::with(config, terms());
    assert_eq!(bench.add_path(), B);
    bench
}

/// Sends as much as allowed, as an association does.
pub(super) fn output(bench: &mut Bench) -> Vec<SentPacket> {
    let mut packets = Vec::new();
    while let Some(path) = bench.sender.next_path(bench.now, &mut bench.paths).path {
        packets.push(bench.packet(path).expect("the path has something to send"));
    }
    bench.check();
    packets
}

fn taken(packets: &[SentPacket]) -> Vec<(u16, Vec<u32>)> {
    packets.iter().map(|packet| (packet.path.0, packet.tsns())).collect()
}

pub(super) fn queue(bench: &mut Bench, streams: impl IntoIterator<Item = u16>) {
    for stream in streams {
        bench.send(on(stream), 1452).expect("taken");
    }
}

fn window(bench: &Bench, path: PathId) -> usize {
    bench.paths.get(path).expect("a path").congestion.window()
}

/// Acknowledges the first `cumulative` chunks, and the ranges `beyond`, for this many packets.
fn arrive(bench: &mut Bench, cumulative: u32, beyond: &[(u32, u32)], packets: u8, path: PathId) {
    let sack = sack_of(cumulative, beyond, packets);
    bench.handle_on(&sack, path);
}

#[test]
fn new_data_is_sent_on_all_paths() {
    let mut bench = bench(plain());
    queue(&mut bench, [0; 8]);
    let packets = output(&mut bench);
    assert_eq!(
        taken(&packets),
        [(0, [0]), (0, [1]), (0, [2]), (0, [3]), (1, [4]), (1, [5]), (1, [6]), (1, [7])]
            .map(|(path, tsns)| (path, tsns.to_vec()))
    );
}

#[test]
fn a_table_keeps_streams_to_their_paths() {
    let table = alloc::vec![(StreamId(1), 1), (StreamId(0), 0)];
    let multipath = Some(MultipathConfig { mapping: StreamMapping::Table(table), ..plain() });
    let scheduler = SchedulerKind::Fcfs.into();
    let mut bench = bench_with(AssociationConfig { multipath, scheduler, ..config() });
    queue(&mut bench, [1, 1, 0, 1]);
    let of = |packet: &SentPacket| (packet.path, packet.chunks[0].stream.0);
    assert_eq!(
        output(&mut bench).iter().map(of).collect::<Vec<_>>(),
        [(A, 0), (B, 1), (B, 1), (B, 1)]
    );
    queue(&mut bench, [1, 9]);
    let packets = output(&mut bench);
    assert_eq!(
        packets.iter().map(of).collect::<Vec<_>>(),
        [(B, 1), (A, 9)],
        "other chunks may take any path"
    );
}

#[test]
fn a_stream_whose_path_fails_takes_another() {
    let mut bench = bench(MultipathConfig { mapping: StreamMapping::Modulo, ..plain() });
    bench.paths.suspect(B);
    queue(&mut bench, [1]);
    assert_eq!(taken(&output(&mut bench)), [(0, alloc::vec![0])]);
}

#[test]
fn a_message_may_request_a_path() {
    let mut bench = bench(MultipathConfig { mapping: StreamMapping::Modulo, ..plain() });
    bench.send(SendInfo { path: Some(B), ..on(0) }, 1000).expect("taken");
    assert_eq!(taken(&output(&mut bench)), [(1, alloc::vec![0])]);
}

#[test]
fn a_burst_ends_until_the_next_event() {
    let config = AssociationConfig {
        multipath: Some(MultipathConfig { burst: BurstLimit::PerEvent, ..plain() }),
        max_burst: 2,
        ..config()
    };
    let mut bench = bench_with(config);
    queue(&mut bench, [0; 8]);
    assert_eq!(output(&mut bench).len(), 4, "two on each path");
    bench.pass(milliseconds(1));
    assert!(output(&mut bench).is_empty(), "time alone is not an event");
    arrive(&mut bench, 1, &[], 1, A);
    assert_eq!(output(&mut bench).len(), 4);
}

#[test]
fn no_path_takes_more_than_its_share_of_the_send_buffer() {
    let config = AssociationConfig {
        multipath: Some(MultipathConfig { sender_splitting: BufferSplitting::Queued, ..plain() }),
        send_buffer: 6 * 1452,
        ..config()
    };
    let mut bench = bench_with(config);
    queue(&mut bench, [0; 6]);
    let packets = output(&mut bench);
    assert_eq!(packets.iter().filter(|packet| packet.path == A).count(), 2, "two make 2 * 1452");
    assert_eq!(packets.len(), 4);
    // Data acknowledged beyond a gap stays in the send buffer.
    arrive(&mut bench, 0, &[(1, 1)], 1, A);
    assert!(output(&mut bench).is_empty());
    arrive(&mut bench, 2, &[], 1, A);
    assert_eq!(output(&mut bench).len(), 2);
}

#[test]
fn outstanding_bytes_are_a_smaller_share() {
    let config = AssociationConfig {
        multipath: Some(MultipathConfig {
            sender_splitting: BufferSplitting::Outstanding,
            ..plain()
        }),
        send_buffer: 6 * 1452,
        ..config()
    };
    let mut bench = bench_with(config);
    queue(&mut bench, [0; 6]);
    assert_eq!(output(&mut bench).len(), 4);
    arrive(&mut bench, 0, &[(1, 1)], 1, A);
    assert_eq!(output(&mut bench).len(), 1);
}

#[test]
fn no_path_takes_more_than_its_share_of_the_peer_window() {
    let multipath = MultipathConfig { receiver_splitting: BufferSplitting::Queued, ..plain() };
    let config = AssociationConfig { multipath: Some(multipath), ..config() };
    let few = crate::send::SenderTerms { peer_window: 4 * 1452, ..terms() };
    let mut bench = Bench::with(config, few);
    bench.add_path();
    queue(&mut bench, [0; 8]);
    let packets = output(&mut bench);
    let on_a = packets.iter().filter(|packet| packet.path == A).count();
    assert_eq!((on_a, packets.len()), (3, 4), "one packet may exceed the share");
}

#[test]
fn a_path_window_grows_without_the_cumulative_tsn() {
    for (cuc, grows) in [(CucVersion::None, false), (CucVersion::V1, true), (CucVersion::V2, true)]
    {
        let mut bench = bench(MultipathConfig { cuc, ..plain() });
        queue(&mut bench, [0; 8]);
        output(&mut bench);
        let before = window(&bench, B);
        bench.pass(milliseconds(20));
        arrive(&mut bench, 0, &[(4, 5)], 2, B);
        assert_eq!(window(&bench, B) > before, grows, "{cuc:?}");
    }
}

#[test]
fn a_path_window_does_not_grow_over_its_own_gap() {
    let mut bench = bench(plain());
    queue(&mut bench, [0; 8]);
    output(&mut bench);
    let before = window(&bench, B);
    arrive(&mut bench, 0, &[(5, 6)], 2, B);
    assert_eq!(window(&bench, B), before);
}

#[test]
fn arrivals_on_another_path_are_not_missing_reports() {
    for (split, lost) in [(true, false), (false, true)] {
        let mut bench = bench(MultipathConfig { split_fast_retransmit: split, ..plain() });
        queue(&mut bench, [0; 8]);
        output(&mut bench);
        for last in 4..=6 {
            arrive(&mut bench, 0, &[(4, last)], 1, B);
        }
        assert_eq!(bench.counters.retransmissions, 0);
        queue(&mut bench, [0]);
        output(&mut bench);
        assert_eq!(bench.counters.retransmissions > 0, lost, "split {split}");
    }
}

#[test]
fn a_delayed_sack_on_one_path_counts_for_each_packet() {
    for (delayed_ack, lost) in [(true, true), (false, false)] {
        let mut bench = bench(MultipathConfig { delayed_ack, ..plain() });
        queue(&mut bench, [0; 8]);
        output(&mut bench);
        arrive(&mut bench, 0, &[(1, 3)], 3, A);
        output(&mut bench);
        assert_eq!(bench.counters.retransmissions > 0, lost, "delayed {delayed_ack}");
    }
}

#[test]
fn a_delayed_sack_on_several_paths_counts_once() {
    let mut bench = bench(MultipathConfig { delayed_ack: true, ..plain() });
    queue(&mut bench, [0; 8]);
    output(&mut bench);
    arrive(&mut bench, 0, &[(1, 3), (4, 4)], 3, A);
    output(&mut bench);
    assert_eq!(bench.counters.retransmissions, 0);
}

/// The path on which a chunk is retransmitted that was lost on the first path, while the second has
/// the larger window.
fn retransmitted_on(rtx_policy: RtxPolicy) -> PathId {
    let mut bench = bench(MultipathConfig { rtx_policy, ..plain() });
    queue(&mut bench, [0; 8]);
    output(&mut bench);
    bench.pass(milliseconds(20));
    arrive(&mut bench, 0, &[(4, 5)], 1, B);
    queue(&mut bench, [0; 4]);
    output(&mut bench);
    arrive(&mut bench, 0, &[(4, 7)], 1, B);
    for last in 1..=3 {
        let sack = sack_of(0, &[(1, last), (4, 7)], 1);
        bench.handle_on(&sack, A);
    }
    let again = output(&mut bench);
    let again = again.iter().find(|packet| packet.tsns().contains(&0));
    again.expect("sent again").path
}

#[test]
fn policies_choose_the_path_of_lost_chunks() {
    assert_eq!(retransmitted_on(RtxPolicy::Same), A);
    assert_eq!(retransmitted_on(RtxPolicy::Cwnd), B);
    assert_eq!(retransmitted_on(RtxPolicy::Asap), B);
    // Neither path has a threshold before this loss.
    assert_eq!(retransmitted_on(RtxPolicy::Ssthresh), A);
}

#[test]
fn a_path_with_more_losses_gets_less() {
    let rtx_policy = RtxPolicy::LossRate;
    let mut bench = bench(MultipathConfig { rtx_policy, delayed_ack: true, ..plain() });
    queue(&mut bench, [0; 8]);
    output(&mut bench);
    arrive(&mut bench, 0, &[(2, 3)], 3, A);
    let again = taken(&output(&mut bench));
    assert_eq!(again, [(0, alloc::vec![0])], "no losses were known");
    assert!(bench.has_data(B), "the second message waits for the other path");
}

#[test]
fn a_recovery_ends_with_the_chunks_of_its_path() {
    let mut bench = bench(plain());
    queue(&mut bench, [0; 8]);
    output(&mut bench);
    for last in 5..=7 {
        arrive(&mut bench, 0, &[(5, last)], 1, B);
    }
    output(&mut bench);
    let before = window(&bench, B);
    assert!(bench.sender.outstanding.flight(1).recovery.is_some());
    arrive(&mut bench, 0, &[(4, 7)], 1, B);
    assert!(
        bench.sender.outstanding.flight(1).recovery.is_none(),
        "the first path is still silent"
    );
    assert!(window(&bench, B) >= before);
}

#[test]
fn only_the_return_path_of_a_sack_is_measured_if_configured() {
    for (rtt_sampling, measured) in [(RttSampling::AnyPath, true), (RttSampling::SackPath, false)] {
        let multipath = Some(plain());
        let mut bench = bench_with(AssociationConfig { multipath, rtt_sampling, ..config() });
        queue(&mut bench, [0; 8]);
        output(&mut bench);
        bench.pass(milliseconds(30));
        arrive(&mut bench, 1, &[(4, 4)], 2, A);
        let rtt = |id| bench.paths.get(id).expect("a path").rto.smoothed();
        assert_eq!(rtt(A), Some(Duration::from_millis(30)));
        assert_eq!(rtt(B).is_some(), measured);
    }
}

#[test]
fn reordered_sacks_are_not_reneging() {
    let mut bench = bench(plain());
    queue(&mut bench, [0; 8]);
    output(&mut bench);
    arrive(&mut bench, 0, &[(4, 7)], 1, B);
    for _ in 0..3 {
        arrive(&mut bench, 0, &[(4, 5)], 1, A);
    }
    assert!(!bench.has_data(B));
    arrive(&mut bench, 8, &[], 1, A);
    assert!(bench.sender.is_drained());
}

#[test]
fn the_paths_of_a_message_may_differ() {
    let mut bench = bench(plain());
    bench.send(on(0), 9000).expect("taken");
    let packets = output(&mut bench);
    assert!(packets.iter().any(|packet| packet.path == A));
    assert!(packets.iter().any(|packet| packet.path == B));
}

#[test]
fn a_blocking_chunk_is_rescheduled_to_the_faster_path() {
    for (rescheduling, moved) in [(ChunkRescheduling::Both, 1), (ChunkRescheduling::None, 0)] {
        let multipath = Some(MultipathConfig { rescheduling, ..plain() });
        let config = AssociationConfig { multipath, send_buffer: 8 * 1452, ..config() };
        let mut bench = bench_with(config);
        // The second path is known to be slow.
        for (path, rtt) in [(A, 20), (B, 500)] {
            let path = bench.paths.get_mut(path).expect("a path");
            path.rto.on_sample(bench.now, milliseconds(rtt));
        }
        queue(&mut bench, [0; 8]);
        output(&mut bench);
        assert!(bench.send(on(0), 1452).is_err(), "the send buffer is full");
        bench.pass(milliseconds(20));
        arrive(&mut bench, 4, &[], 2, A);
        queue(&mut bench, [0; 4]);
        assert!(bench.send(on(0), 1452).is_err(), "the send buffer is full");
        let again = output(&mut bench);
        assert_eq!(bench.counters.retransmissions, moved, "{rescheduling:?}");
        let is_first = |packet: &SentPacket| packet.path == A && packet.tsns() == [4];
        assert_eq!(again.iter().filter(|packet| is_first(packet)).count() as u64, moved);
    }
}

/// Lets a path deliver as many bytes in a round trip.
fn deliver(path: &mut Path, bytes: usize, rtt: Duration) {
    let number = path.next_packet();
    path.on_sent(Duration::ZERO, bytes, false);
    path.on_chunk_acknowledged(rtt, number, bytes);
    let progress = PathProgress { cumulative_advanced: true, rtt: Some(rtt), ..Default::default() };
    path.on_sack(rtt, progress, SiblingPaths::default());
}

/// The first path has the shortest round trip and is slow: a large flight takes the third instead.
#[test]
fn data_of_a_silent_path_moves_to_where_all_of_it_arrives_first() {
    let config = AssociationConfig { multipath: Some(MultipathConfig::default()), ..config() };
    let remote = |last: u8| core::net::SocketAddr::from(([192, 0, 2, last], 0));
    let mut paths = AssociationPaths::new(remote(1), None, &config, [7; 32]);
    for last in 2..=3 {
        let id = paths.add(remote(last), None, &config).expect("there are few paths");
        paths.confirm(id);
    }
    paths.confirm(A);
    for (id, bytes, rtt) in [(A, 1452, 10), (B, 145_200, 50), (PathId(2), 145_200, 50)] {
        deliver(paths.get_mut(id).expect("a path"), bytes, milliseconds(rtt));
    }
    let choose = |paths: &AssociationPaths, rtx_policy| {
        let multipath = MultipathConfig { rtx_policy, ..MultipathConfig::default() };
        let config = AssociationConfig { multipath: Some(multipath), ..self::config() };
        path_instead_of(ConcurrentTransfer::new(&config).as_deref(), B, paths)
    };
    assert_eq!(choose(&paths, RtxPolicy::EarliestArrival), A, "little is soonest there");
    paths.get_mut(B).expect("a path").on_sent(milliseconds(60), 100_000, false);
    assert_eq!(choose(&paths, RtxPolicy::EarliestArrival), PathId(2));
    // The published profile takes the first one.
    assert_eq!(choose(&paths, RtxPolicy::Same), A);
}

/// The second path has the longer round trip, and loses a packet while the first has room for one.
#[test]
fn what_a_slow_path_lost_takes_a_faster_one_as_far_as_that_has_room() {
    for (rtx_policy, again_on) in [(RtxPolicy::EarliestArrival, A), (RtxPolicy::Same, B)] {
        let multipath = Some(MultipathConfig { rtx_policy, ..plain() });
        let loss_detection = LossDetection::Rack;
        let mut bench = bench_with(AssociationConfig { multipath, loss_detection, ..config() });
        for (id, rtt) in [(A, 10), (B, 200)] {
            let path = bench.paths.get_mut(id).expect("a path");
            deliver(path, 14_520, milliseconds(rtt));
            path.on_round_trip(milliseconds(rtt), milliseconds(rtt));
        }
        for _ in 0..4 {
            bench.send(SendInfo { path: Some(B), ..on(0) }, 1452).expect("taken");
        }
        assert_eq!(output(&mut bench).len(), 4);
        bench.pass(milliseconds(200));
        // The first packet is missing.
        arrive(&mut bench, 0, &[(1, 3)], 3, B);
        bench.pass(milliseconds(60));
        bench.sender.handle_timeout(bench.now, &mut bench.paths);
        let again = output(&mut bench);
        assert_eq!(taken(&again), [(again_on.0, alloc::vec![0])], "{rtx_policy:?}");
    }
}
