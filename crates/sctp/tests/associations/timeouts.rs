//! The effects of an unresponsive peer: T3-rtx, heartbeats and error counts together (RFC 9260
//! §6.3.3, §7.2.3, §8.1), with the default configuration.

use std::time::Duration;

use crate::associations::world::{A, B, World, listening, ms, multihomed};
use eyas_sctp::config::{AssociationConfig, EndpointConfig, LossDetection};
use eyas_sctp::endpoint::PathState;
use eyas_sctp::event::{Event, LossReason};
use eyas_sctp::identifier::AssociationId;
use eyas_sctp::io::{Input, Unreachable};

/// An endpoint whose associations have the default configuration.
fn default_associations(mut config: EndpointConfig) -> EndpointConfig {
    config.association = AssociationConfig::default();
    config
}

/// `A` connected to `B`, which falls silent at 300 ms.
fn silent() -> (World, AssociationId) {
    let mut world =
        World::with(default_associations(listening()), default_associations(listening()));
    let (a, _) = world.connected();
    world.run_for(ms(300) - world.now);
    world.network.cut = vec![0];
    world.clear_ladder();
    (world, a)
}

/// The times at which lines with `what` were added to the ladder from now on, in tenths of a
/// second, and how many each time.
fn times(world: &mut World, what: &str, limit: Duration) -> Vec<(u128, usize)> {
    let count = |world: &World| world.tap.ladder.iter().filter(|line| line.contains(what)).count();
    let (mut times, mut known, end) = (Vec::new(), 0, world.now + limit);
    while world.now < end {
        world.drain();
        let seen = count(world);
        if seen > known {
            times.push((world.now.as_millis() / 100, seen - known));
            known = seen;
        }
        world.run_for(ms(100));
    }
    times
}

/// Returns whether `A` sent heartbeats.
fn sent_heartbeats(world: &World) -> bool {
    world.tap.ladder.iter().any(|line| line.contains("A -> B") && line.contains("HEARTBEAT"))
}

//= rfc7829 §4.1, 1 to 3
//# if all addresses are inactive, one is used without a change of its state, until
//# Association.Max.Retrans
//= rfc9260 §8.1
//# each T3 and unanswered HEARTBEAT counts once; beyond Association.Max.Retrans the peer is
//# unreachable
#[test]
fn a_dead_peer_is_probed_ten_times_with_doubling_timeouts() {
    let (mut world, a) = silent();
    world.send(A, a, 0, "anybody there?");
    let sent = times(&mut world, "DATA", Duration::from_millis(362_500));
    // The second packet is the tail loss probe (RFC 8985 §7); after that there is only T3.
    let expected = [3, 6, 13, 33, 73, 153, 313, 633, 1233, 1833, 2433, 3033];
    assert_eq!(sent, expected.map(|at| (at, 1)));
    assert_eq!(world.hosts[A].status(a).paths[0].state, PathState::Inactive);
    world.run_for(ms(1000));
    let lost = Event::Lost(LossReason::PeerUnreachable);
    assert_eq!(world.hosts[A].events().last(), Some(&lost));
}

//= rfc9260 RFC 7829 §3.2
//# HEARTBEATs to an address that is potentially failed, if data was sent there
#[test]
fn while_data_is_in_flight_nothing_else_probes_the_only_path() {
    let (mut world, a) = silent();
    world.send(A, a, 0, "anybody there?");
    world.run_for(Duration::from_secs(360));
    assert!(!sent_heartbeats(&world), "{:?}", world.tap.ladder);
    assert_eq!(world.hosts[A].status(a).paths[0].state, PathState::Inactive);
}

//= rfc9260 §8.1
//# a HEARTBEAT overtaken by T3 is no second error
#[test]
fn a_heartbeat_superseded_by_a_timeout_is_no_second_error() {
    let (mut world, a) = silent();
    world.send(A, a, 0, "anybody there?");
    // The path is probed, as the network reports that it is unreachable.
    let remote = world.hosts[A].status(a).paths[0].remote;
    let input = Input::Unreachable { remote, reason: Unreachable::Route, quoted: None };
    world.hosts[A].endpoint.handle_input(world.now, input);
    world.run_for(ms(1500));
    assert!(sent_heartbeats(&world));
    assert_eq!(world.hosts[A].status(a).paths[0].outstanding, 14);
    assert_eq!(world.hosts[A].status(a).paths[0].rto, Duration::from_secs(2));
}

//= rfc7829 §3.2, 5
//# a HEARTBEAT to a PF address each RTO, if data was sent there
#[test]
fn a_path_that_data_has_left_is_probed_immediately() {
    let mut world =
        World::with(default_associations(multihomed(A, 2)), default_associations(multihomed(B, 2)));
    let (a, _) = world.connected();
    world.run_for(ms(3000));
    world.network.cut = vec![0];
    world.clear_ladder();
    world.send(A, a, 0, "over there");
    world.run_for(ms(1500));
    let beats = |line: &&String| line.contains("HEARTBEAT") && !line.contains("network 1");
    assert!(world.tap.ladder.iter().find(beats).is_some(), "{:?}", world.tap.ladder);
}

//= rfc9260 §6.3.3
//# on T3 one packet is sent, the RTO doubles; more once something is acknowledged
/// Ten packets are lost, and only T3 detects that.
#[test]
fn after_a_timeout_a_single_packet_is_sent() {
    for (size, detection) in
        [(14_000, LossDetection::Classic), (14_000, LossDetection::Rack), (40, LossDetection::Rack)]
    {
        let mut config = default_associations(listening());
        config.association.loss_detection = detection;
        let mut world = World::with(config.clone(), config);
        let (a, _) = world.connected();
        world.run_for(ms(300) - world.now);
        world.network.cut = vec![0];
        for _ in 0..14_000 / size {
            world.send(A, a, 0, vec![1; size]);
        }
        world.run_for(ms(990));
        world.clear_ladder();
        let sent = times(&mut world, "DATA", Duration::from_secs(20));
        assert_eq!(sent.iter().map(|(_, packets)| *packets).max(), Some(1), "{sent:?}");
        assert!(sent.len() >= 4, "{sent:?}");
        world.network.cut.clear();
        world.run_until(Duration::from_secs(60), |world| {
            world.hosts[B].received_bytes() == size * (14_000 / size)
        });
    }
}

//= rfc9260 §8.3
//# no HEARTBEATs after SHUTDOWN
#[test]
fn nothing_probes_the_peer_during_shutdown() {
    let (mut world, a) = silent();
    world.hosts[A].endpoint.shutdown(world.now, a).unwrap();
    let sent = times(&mut world, "SHUTDOWN", Duration::from_secs(363));
    assert!(!sent_heartbeats(&world), "{:?}", world.tap.ladder);
    // Until T5-shutdown-guard, which is five times RTO.Max.
    let expected = [3, 13, 33, 73, 153, 313, 633, 1233, 1833, 2433];
    assert_eq!(sent, expected.map(|at| (at, 1)));
    world.run_for(ms(1000));
    assert_eq!(world.hosts[A].state(), eyas_sctp::endpoint::AssociationState::Closed);
}
