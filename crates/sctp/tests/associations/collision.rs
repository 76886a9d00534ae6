//! INIT and COOKIE ECHO for an association that already exists (RFC 9260 §5.2).

use crate::associations::world::{A, B, PORT, UDP, World, listening, ms, socket};
use eyas_sctp::config::ConnectOptions;
use eyas_sctp::endpoint::{AssociationState, Endpoint};
use eyas_sctp::event::Event;

fn to(host: usize) -> ConnectOptions {
    let mut options = ConnectOptions::new(socket(host, 0), PORT);
    options.local_port = PORT;
    options.association = crate::associations::world::quiet();
    options
}

//= rfc9260 §5.2.1
//# INIT in COOKIE-WAIT or COOKIE-ECHOED: INIT ACK with the same tag
#[test]
fn both_sides_may_initiate_at_once() {
    for head_start in [0, 1, 5, 9, 10, 15, 20, 25, 30, 35] {
        let mut world = World::new();
        let a = world.hosts[A].endpoint.connect(world.now, &to(B)).unwrap();
        world.run_for(ms(head_start));
        // From 30 ms on, A's association exists and occupies the ports.
        let b = world.hosts[B].endpoint.connect(world.now, &to(A));
        assert_eq!(b.is_ok(), head_start < 30, "{head_start} ms");
        world.run_for(ms(10_000));
        assert_eq!(world.hosts[A].state(), AssociationState::Established, "{head_start} ms");
        assert_eq!(world.hosts[B].state(), AssociationState::Established, "{head_start} ms");
        let b = world.hosts[B].only();
        world.send(A, a, 0, "from a");
        world.send(B, b, 0, "from b");
        world.run_for(ms(1000));
        assert_eq!(world.hosts[A].received_messages(), 1, "{head_start} ms");
        assert_eq!(world.hosts[B].received_messages(), 1, "{head_start} ms");
        let ups = world.hosts.iter().flat_map(|host| host.events());
        assert_eq!(ups.filter(|event| matches!(event, Event::Up { .. })).count(), 2);
    }
}

//= rfc9260 §5.2.2, §5.2.4
//# INIT and COOKIE ECHO for an existing association: Tie-Tags, and a table of four rows
#[test]
fn a_peer_that_restarted_is_recognised() {
    let mut world = World::new();
    let first = world.connect_with(|options| options.local_port = 5000);
    let (_, b) = world.finish_handshake(first);
    world.send(B, b, 0, vec![3; 3000]);
    world.run_for(ms(1000));
    // The host restarts without state, from the same port.
    let old = std::mem::replace(
        &mut world.hosts[A].endpoint,
        Endpoint::new(listening(), [9; 32], world.now),
    );
    drop(old);
    world.clear_ladder();
    let a = world.connect_with(|options| options.local_port = 5000);
    world.run_for(ms(1000));
    assert_eq!(
        world.tap.ladder[..4],
        ["A -> B  INIT", "A <- B  INIT-ACK", "A -> B  COOKIE-ECHO", "A <- B  COOKIE-ACK",]
    );
    assert_eq!(world.hosts[B].events().last(), Some(&Event::Restarted));
    assert_eq!(world.hosts[B].only(), b, "it is the same association for its user");
    world.send(A, a, 0, "back");
    world.send(B, b, 0, "so I see");
    world.run_for(ms(1000));
    assert_eq!(world.hosts[B].received[&b].last().unwrap().clone().into_bytes(), "back");
    assert_eq!(world.hosts[A].received[&a].last().unwrap().clone().into_bytes(), "so I see");
}

//= rfc9260 §5.2.2
//# INIT with new addresses: ABORT, Restart with New Addresses
#[test]
fn a_restart_from_another_address_is_refused() {
    let mut world = World::new();
    let first = world.connect_with(|options| options.local_port = 5000);
    world.finish_handshake(first);
    let mut config = listening();
    config.addresses =
        vec![crate::associations::world::address(A, 0), crate::associations::world::address(A, 3)];
    world.hosts[A].endpoint = Endpoint::new(config, [9; 32], world.now);
    world.hosts[A].events.clear();
    world.clear_ladder();
    world.connect_with(|options| options.local_port = 5000);
    world.run_for(ms(100));
    assert_eq!(world.tap.ladder, ["A -> B  INIT", "A <- B  ABORT"]);
    assert_eq!(world.hosts[B].state(), AssociationState::Established);
}

//= rfc9260 §5.2.4.1
//# a restart in SHUTDOWN-ACK-SENT: SHUTDOWN ACK and ERROR
#[test]
fn a_restart_during_shutdown_waits_for_its_end() {
    let mut world = World::new();
    let first = world.connect_with(|options| options.local_port = 5000);
    world.finish_handshake(first);
    world.hosts[A].endpoint.shutdown(world.now, first).unwrap();
    world.lose("SHUTDOWN-COMPLETE");
    world.run_for(ms(100));
    assert_eq!(world.hosts[B].state(), AssociationState::ShutdownAckSent);
    world.clear_ladder();
    let second = world.connect_with(|options| options.local_port = 5000);
    world.run_for(ms(10_000));
    assert_eq!(
        world.tap.ladder[..3],
        ["A -> B  INIT", "A <- B  SHUTDOWN-ACK", "A -> B  SHUTDOWN-COMPLETE"]
    );
    world.finish_handshake(second);
}

//= rfc9260 §5.2.4 D
//# a second COOKIE ECHO is acknowledged again
#[test]
fn a_second_cookie_echo_is_acknowledged_again() {
    let mut world = World::new();
    world.network.seed(1);
    world.change_links(|_, link| link.duplication = 1.0);
    let (a, b) = world.connected();
    world.run_for(ms(2000));
    world.send(A, a, 0, "x");
    world.send(B, b, 0, "y");
    world.run_for(ms(2000));
    assert_eq!(world.hosts[A].received_messages(), 1);
    assert_eq!(world.hosts[B].received_messages(), 1);
    assert_eq!(UDP, 9899);
}
