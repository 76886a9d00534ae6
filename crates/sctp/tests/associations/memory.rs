//! Memory shared by associations: the limit for each shrinks where many use much.

use crate::associations::world::{A, B, World, listening, ms, socket};
use bytes::Bytes;
use eyas_sctp::endpoint::AssociationState;
use eyas_sctp::error::Error;
use eyas_sctp::identifier::{AssociationId, StreamId};
use eyas_sctp::message::SendInfo;

const KIB: usize = 1024;
const ASSOCIATIONS: usize = 30;
/// The size of the messages that [`fill`] sends: the least that every association may queue.
const MESSAGE: usize = 4 * KIB;

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
    for _ in 0..16 {
        let data = Bytes::from(vec![7; MESSAGE]);
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

//= hostile sctp-floods
//# associations that hold much data each
//= bound: `memory`; a source: `SOURCE_FRACTION`; each: `FREE_FRACTION` of what is free, at least
//# `MIN_ALLOWANCE`, in a crowd `MIN_CROWDED_ALLOWANCE`
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
    // They are of one source, which may use a quarter of the memory, half of it in each direction,
    // and each of them takes 4 KiB for itself.
    let share = (2048 * KIB / 4 - ASSOCIATIONS * 4 * KIB) / ASSOCIATIONS / 2;
    let share = share - share % MESSAGE;
    assert!(queued(&world, B).iter().all(|queued| *queued >= share), "{:?}", queued(&world, B));
}

/// All at once, before anything else happens.
#[test]
fn a_burst_of_messages_does_not_fill_the_memory() {
    let mut world = short_of_memory();
    for id in world.hosts[B].endpoint.associations() {
        while fill(&mut world, B, id) && world.hosts[B].endpoint.is_writable(id, MESSAGE) {}
    }
    let held: usize = queued(&world, B).iter().sum();
    assert!(held <= 2048 * KIB + ASSOCIATIONS * 64 * KIB, "{} KiB", held / KIB);
}

/// Messages that are larger than what an association may use are only accepted alone.
#[test]
fn large_messages_to_one_source_wait_for_its_share() {
    const LARGE: usize = 200 * KIB;
    let mut world = short_of_memory();
    let ids = world.hosts[B].endpoint.associations();
    let info = SendInfo { stream: StreamId(1), ..SendInfo::default() };
    let mut sent = 0;
    let mut send_rest = |world: &mut World| {
        while let Some(id) = ids.get(sent) {
            let (now, data) = (world.now, Bytes::from(vec![7; LARGE]));
            match world.hosts[B].endpoint.send(now, *id, &info, data) {
                Ok(()) => sent += 1,
                refused => return assert_eq!(refused, Err(Error::Full)),
            }
        }
    };
    send_rest(&mut world);
    world.run_for(ms(1_000));
    send_rest(&mut world);
    let held: usize = queued(&world, B).iter().sum();
    // A quarter, what may be queued between two counts, and the last message.
    assert!(held <= 2048 * KIB / 4 + 2048 * KIB / 16 + LARGE, "{} KiB", held / KIB);
    // They all get through once the peer reads.
    world.hosts[A].reads = true;
    for _ in 0..600 {
        world.run_for(ms(100));
        send_rest(&mut world);
    }
    let received = world.hosts[A].received_bytes();
    assert_eq!((received, queued(&world, B).iter().sum()), (ASSOCIATIONS * LARGE, 0));
}

//= hostile sctp-floods
//# idle associations of one source
//= bound: `COUNT_FRACTION` of the memory at `ASSOCIATION` each: 32,768
#[test]
fn one_source_cannot_fill_the_memory_with_idle_associations() {
    let mut b = listening();
    b.memory = 1024 * KIB;
    let mut world = World::with(listening(), b);
    for _ in 0..200 {
        world.connect();
    }
    world.run_for(ms(1_000));
    let accepted = world.hosts[B].endpoint.associations().len();
    assert_eq!(accepted, 1024 / 2 / 4, "half of the memory, at 4 KiB each");
    assert_eq!(world.hosts[A].endpoint.associations().len(), accepted, "the others are refused");
    // Another source is not affected, nor is the same one when it has fewer.
    let other = world.connect_with(|options| options.remotes = vec![socket(B, 1)]);
    let first = world.hosts[A].endpoint.associations()[0];
    world.hosts[A].endpoint.shutdown(world.now, first).expect("it is open");
    world.run_for(ms(1_000));
    let next = world.connect();
    world.run_for(ms(1_000));
    for id in [other, next] {
        assert_eq!(world.hosts[A].status(id).state, AssociationState::Established);
    }
}

#[test]
fn a_reading_peer_still_gets_everything() {
    let mut world = short_of_memory();
    let ids = world.hosts[B].endpoint.associations();
    for id in &ids[1..] {
        while fill(&mut world, B, *id) && world.hosts[B].endpoint.is_writable(*id, MESSAGE) {}
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
