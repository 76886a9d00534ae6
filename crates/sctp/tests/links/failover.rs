//! How soon another path takes over, and when the first path is used again.

use std::time::Duration;

use eyas_netem::link::LinkConfig;
use eyas_sctp::config::{AssociationConfig, MultipathConfig};
use eyas_sctp::endpoint::PathState;
use eyas_sctp::event::{Event, PathChange};
use eyas_sctp::identifier::PathId;

use crate::network::{A, B, address, link, ms};
use crate::saturated::{Traffic, User, World};

/// The rate of a link, in bit/s.
const RATE: u64 = 20_000_000;
/// The longest queueing delay.
const QUEUE: Duration = ms(20);

/// The round-trip time with a full queue.
const ROUND_TRIP: Duration = Duration::from_millis(60);

/// 20 Mbit/s and 40 ms for each network.
fn links(networks: usize) -> Vec<LinkConfig> {
    vec![link(RATE, ms(20), QUEUE); networks]
}

fn changes(world: &World) -> Vec<(u64, u16, PathChange)> {
    let change = |(at, event): &(Duration, Event)| match event {
        Event::Path { path, change, .. } => {
            Some((u64::try_from(at.as_millis()).unwrap(), path.0, *change))
        }
        _ => None,
    };
    world.hosts[A].events.iter().filter_map(change).collect()
}

/// The time of the first packet with data that arrived over a network after `from`.
fn first_arrival(world: &World, network: usize, from: Duration) -> Option<Duration> {
    world.tap.data[network].iter().copied().find(|at| *at >= from)
}

/// Runs for five seconds, then cuts the first network.
fn cut_after_five_seconds(config: &AssociationConfig, networks: usize) -> World {
    let mut world = World::connected(config, &links(networks));
    world.run_to(ms(5_000));
    assert_eq!(world.status().paths.len(), networks);
    world.network.cut.push(0);
    world
}

/// The share of a link's rate that user data achieves in an interval, in percent.
fn share(world: &World, from: Duration, to: Duration) -> u64 {
    let bits = world.delivered(from, to) as u64 * 8;
    bits * 1000 * 100 / RATE / u64::try_from((to - from).as_millis()).unwrap()
}

/// All paths at once, with the defaults otherwise.
fn multipath() -> AssociationConfig {
    let mut config = AssociationConfig::default();
    config.multipath = Some(MultipathConfig::default());
    config
}

/// Disconnects the first network at some time, and returns the delay in round trips: the path's
/// data is sent on the others three round trips after the last acknowledgement of what it delivered,
/// of which the probe waits for two and its acknowledgement for one, plus the variation of the round
/// trip. That acknowledgement may wait for an eighth of a round trip, and return on any path.
fn count_round_trips(config: &AssociationConfig, links: &[LinkConfig], cut: u8, cut_at: Duration) {
    let mut world = World::connected(config, links);
    let link = &links[usize::from(cut)];
    world.run_to(cut_at);
    world.network.cut.push(cut);
    // Packets in flight still arrive.
    world.run_to(cut_at + link.delay + QUEUE);
    let rtt = world.status().paths[usize::from(cut)].smoothed_rtt.unwrap();
    world.run_to(cut_at + ms(2_000));
    let failed: Vec<_> = changes(&world).into_iter().filter(|it| ms(it.0) > cut_at).collect();
    assert_eq!(failed.len(), 1, "{failed:?}");
    assert_eq!((failed[0].1, failed[0].2), (cut.into(), PathChange::PotentiallyFailed));
    let noticed = ms(failed[0].0);
    let slowest_return = links.iter().map(|link| link.delay).max().unwrap();
    let delivered = *world.tap.data[usize::from(cut)].last().unwrap();
    let sign_of_life = delivered + slowest_return / 4 + slowest_return;
    assert!(noticed <= sign_of_life + 3 * rtt + rtt / 2, "{cut_at:?}: {noticed:?}, {rtt:?}");
    // Messages continue soon after: the path's data is sent over another one, which may be in slow
    // start.
    let other = world.status().paths.iter().filter_map(|path| path.smoothed_rtt).max().unwrap();
    let end = |pair: &[(Duration, usize)]| pair[1].0 - pair[0].0;
    let since = world.hosts[B].deliveries.partition_point(|(at, _)| *at < cut_at - ROUND_TRIP);
    let gap = world.hosts[B].deliveries[since..].windows(2).map(end).max().unwrap();
    assert!(gap <= 4 * rtt + 2 * other, "{cut_at:?}: nothing came for {gap:?}, {rtt:?}");
}

#[test]
fn a_path_failure_costs_three_round_trips_and_a_probe() {
    for networks in [2, 3] {
        for config in [AssociationConfig::default(), multipath()] {
            // At any point of the window's sawtooth.
            for cut_at in [2_000, 2_900] {
                count_round_trips(&config, &links(networks), 0, ms(cut_at));
            }
        }
    }
}

/// All addresses are verified at once, and each path carries data two round trips after the
/// association exists.
#[test]
fn all_paths_carry_data_within_two_round_trips() {
    let world = {
        let mut world = World::connected(&multipath(), &links(4));
        world.run_to(ms(1_000));
        world
    };
    let start = first_arrival(&world, 0, Duration::ZERO).unwrap();
    for network in 1..4 {
        let first = first_arrival(&world, network, Duration::ZERO).unwrap();
        assert!(first <= start + 2 * ROUND_TRIP, "network {network}: {first:?}, {start:?}");
    }
}

#[test]
fn a_path_failure_costs_the_same_if_paths_differ() {
    let unlike = [20, 75].map(|delay| link(RATE, ms(delay), QUEUE));
    for cut in [0, 1] {
        count_round_trips(&multipath(), &unlike, cut, ms(3_000));
    }
}

//= rfc7829 §3.2, 3
//# no data to a PF address while there is an active one
#[test]
fn another_path_takes_over_within_five_round_trips() {
    for networks in [2, 3] {
        let mut world = cut_after_five_seconds(&AssociationConfig::default(), networks);
        world.run_to(ms(8_000));
        let after = first_arrival(&world, 1, ms(5_000)).unwrap() - ms(5_000);
        assert!(after <= 4 * ROUND_TRIP, "first data after {after:?}");
        let gaps = world.hosts[B].deliveries.windows(2).map(|pair| pair[1].0 - pair[0].0);
        let gap = gaps.max().unwrap();
        assert!(gap <= 5 * ROUND_TRIP, "nothing arrived for {gap:?}");
        assert!(share(&world, ms(6_000), ms(8_000)) >= 85);
        let failed: Vec<_> = changes(&world).into_iter().filter(|it| it.0 > 5_000).collect();
        assert_eq!(failed.len(), 1, "{failed:?}");
        assert_eq!((failed[0].1, failed[0].2), (0, PathChange::PotentiallyFailed));
    }
}

#[test]
fn a_third_path_takes_over_from_the_second() {
    let mut world = cut_after_five_seconds(&AssociationConfig::default(), 3);
    world.run_to(ms(8_000));
    world.network.cut.push(1);
    world.run_to(ms(11_000));
    let after = first_arrival(&world, 2, ms(8_000)).unwrap() - ms(8_000);
    assert!(after <= 4 * ROUND_TRIP, "first data after {after:?}");
    assert!(share(&world, ms(9_000), ms(11_000)) >= 85);
    // All of them are used again.
    world.network.cut.clear();
    world.run_to(ms(40_000));
    let back = first_arrival(&world, 0, ms(11_000)).expect("the first path is used again");
    assert!(share(&world, back + ms(1_000), ms(40_000)) >= 85);
}

//= rfc7829 §3.2, 7
//# an answered HEARTBEAT makes a PF address active again
#[test]
fn the_primary_path_is_used_again_as_soon_as_a_heartbeat_is_answered() {
    let mut world = cut_after_five_seconds(&AssociationConfig::default(), 2);
    world.run_to(ms(15_000));
    world.network.cut.clear();
    world.run_to(ms(24_000));
    let probed = *world.tap.heartbeats[0].iter().find(|at| **at > ms(15_000)).unwrap();
    let back = first_arrival(&world, 0, ms(15_000)).unwrap();
    assert!(back - probed <= 2 * ROUND_TRIP, "probed at {probed:?}, used at {back:?}");
    // Probed at once, then after 1, 2, 4 and 8 seconds.
    let cut = ms(5_000);
    let probes: Vec<u64> = world.tap.heartbeats[0]
        .iter()
        .filter(|at| **at > cut)
        .map(|at| (*at - cut).as_secs())
        .collect();
    assert_eq!(probes, [0, 1, 3, 7, 15]);
    assert!(share(&world, back + ms(500), ms(24_000)) >= 70);
    assert_eq!(world.status().primary, PathId(0));
}

/// The association settings of `eyas tunnel`.
fn probing() -> AssociationConfig {
    let mut config = multipath();
    config.rto_min = ms(200);
    config.sack_delay = ms(40);
    config.max_probe_interval = Some(ms(500));
    config
}

/// The longest time without a byte in an interval.
fn silence(world: &World, from: Duration, to: Duration) -> Duration {
    let deliveries = world.hosts[B].deliveries.iter();
    let between = deliveries.map(|(at, _)| *at).filter(|at| (from..to).contains(at));
    let times: Vec<Duration> = [from].into_iter().chain(between).chain([to]).collect();
    times.windows(2).map(|pair| pair[1] - pair[0]).max().unwrap()
}

/// The first network is down for 8 s. Shortly after it is up again, the second one fails.
fn one_dies_as_the_other_comes_back(config: &AssociationConfig, between: Duration) -> Duration {
    let links = [5, 50].map(|delay| link(RATE, ms(delay), QUEUE));
    let mut world = World::connected(config, &links);
    world.run_to(ms(3_000));
    world.network.cut.push(0);
    world.run_to(ms(11_000));
    world.network.cut.clear();
    let cut_at = ms(11_000) + between;
    world.run_to(cut_at);
    world.network.cut.push(1);
    world.run_to(cut_at + ms(5_000));
    silence(&world, cut_at, cut_at + ms(5_000))
}

//= rfc7829 beyond §3.2
//# failed addresses are probed at once when the last active one fails
#[test]
fn a_recovered_path_is_used_as_soon_as_the_last_one_fails() {
    for between in [0, 50, 300, 1_000] {
        for is_multipath in [true, false] {
            let mut config = probing();
            config.multipath = config.multipath.filter(|_| is_multipath);
            let silent = one_dies_as_the_other_comes_back(&config, ms(between));
            assert!(silent <= ms(500), "{between} ms, {is_multipath}: {silent:?}");
        }
    }
    let mut config = probing();
    config.max_probe_interval = None;
    let silent = one_dies_as_the_other_comes_back(&config, ms(50));
    assert!(silent > ms(1_000), "that soon anyway: {silent:?}");
}

#[test]
fn data_continues_soon_after_a_total_outage() {
    for networks in [1, 2_u8] {
        for is_multipath in [true, false] {
            let mut config = probing();
            config.multipath = config.multipath.filter(|_| is_multipath);
            let mut world = World::connected(&config, &links(networks.into()));
            world.run_to(ms(3_000));
            world.network.cut.extend(0..networks);
            // All of them, or the last one, are back.
            world.run_to(ms(13_000));
            world.network.cut.retain(|network| *network != networks - 1);
            world.run_to(ms(16_000));
            let silent = silence(&world, ms(13_000), ms(16_000));
            assert!(silent <= ms(500) + ms(200) + 2 * ROUND_TRIP, "{networks}: {silent:?}");
        }
    }
}

#[test]
fn a_permanently_abandoned_primary_path_is_not_used_again() {
    let mut config = AssociationConfig::default();
    config.primary_switchover_max_retrans = Some(1);
    let mut world = cut_after_five_seconds(&config, 2);
    world.run_to(ms(15_000));
    assert_eq!(world.status().primary, PathId(1));
    world.network.cut.clear();
    world.run_to(ms(24_000));
    assert!(world.status().paths.iter().all(|path| path.state == PathState::Active));
    assert_eq!(first_arrival(&world, 0, ms(15_000)), None);
}

#[test]
fn a_single_path_waits_for_itself() {
    let mut world = cut_after_five_seconds(&AssociationConfig::default(), 1);
    world.run_to(ms(5_900));
    assert_eq!(changes(&world), []);
    world.run_to(ms(7_000));
    let changed: Vec<_> = changes(&world).into_iter().map(|it| it.2).collect();
    assert_eq!(changed, [PathChange::PotentiallyFailed]);
    world.network.cut.clear();
    world.run_to(ms(15_000));
    let back = first_arrival(&world, 0, ms(7_000)).unwrap();
    assert!(share(&world, back + ms(2_000), ms(15_000)) >= 70);
}

#[test]
fn a_path_that_becomes_much_slower_is_doubted_and_recovers() {
    let mut world = World::connected(&AssociationConfig::default(), &links(2));
    world.run_to(ms(5_000));
    world.change_links(|network, link| {
        if network == 0 {
            link.delay += ms(300);
        }
    });
    world.run_to(ms(15_000));
    let changed: Vec<_> = changes(&world).into_iter().filter(|it| it.0 > 5_000).collect();
    let kinds: Vec<_> = changed.iter().map(|it| (it.1, it.2)).collect();
    assert_eq!(kinds, [(0, PathChange::PotentiallyFailed), (0, PathChange::Active)]);
    assert!(changed[1].0 < 6_500, "{changed:?}");
    assert!(world.tap.data[0].last().is_some_and(|last| *last > ms(14_000)));
    assert_eq!(world.status().paths[0].state, PathState::Active);
}

#[test]
fn idle_paths_are_probed_every_half_minute() {
    let mut world = World::connected(&AssociationConfig::default(), &links(3));
    world.hosts[A].user = User::Silent;
    world.run_to(ms(300_000));
    for (network, probed) in world.tap.heartbeats.iter().enumerate() {
        let later: Vec<_> = probed.iter().filter(|at| **at > ms(10_000)).collect();
        assert!((9..=10).contains(&later.len()), "network {network}: {later:?}");
        for pair in later.windows(2) {
            let gap = *pair[1] - *pair[0];
            assert!((ms(30_500)..=ms(31_600)).contains(&gap), "network {network}: {gap:?}");
        }
    }
}

#[test]
fn a_path_that_was_added_takes_over() {
    let mut config = AssociationConfig::default();
    config.extensions.dynamic_addresses = true;
    let mut world = World::with(Traffic { announced: 1, ..Traffic::new(&config, 2) }, &links(2), 1);
    world.run_to(ms(3_000));
    assert_eq!(world.status().paths.len(), 1);
    let (now, receiver) = (world.now, &mut world.hosts[B].endpoint);
    let id = receiver.associations()[0];
    receiver.association_mut(now, id).unwrap().add_address(address(B, 1)).unwrap();
    world.run_to(ms(5_000));
    let kinds: Vec<_> = changes(&world).into_iter().map(|it| (it.1, it.2)).collect();
    assert_eq!(kinds, [(1, PathChange::Added), (1, PathChange::Confirmed)]);
    world.network.cut.push(0);
    world.run_to(ms(8_000));
    let after = first_arrival(&world, 1, ms(5_000)).unwrap() - ms(5_000);
    assert!(after <= 4 * ROUND_TRIP, "first data after {after:?}");
    assert!(share(&world, ms(6_000), ms(8_000)) >= 85);
}
