//! Data in both directions (RFC 9260 §6), and shutdown (§9.2).

use crate::associations::world::{A, B, World, ms};
use crate::network::{late, lost};
use eyas_sctp::endpoint::AssociationState;
use eyas_sctp::event::Event;
use eyas_sctp::message::largest_in_packet;

#[test]
fn a_message_is_acknowledged() {
    let mut world = World::new();
    let (a, b) = world.connected();
    world.clear_ladder();
    world.send(A, a, 3, "hello");
    world.run_for(ms(500));
    assert_eq!(world.tap.ladder[..2], ["A -> B  I-DATA", "A <- B  SACK"]);
    let received = &world.hosts[B].received[&b];
    assert_eq!(received.len(), 1);
    assert_eq!(received[0].stream.0, 3);
    assert_eq!(received[0].clone().into_bytes(), "hello");
    assert!(world.hosts[A].events().contains(&Event::SenderDry));
}

#[test]
fn a_message_of_the_size_that_the_paths_tell_fills_one_packet() {
    for interleaving in [false, true] {
        let mut world = World::with_associations(|config| {
            config.extensions.interleaving = interleaving;
        });
        let (a, _) = world.connected();
        let status = world.hosts[A].status(a);
        let whole = status.largest_message();
        assert_eq!(whole, largest_in_packet(status.paths[0].mtu, interleaving));
        for (length, packets) in [(whole - 1, 1), (whole, 1), (whole + 1, 2)] {
            world.clear_ladder();
            world.send(A, a, 0, vec![1; length]);
            world.run_for(ms(500));
            let sent = world.tap.ladder.iter().filter(|line| line.starts_with("A -> B"));
            assert_eq!(sent.count(), packets, "{length} bytes: {:?}", world.tap.ladder);
        }
    }
    let mut world = World::with_associations(|config| config.max_segment = Some(700));
    let (a, _) = world.connected();
    assert_eq!(world.hosts[A].status(a).largest_message(), 700, "in one chunk");
}

#[test]
fn data_flows_both_ways() {
    let mut world = World::new();
    let (a, b) = world.connected();
    for n in 0..200u32 {
        let data = vec![n as u8; 100 + 37 * n as usize];
        world.send(A, a, (n % 7) as u16, data.clone());
        world.send(B, b, (n % 5) as u16, data);
    }
    world.run_until(ms(20_000), |world| {
        world.hosts.iter().all(|host| host.received_messages() == 200)
    });
    for host in &world.hosts {
        let mut seen = [0usize; 7];
        for message in host.received.values().flatten() {
            let n = message.clone().into_bytes()[0] as usize;
            assert_eq!(message.len(), 100 + 37 * n);
            assert!(n >= seen[message.stream.0 as usize], "in order within its stream");
            seen[message.stream.0 as usize] = n;
        }
    }
}

#[test]
fn all_data_survives_packet_loss() {
    for seed in 0..8 {
        let mut world = World::new();
        world.network.seed(seed);
        let (a, b) = world.connected();
        world.change_links(|_, link| {
            (link.loss, link.duplication, link.reordering) = (lost(50), 0.05, late(200, ms(40)));
        });
        for n in 0..200u32 {
            world.send(A, a, (n % 7) as u16, vec![n as u8; 1 + 41 * n as usize]);
            world.send(B, b, 0, n.to_be_bytes().to_vec());
        }
        world.run_until(ms(200_000), |world| {
            world.hosts.iter().all(|host| host.received_messages() >= 200)
        });
        world.run_for(ms(10_000));
        assert_eq!(world.hosts[A].received_messages(), 200);
        assert_eq!(world.hosts[B].received_messages(), 200);
        let numbers = world.hosts[A].received[&a].iter().map(|m| m.clone().into_bytes());
        assert!(numbers.map(|n| n.to_vec()).eq((0..200u32).map(|n| n.to_be_bytes().to_vec())));
    }
}

//= rfc9260 §9.2
//# SHUTDOWN once everything is acknowledged
#[test]
fn shutdown_waits_for_all_data() {
    let mut world = World::new();
    let (a, _) = world.connected();
    world.send(A, a, 0, vec![1; 100_000]);
    world.hosts[A].endpoint.shutdown(world.now, a).unwrap();
    world.run_for(ms(5000));
    assert_eq!(world.hosts[B].received_bytes(), 100_000);
    assert_eq!(world.hosts[A].events().last(), Some(&Event::Closed));
    assert_eq!(world.hosts[B].events().last(), Some(&Event::Closed));
    assert_eq!(world.hosts[A].state(), AssociationState::Closed);
    let end = &world.tap.ladder[world.tap.ladder.len() - 3..];
    assert_eq!(end, ["A -> B  SHUTDOWN", "A <- B  SHUTDOWN-ACK", "A -> B  SHUTDOWN-COMPLETE"]);
}
