//! Memory shared by associations: the limit for each shrinks where many use much.

use crate::associations::world::{A, B, World, listening, ms};
use bytes::Bytes;
use eyas_sctp::error::Error;
use eyas_sctp::identifier::{AssociationId, StreamId};
use eyas_sctp::message::SendInfo;

const KIB: usize = 1024;
const ASSOCIATIONS: usize = 30;

/// `A` has opened associations to `B`, which has little memory and reads nothing.
fn short_of_memory() -> World {
    let mut b = listening();
    b.memory = 2048 * KIB;
    b.association.send_buffer = 1024 * KIB;
    let mut a = listening();
    a.association.receive_buffer = 20 * KIB;
    let mut world = World::with(a, b);
    world.hosts[A].reads = false;
    for _ in 0..ASSOCIATIONS {
        world.connect();
    }
    world.run_for(ms(1_000));
    assert_eq!(world.hosts[B].endpoint.associations().len(), ASSOCIATIONS);
    world
}

/// Queues as much as is accepted now; returns whether more would be accepted later.
fn fill(world: &mut World, host: usize, id: AssociationId) -> bool {
    let now = world.now;
    let info = SendInfo { stream: StreamId(1), ..SendInfo::default() };
    for _ in 0..4 {
        let data = Bytes::from(vec![7; 16 * KIB]);
        match world.hosts[host].endpoint.send(now, id, &info, data) {
            Ok(()) => {}
            refused => return refused == Err(Error::Full),
        }
    }
    true
}

fn queued(world: &World, host: usize) -> Vec<usize> {
    let ids = world.hosts[host].endpoint.associations();
    ids.into_iter().map(|id| world.hosts[host].status(id).queued).collect()
}

#[test]
fn peers_that_accept_nothing_do_not_fill_the_memory() {
    let mut world = short_of_memory();
    for _ in 0..200 {
        for id in world.hosts[B].endpoint.associations() {
            assert!(fill(&mut world, B, id));
        }
        world.run_for(ms(100));
    }
    let held: usize = queued(&world, B).iter().sum();
    let least = ASSOCIATIONS * 64 * KIB;
    assert!(held <= 2048 * KIB + least, "{} KiB", held / KIB);
    // They are of one source, which may use a quarter, half of it in each direction.
    let share = 2048 * KIB / 4 / ASSOCIATIONS / 2;
    assert!(queued(&world, B).iter().all(|queued| *queued >= share), "{:?}", queued(&world, B));
}

/// All at once, before anything else happens.
#[test]
fn a_burst_of_messages_does_not_fill_the_memory() {
    let mut world = short_of_memory();
    for id in world.hosts[B].endpoint.associations() {
        while fill(&mut world, B, id) && world.hosts[B].endpoint.is_writable(id, 16 * KIB) {}
    }
    let held: usize = queued(&world, B).iter().sum();
    assert!(held <= 2048 * KIB + ASSOCIATIONS * 64 * KIB, "{} KiB", held / KIB);
}

#[test]
fn a_reading_peer_still_gets_everything() {
    let mut world = short_of_memory();
    let ids = world.hosts[B].endpoint.associations();
    for id in &ids[1..] {
        while fill(&mut world, B, *id) && world.hosts[B].endpoint.is_writable(*id, 16 * KIB) {}
    }
    let before = world.hosts[A].received_bytes();
    world.hosts[A].reads = true;
    for _ in 0..100 {
        assert!(fill(&mut world, B, ids[0]));
        world.run_for(ms(100));
    }
    assert!(world.hosts[A].received_bytes() > before + 1024 * KIB);
    // The limits are back to normal once no memory is in use.
    world.run_until(ms(60_000), |world| queued(world, B).iter().sum::<usize>() == 0);
    world.run_for(ms(1_000));
    assert!(world.hosts[B].endpoint.is_writable(ids[0], 1024 * KIB));
}

#[test]
fn windows_shrink_and_sent_data_still_arrives() {
    let mut b = listening();
    b.memory = 512 * KIB;
    let mut world = World::with(listening(), b);
    world.hosts[B].reads = false;
    let ids: Vec<_> = (0..8).map(|_| world.connect()).collect();
    world.run_for(ms(1_000));
    let mut sent = 0;
    let info = SendInfo { stream: StreamId(1), ..SendInfo::default() };
    for _ in 0..40 {
        for id in &ids {
            // Longer than an association may buffer.
            let data = Bytes::from(vec![7; 200 * KIB]);
            let now = world.now;
            if world.hosts[A].endpoint.send(now, *id, &info, data).is_ok() {
                sent += 200 * KIB;
            }
        }
        world.run_for(ms(100));
    }
    let windows = world.hosts[B].endpoint.associations();
    let held: usize =
        windows.iter().map(|id| (1 << 20) - world.hosts[B].status(*id).window as usize).sum();
    assert!(held > 0);
    assert!(windows.iter().all(|id| world.hosts[B].status(*id).window <= 64 * KIB as u32));
    world.hosts[B].reads = true;
    for id in windows {
        let now = world.now;
        while world.hosts[B].endpoint.receive(now, id).is_some_and(|message| {
            world.hosts[B].received.entry(id).or_default().push(message);
            true
        }) {}
    }
    world.run_until(ms(600_000), |world| world.hosts[B].received_bytes() == sent);
}
