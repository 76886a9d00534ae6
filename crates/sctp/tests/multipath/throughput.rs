//! The throughput of several paths together.

use std::time::Duration;

use eyas_netem::link::LinkConfig;
use eyas_sctp::config::{AssociationConfig, MultipathConfig, SchedulerKind, StreamMapping};
use eyas_sctp::identifier::StreamId;

use crate::multipath::world::{User, World, link};

/// The default configuration, with messages that fill packets.
fn config() -> AssociationConfig {
    let mut config = AssociationConfig::default();
    config.multipath = Some(MultipathConfig::default());
    config.extensions.interleaving = false;
    config.extensions.nr_sack = true;
    config.path_mtu_discovery = false;
    config.scheduler = SchedulerKind::RoundRobin.into();
    config
}

/// Mbit/s of user data between the fifth and the fifteenth second.
fn throughput(config: &AssociationConfig, links: &[LinkConfig], user: User) -> f64 {
    let mut world = World::multipath(config, links, 2, 1, user);
    world.run_to(Duration::from_secs(5));
    world.start_measuring();
    world.run_to(Duration::from_secs(15));
    world.throughput(Duration::from_secs(10))
}

#[test]
fn two_paths_carry_twice_as_much() {
    let links = [link(10, 10), link(10, 10)];
    let two = throughput(&config(), &links, User::InTurn);
    assert!(two > 19.0, "{two} Mbit/s");
    let mut single = config();
    single.multipath = None;
    let one = throughput(&single, &links, User::InTurn);
    assert!(one < 9.7, "{one} Mbit/s over one path at a time");
}

#[test]
fn a_mapping_uses_paths_of_different_rate_with_queue_information() {
    let mut config = config();
    let table = vec![(StreamId(0), 0), (StreamId(1), 1)];
    let mapping = StreamMapping::Table(table);
    let mut multipath = MultipathConfig::default();
    multipath.mapping = mapping;
    config.multipath = Some(multipath);
    (config.send_buffer, config.receive_buffer) = (1 << 18, 1 << 18);
    let links = [link(10, 10), link(25, 10)];
    let blind = throughput(&config, &links, User::InTurn);
    assert!(blind < 20.0, "{blind} Mbit/s");
    let throughput_by_queue = throughput(&config, &links, User::ByQueueInfo);
    assert!(throughput_by_queue > 32.0, "{throughput_by_queue} Mbit/s");
}

#[test]
fn a_path_failure_does_not_stop_the_transfer() {
    let mut world = World::multipath(&config(), &[link(10, 10), link(10, 10)], 2, 1, User::InTurn);
    world.run_to(Duration::from_secs(5));
    world.network.cut = vec![1];
    world.run_to(Duration::from_secs(7));
    world.start_measuring();
    world.run_to(Duration::from_secs(12));
    let left = world.throughput(Duration::from_secs(5));
    assert!(left > 9.0, "{left} Mbit/s over the path that is left");
    world.network.cut.clear();
    world.run_to(Duration::from_secs(60));
    world.start_measuring();
    world.run_to(Duration::from_secs(65));
    let both = world.throughput(Duration::from_secs(5));
    assert!(both > 18.5, "{both} Mbit/s once it works again");
}
