//! Results of the PFLDNeT 2010 paper, with its profile, at a few points: the lab has them all.

use std::time::Duration;

use eyas_netem::link::LinkConfig;
use eyas_sctp::config::{AssociationConfig, MultipathProfile, StreamMapping};
use eyas_sctp::identifier::StreamId;

use crate::multipath::world::{User, World, link};
use crate::network::B;

struct Outcome {
    throughput: f64,
    /// The mean of the streams' mean delays, in milliseconds.
    delay: f64,
    world: World,
}

/// The published setup with buffers of this many KiB, from the eighth to the sixteenth second.
fn run(
    links: &[LinkConfig],
    table: &[usize],
    streams: usize,
    kib: usize,
    nr: bool,
    user: User,
) -> Outcome {
    let mut config = AssociationConfig::default();
    MultipathProfile::Pfldnet2010.apply(&mut config);
    (config.send_buffer, config.receive_buffer) = (kib << 10, kib << 10);
    config.extensions.nr_sack = nr;
    if !table.is_empty() {
        let streams = (0..).map(StreamId).zip(table.iter().copied());
        let multipath = config.multipath.as_mut().expect("a multipath profile");
        multipath.mapping = StreamMapping::Table(streams.collect());
    }
    let mut world = World::multipath(&config, links, streams, 1, user);
    world.run_to(Duration::from_secs(8));
    world.start_measuring();
    world.run_to(Duration::from_secs(16));
    let throughput = world.throughput(Duration::from_secs(8));
    let delays: f64 = world.hosts[B].tallies.iter().map(|tally| tally.mean_delay()).sum();
    Outcome { throughput, delay: delays / streams as f64, world }
}

const FIXED: [usize; 2] = [0, 1];
/// Streams 1, 3 and 5 use the first path, 2, 4 and 6 the second, and 0 the third.
const THREE: [usize; 7] = [2, 0, 1, 0, 1, 0, 1];

#[test]
fn equal_paths_are_full_at_64_kib() {
    for table in [&[][..], &FIXED] {
        let outcome = run(&[link(10, 10), link(10, 10)], table, 2, 64, true, User::InTurn);
        assert!((19.0..19.4).contains(&outcome.throughput), "{}", outcome.throughput);
    }
}

#[test]
fn a_fixed_mapping_needs_less_buffer_on_paths_of_different_delay() {
    let links = [link(10, 10), link(10, 75)];
    let fixed = |kib| run(&links, &FIXED, 2, kib, true, User::InTurn);
    let in_turn = |kib| run(&links, &[], 2, kib, true, User::InTurn);
    let full = fixed(224);
    assert!(full.throughput >= 19.0, "{}", full.throughput);
    assert!(fixed(192).throughput < 18.8);
    assert!(in_turn(288).throughput >= 19.0);
    assert!(in_turn(256).throughput < 18.0);
    let [near, far] = [0, 1].map(|stream| full.world.hosts[B].tallies[stream].mean_delay());
    assert!(far > 3.0 * near, "{near} and {far} ms");
}

/// Messages that are queued on each stream in turn, in one send buffer: their rates are equal, so a
/// path that falls behind has the rest of the buffer in its queue, and the losses. Any difference
/// decides which path that is. With a share of the buffer for each stream they are alike.
#[test]
fn a_shared_send_buffer_burdens_one_of_two_equal_paths() {
    let measured = |delays: [u64; 2], user| {
        let links =
            delays.map(|us| LinkConfig { delay: Duration::from_micros(us), ..link(10, 10) });
        let mut outcome = run(&links, &FIXED, 2, 352, true, user);
        outcome.world.start_measuring();
        outcome.world.run_to(Duration::from_secs(32));
        [0, 1].map(|stream| outcome.world.hosts[B].tallies[stream].mean_delay())
    };
    let [near, far] = measured([10_000, 11_000], User::InTurn);
    assert!(far > 1.5 * near, "{near} and {far} ms");
    let [far, near] = measured([11_000, 10_000], User::InTurn);
    assert!(far > 1.5 * near, "{far} and {near} ms");
    let [first, second] = measured([10_000, 10_000], User::ByQueueInfo);
    assert!((0.95..1.05).contains(&(first / second)), "{first} and {second} ms");
}

#[test]
fn a_fixed_mapping_needs_queue_information_on_paths_of_different_rate() {
    let links = [link(10, 10), link(25, 10)];
    let blind = run(&links, &FIXED, 2, 256, true, User::InTurn);
    assert!(blind.throughput < 20.0, "{}", blind.throughput);
    let by_queue_info = run(&links, &FIXED, 2, 256, true, User::ByQueueInfo);
    assert!(by_queue_info.throughput > 0.97 * 33.7, "{}", by_queue_info.throughput);
}

#[test]
fn three_paths_need_a_fixed_mapping_and_nr_sacks() {
    let links = [link(10, 10), link(10, 10), link(1, 50)];
    let outcome = |table: &[usize], kib, nr| run(&links, table, 7, kib, nr, User::ByQueueInfo);
    let spread = outcome(&[], 256, false);
    assert!(spread.throughput < 3.0 && spread.delay > 600.0, "{}", spread.throughput);
    let mapped = outcome(&THREE, 256, false);
    assert!((5.0..6.0).contains(&mapped.throughput), "{}", mapped.throughput);
    let with_nr = outcome(&THREE, 128, true);
    assert!(with_nr.throughput > 19.5, "{}", with_nr.throughput);
    assert!((50.0..65.0).contains(&with_nr.delay), "{} ms", with_nr.delay);
}
