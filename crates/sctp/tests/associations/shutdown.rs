//! The end of an association: SHUTDOWN from one or both sides, with packets lost, and ABORT (RFC
//! 9260 §9).

use crate::associations::world::{A, B, World, ms};
use bytes::Bytes;
use eyas_sctp::endpoint::AssociationState;
use eyas_sctp::error::Error;
use eyas_sctp::event::{Event, LossReason};
use eyas_sctp::message::SendInfo;

fn ended(world: &World) -> bool {
    world.hosts.iter().all(|host| host.state() == AssociationState::Closed)
}

#[test]
fn either_side_may_shut_down() {
    for (first, ladder) in [
        (A, ["A -> B  SHUTDOWN", "A <- B  SHUTDOWN-ACK", "A -> B  SHUTDOWN-COMPLETE"]),
        (B, ["A <- B  SHUTDOWN", "A -> B  SHUTDOWN-ACK", "A <- B  SHUTDOWN-COMPLETE"]),
    ] {
        let mut world = World::new();
        let (a, b) = world.connected();
        world.clear_ladder();
        let id = [a, b][first];
        world.hosts[first].endpoint.shutdown(world.now, id).unwrap();
        world.run_until(ms(1000), ended);
        assert_eq!(world.tap.ladder, ladder);
        assert_eq!(world.hosts[first].events().last(), Some(&Event::Closed));
        let other = world.hosts[1 - first].events();
        assert_eq!(other[other.len() - 2..], [Event::PeerShutdown, Event::Closed]);
    }
}

/// The peer waits for it, and would retransmit its request a second later.
#[test]
fn an_association_dropped_at_its_end_still_sends_its_last_packet() {
    for (aborts, last) in [(false, "A -> B  SHUTDOWN-COMPLETE"), (true, "A -> B  ABORT")] {
        let mut world = World::new();
        let (a, _) = world.connected();
        world.hosts[A].forgets = true;
        world.clear_ladder();
        let sent = world.hosts[A].endpoint.counters().packets_out;
        if aborts {
            world.hosts[A].endpoint.abort(world.now, a, Bytes::new()).unwrap();
        } else {
            world.hosts[A].endpoint.shutdown(world.now, a).unwrap();
        }
        world.run_for(ms(60_000));
        assert_eq!(world.tap.ladder.last().unwrap(), last, "{:?}", world.tap.ladder);
        let of_a = world.tap.ladder.iter().filter(|line| line.starts_with("A -> B")).count();
        assert_eq!(world.hosts[A].endpoint.counters().packets_out - sent, of_a as u64);
        assert_eq!(world.hosts[A].endpoint.associations(), []);
        assert_eq!(world.hosts[B].endpoint.associations(), []);
        assert_eq!(world.hosts[B].endpoint.counters().retransmissions, 0);
    }
}

//= rfc9260 §9.2
//# both sides shut down at once: SHUTDOWN ACK, and SHUTDOWN COMPLETE in SHUTDOWN-ACK-SENT
#[test]
fn both_sides_may_shut_down_at_once() {
    let mut world = World::new();
    let (a, b) = world.connected();
    world.clear_ladder();
    world.hosts[A].endpoint.shutdown(world.now, a).unwrap();
    world.hosts[B].endpoint.shutdown(world.now, b).unwrap();
    world.run_until(ms(1000), ended);
    assert_eq!(world.hosts[A].events().last(), Some(&Event::Closed));
    assert_eq!(world.hosts[B].events().last(), Some(&Event::Closed));
}

#[test]
fn each_packet_of_the_shutdown_may_get_lost() {
    for lost in ["SHUTDOWN", "SHUTDOWN-ACK", "SHUTDOWN-COMPLETE"] {
        let mut world = World::new();
        let (a, _) = world.connected();
        world.lose(lost);
        world.hosts[A].endpoint.shutdown(world.now, a).unwrap();
        world.run_until(ms(10_000), ended);
        assert!(world.lost_all(), "{lost}");
        assert_eq!(world.hosts[A].events().last(), Some(&Event::Closed), "{lost}");
        assert_eq!(world.hosts[B].events().last(), Some(&Event::Closed), "{lost}");
    }
}

//= rfc9260 §9.2
//# DATA in SHUTDOWN-SENT is answered with SACK and SHUTDOWN
#[test]
fn data_of_both_sides_arrives_before_the_shutdown_completes() {
    let mut world = World::new();
    let (a, b) = world.connected();
    world.network.seed(5);
    world.lose_per_thousand(100);
    world.send(A, a, 0, vec![1; 50_000]);
    world.send(B, b, 0, vec![2; 70_000]);
    world.hosts[A].endpoint.shutdown(world.now, a).unwrap();
    world.run_until(ms(200_000), ended);
    assert_eq!(world.hosts[A].received_bytes(), 70_000);
    assert_eq!(world.hosts[B].received_bytes(), 50_000);
}

//= rfc9260 §9.2
//# no new messages are accepted after SHUTDOWN was requested
#[test]
fn nothing_can_be_sent_after_a_shutdown() {
    let mut world = World::new();
    let (a, _) = world.connected();
    world.send(A, a, 0, vec![1; 50_000]);
    world.hosts[A].endpoint.shutdown(world.now, a).unwrap();
    let late = Bytes::from_static(b"late");
    let sent = world.hosts[A].endpoint.send(world.now, a, &SendInfo::default(), late);
    assert_eq!(sent, Err(Error::WrongState));
}

#[test]
fn received_data_can_be_read_after_the_end() {
    let mut world = World::new();
    world.hosts[B].reads = false;
    let (a, b) = world.connected();
    world.send(A, a, 0, "last words");
    world.hosts[A].endpoint.shutdown(world.now, a).unwrap();
    world.run_for(ms(1000));
    assert_eq!(world.hosts[B].events().last(), Some(&Event::Closed));
    assert_eq!(world.hosts[B].state(), AssociationState::Closed);
    let now = world.now;
    let message = world.hosts[B].endpoint.receive(now, b).unwrap();
    assert_eq!(message.into_bytes(), "last words");
    world.run_for(ms(1));
    assert_eq!(world.hosts[B].endpoint.associations(), []);
}

#[test]
fn shutdown_during_the_handshake_lets_it_complete_first() {
    let mut world = World::new();
    let id = world.connect();
    world.run_for(ms(25));
    assert_eq!(world.hosts[A].state(), AssociationState::CookieEchoed);
    world.hosts[A].endpoint.shutdown(world.now, id).unwrap();
    world.run_for(ms(2000));
    assert_eq!(world.hosts[A].events().last(), Some(&Event::Closed));
    assert_eq!(world.hosts[B].events().last(), Some(&Event::Closed));
}

//= rfc9260 §9.1
//# ABORT is not answered, and carries the user's reason
#[test]
fn an_abort_carries_its_reason() {
    let mut world = World::new();
    let (a, _) = world.connected();
    world.clear_ladder();
    let reason = Bytes::from_static(b"no longer wanted");
    world.hosts[A].endpoint.abort(world.now, a, reason.clone()).unwrap();
    world.run_for(ms(1000));
    assert_eq!(world.tap.ladder, ["A -> B  ABORT"]);
    assert_eq!(world.hosts[A].events().last(), Some(&Event::Lost(LossReason::Aborted)));
    let expected = LossReason::AbortedByPeer { causes: vec![12], reason };
    assert_eq!(world.hosts[B].events().last(), Some(&Event::Lost(expected)));
    assert!(ended(&world));
}

//= hostile sctp-floods
//# silence, also during shutdown
//= bound: `association_max_retrans`, `path_max_retrans`
#[test]
fn a_silent_peer_is_given_up_after_association_max_retrans() {
    let mut world = World::new();
    let (a, _) = world.connected();
    world.network.cut = vec![0];
    world.send(A, a, 0, "anybody there?");
    world.run_for(ms(3_600_000));
    let unreachable = Event::Lost(LossReason::PeerUnreachable);
    assert_eq!(world.hosts[A].events().last(), Some(&unreachable));
}

#[test]
fn a_silent_peer_is_given_up_during_shutdown() {
    let mut world = World::new();
    let (a, _) = world.connected();
    world.network.cut = vec![0];
    world.hosts[A].endpoint.shutdown(world.now, a).unwrap();
    world.run_for(ms(3_600_000));
    let unreachable = Event::Lost(LossReason::PeerUnreachable);
    assert_eq!(world.hosts[A].events().last(), Some(&unreachable));
}

/// `A` is shutting down with data for `B`, which reads none of it.
fn ending_towards_a_closed_window() -> World {
    let mut world = World::with_associations(|config| config.receive_buffer = 20_000);
    world.hosts[B].reads = false;
    let (a, _) = world.connected();
    for _ in 0..100 {
        world.send(A, a, 0, vec![8; 1000]);
    }
    world.run_for(ms(100_000));
    world.hosts[A].endpoint.shutdown(world.now, a).unwrap();
    world
}

//= hostile sctp-floods
//# a zero window during shutdown
//= bound: `shutdown_stall`, `SHUTDOWN_PARTS`
/// The peer answers every window probe, and would do so forever.
#[test]
fn a_peer_that_accepts_nothing_does_not_block_shutdown() {
    let mut world = ending_towards_a_closed_window();
    world.run_for(ms(59_000));
    assert_eq!(world.hosts[A].state(), AssociationState::ShutdownPending);
    world.run_for(ms(2_000));
    assert_eq!(world.hosts[A].events().last(), Some(&Event::Lost(LossReason::Stalled)));
    assert_eq!(world.tap.ladder.last().unwrap(), "A -> B  ABORT");
}

#[test]
fn shutdown_waits_for_a_slow_peer() {
    let mut world = ending_towards_a_closed_window();
    for _ in 0..3 {
        world.run_for(ms(50_000));
        let (now, b) = (world.now, world.hosts[B].only());
        while world.hosts[B].endpoint.receive(now, b).is_some() {}
    }
    assert_eq!(world.hosts[A].state(), AssociationState::ShutdownPending);
    world.hosts[B].reads = true;
    world.run_until(ms(60_000), |world| world.hosts[A].state() == AssociationState::Closed);
    assert_eq!(world.hosts[A].events().last(), Some(&Event::Closed));
}

#[test]
fn the_shutdown_complete_is_repeated_while_the_last_message_is_unread() {
    let mut world = World::new();
    world.hosts[A].reads = false;
    let (a, b) = world.connected();
    world.send(B, b, 0, "read me later");
    world.run_for(ms(500));
    world.lose("SHUTDOWN-COMPLETE");
    world.hosts[A].endpoint.shutdown(world.now, a).unwrap();
    world.run_for(ms(10_000));
    assert!(world.lost_all());
    assert_eq!(world.hosts[B].events().last(), Some(&Event::Closed));
    let now = world.now;
    assert_eq!(world.hosts[A].endpoint.receive(now, a).unwrap().into_bytes(), "read me later");
}
