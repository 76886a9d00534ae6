//! Bulk data: many messages, many streams, all sizes, closing windows.

use crate::associations::world::{A, B, World, ms};
use bytes::Bytes;
use eyas_sctp::error::Error;
use eyas_sctp::event::Event;
use eyas_sctp::identifier::{AssociationId, StreamId};
use eyas_sctp::message::SendInfo;

/// Sends as much as is accepted, and lets time pass until all of it was sent.
fn send_all(
    world: &mut World,
    id: AssociationId,
    messages: impl IntoIterator<Item = (u16, Bytes)>,
) {
    for (stream, data) in messages {
        let info = SendInfo { stream: StreamId(stream), ..SendInfo::default() };
        loop {
            match world.hosts[A].endpoint.send(world.now, id, &info, data.clone()) {
                Ok(()) => break,
                Err(Error::Full) => {
                    let seen = world.hosts[A].events.len();
                    world.run_until(ms(60_000), |world| {
                        world.hosts[A].events[seen..].contains(&(id, Event::Writable))
                    });
                }
                Err(other) => panic!("{other}"),
            }
        }
    }
}

#[test]
fn a_hundred_thousand_messages_on_a_thousand_streams() {
    let mut world = World::new();
    world.change_links(|_, link| link.delay = ms(1));
    let (a, b) = world.connected();
    let messages =
        (0..100_000u32).map(|n| ((n % 1000) as u16, Bytes::copy_from_slice(&n.to_be_bytes())));
    send_all(&mut world, a, messages);
    world.run_until(ms(600_000), |world| world.hosts[B].received_messages() == 100_000);
    let mut next = vec![0u32; 1000];
    for message in &world.hosts[B].received[&b] {
        let stream = message.stream.0 as usize;
        let n = u32::from_be_bytes(message.clone().into_bytes()[..].try_into().unwrap());
        assert_eq!(n, next[stream] * 1000 + stream as u32);
        next[stream] += 1;
    }
}

#[test]
fn messages_of_all_sizes() {
    let sizes = [1, 2, 3, 1399, 1452, 1453, 9000, 65_535, 65_536, 300_000, 1 << 20];
    for interleaving in [true, false] {
        let mut world = World::with_associations(|config| {
            config.extensions.interleaving = interleaving;
        });
        let (a, b) = world.connected();
        let pattern = |size: usize| -> Bytes { (0..size).map(|at| (at % 251) as u8).collect() };
        send_all(&mut world, a, sizes.iter().map(|size| (0, pattern(*size))));
        let total: usize = sizes.iter().sum();
        world.run_until(ms(600_000), |world| world.hosts[B].received_bytes() == total);
        world.run_for(ms(1000));
        let mut whole = Vec::new();
        let mut lengths = Vec::new();
        for message in &world.hosts[B].received[&b] {
            whole.extend_from_slice(&message.clone().into_bytes());
            if message.ends {
                lengths.push(whole.len());
                assert_eq!(whole, pattern(whole.len()));
                whole.clear();
            }
        }
        assert_eq!(lengths, sizes);
    }
}

#[test]
fn a_closed_window_reopens() {
    let mut world = World::with_associations(|config| config.receive_buffer = 20_000);
    world.hosts[B].reads = false;
    let (a, b) = world.connected();
    for _ in 0..100 {
        world.send(A, a, 0, vec![8; 1000]);
    }
    world.run_for(ms(60_000));
    assert_eq!(world.hosts[A].status(a).peer_window, 0, "{:?}", world.hosts[A].status(a));
    assert!(world.hosts[B].status(b).window < 1500);
    assert!(!world.hosts[A].events().iter().any(|event| matches!(event, Event::Lost(_))));
    world.hosts[B].reads = true;
    world.run_until(ms(60_000), |world| world.hosts[B].received_bytes() == 100_000);
}

//= rfc9260 §6.1 A
//# answered probes of a closed window SHOULD NOT count as errors
#[test]
fn a_closed_window_is_probed_for_as_long_as_the_peer_answers() {
    let mut world = World::with_associations(|config| config.receive_buffer = 20_000);
    world.hosts[B].reads = false;
    let (a, _) = world.connected();
    for _ in 0..40 {
        world.send(A, a, 0, vec![8; 1000]);
    }
    world.run_for(ms(3_600_000));
    assert!(!world.hosts[A].events().iter().any(|event| matches!(event, Event::Lost(_))));
    world.hosts[B].reads = true;
    world.run_until(ms(120_000), |world| world.hosts[B].received_bytes() == 40_000);
}

#[test]
fn a_tail_shares_its_packet_with_the_next_head() {
    let mut world = World::with_associations(|config| config.extensions.interleaving = false);
    let (a, _) = world.connected();
    send_all(&mut world, a, (0..400).map(|_| (0, Bytes::from(vec![1; 1452]))));
    world.run_for(ms(10_000));
    world.clear_ladder();
    send_all(&mut world, a, (0..400).map(|_| (0, Bytes::from(vec![1; 1452]))));
    world.run_for(ms(10_000));
    let packets = world.tap.ladder.iter().filter(|line| line.contains("-> B  DATA")).count();
    let full = 400 * (1452 + 16) / (1472 - 12);
    assert!(packets <= full * 105 / 100, "{packets} packets where {full} are full");
    assert_eq!(world.hosts[B].received_messages(), 800);
}

#[test]
fn parts_of_unordered_messages_do_not_mix() {
    let mut world = World::with_associations(|config| {
        config.extensions.interleaving = false;
        config.partial_delivery_point = Some(5000);
    });
    let (a, b) = world.connected();
    for fill in [1, 2] {
        let info = SendInfo { unordered: true, ..SendInfo::default() };
        let data = Bytes::from(vec![fill; 30_000]);
        world.hosts[A].endpoint.send(world.now, a, &info, data).unwrap();
    }
    // A part of the first message has arrived when another part is lost.
    world.run_for(ms(35));
    world.lose("DATA");
    world.run_until(ms(10_000), |world| world.hosts[B].received_bytes() == 60_000);
    assert!(world.lost_all());
    let received = &world.hosts[B].received[&b];
    assert!(received.len() > 2, "it arrived in parts");
    let mut open: Option<u8> = None;
    for message in received {
        let fill = message.clone().into_bytes()[0];
        assert_eq!(open.is_none(), message.begins);
        assert!(open.is_none_or(|other| other == fill), "a part of another message");
        open = (!message.ends).then_some(fill);
    }
}
