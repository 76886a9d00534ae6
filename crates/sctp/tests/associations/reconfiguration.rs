//! Streams reset and added while an association runs (RFC 6525).

use crate::associations::world::{A, B, World, ms};
use crate::network::late;
use eyas_sctp::error::Error;
use eyas_sctp::event::{Event, ReconfigurationOutcome};
use eyas_sctp::identifier::StreamId;

const PERFORMED: ReconfigurationOutcome = ReconfigurationOutcome::Performed;

fn reset(outgoing: bool, streams: &[u16]) -> Event {
    let streams = streams.iter().map(|stream| StreamId(*stream)).collect();
    Event::StreamsReset { outgoing, streams, outcome: PERFORMED }
}

/// The numbers and texts of all messages received on a stream.
fn received(world: &World, host: usize, stream: u16) -> Vec<(u32, String)> {
    let messages = world.hosts[host].received.values().flatten();
    messages
        .filter(|message| message.stream == StreamId(stream))
        .map(|message| {
            let text = String::from_utf8_lossy(&message.clone().into_bytes()).into_owned();
            (message.number, text)
        })
        .collect()
}

//= rfc6525 §6.1
//# notifications of resets are events
#[test]
fn a_stream_is_reset_while_data_flows() {
    for (seed, loss) in [(1, 0), (2, 100), (3, 200)] {
        let mut world = World::new();
        let (a, _) = world.connected();
        world.network.seed(seed);
        world.lose_per_thousand(loss);
        world.change_links(|_, link| link.reordering = late(300, ms(40)));
        for text in ["a", "b", "c"] {
            world.send(A, a, 1, text);
            world.send(A, a, 2, text);
        }
        world.drain();
        world.association(A, a).reset_streams(true, &[StreamId(1)]).unwrap();
        let again = world.association(A, a).reset_streams(true, &[StreamId(2)]);
        assert_eq!(again, Err(Error::Busy));
        world.send(A, a, 1, "d");
        world.send(A, a, 2, "d");
        world.run_until(ms(60_000), |world| {
            world.hosts[B].received_messages() == 8
                && world.hosts[A].events().contains(&reset(true, &[1]))
        });
        let named = |numbers: [u32; 4]| {
            let texts = ["a", "b", "c", "d"].map(String::from);
            numbers.into_iter().zip(texts).collect::<Vec<_>>()
        };
        assert_eq!(received(&world, B, 1), named([0, 1, 2, 0]));
        assert_eq!(received(&world, B, 2), named([0, 1, 2, 3]));
        assert!(world.hosts[B].events().contains(&reset(false, &[1])));
    }
}

#[test]
fn an_unused_stream_waits_for_its_reset_like_any_other() {
    let mut world = World::new();
    let (a, _) = world.connected();
    world.clear_ladder();
    world.lose("A -> B  RE-CONFIG");
    world.association(A, a).reset_streams(true, &[StreamId(5)]).unwrap();
    world.send(A, a, 5, "after it");
    world.run_for(ms(500));
    // It would have a TSN that, according to the reset, was never used on the stream (RFC 6525
    // §5.1.2, A).
    assert_eq!(world.tap.ladder, ["A -> B  RE-CONFIG (lost)"]);
    world.run_until(ms(10_000), |world| world.hosts[B].received_messages() == 1);
    assert!(world.hosts[A].events().contains(&reset(true, &[5])));
    assert_eq!(received(&world, B, 5), [(0, "after it".into())]);
}

//= rfc6525 §5.1.2 A5, §5.1.3 B3, §5.1.4 C3
//# a reset is sent alone
#[test]
fn the_packets_of_a_reset() {
    let mut world = World::new();
    let (a, _) = world.connected();
    world.clear_ladder();
    world.association(A, a).reset_streams(true, &[]).unwrap();
    world.run_for(ms(2000));
    assert_eq!(world.tap.ladder, ["A -> B  RE-CONFIG", "A <- B  RE-CONFIG"]);
    world.clear_ladder();
    world.association(A, a).reset_streams(false, &[StreamId(3)]).unwrap();
    world.run_for(ms(2000));
    assert!(world.hosts[A].events().contains(&reset(false, &[3])), "{:?}", world.hosts[A].events());
}

#[test]
fn a_lost_request_and_a_lost_answer_are_retransmitted() {
    let mut world = World::new();
    let (a, b) = world.connected();
    world.lose("A -> B  RE-CONFIG");
    world.lose("A <- B  RE-CONFIG");
    world.association(A, a).add_streams(10, 0).unwrap();
    let before = world.hosts[B].status(b).inbound_streams;
    world.run_for(ms(30_000));
    assert!(world.lost_all());
    assert_eq!(world.hosts[B].status(b).inbound_streams, before + 10, "it was performed once");
    let added = |event: &Event| matches!(event, Event::StreamsAdded { outcome: PERFORMED, .. });
    assert_eq!(world.hosts[A].events().iter().filter(|event| added(event)).count(), 1);
}

//= rfc6525 §5.2.4 G3
//# what we sent MUST count as acknowledged; the request is "in progress" until it is
//= otherwise: nothing is lost that way
#[test]
fn an_association_is_reset_while_both_sides_send() {
    for (seed, loss) in [(1, 0), (2, 100), (3, 200)] {
        let mut world = World::new();
        let (a, b) = world.connected();
        world.network.seed(seed);
        world.lose_per_thousand(loss);
        for text in ["a", "b"] {
            world.send(A, a, 0, text);
            world.send(B, b, 0, text);
        }
        world.drain();
        world.association(A, a).reset().unwrap();
        for text in ["c", "d"] {
            world.send(A, a, 0, text);
            world.send(B, b, 0, text);
        }
        let done =
            |event: &Event| matches!(event, Event::AssociationReset { outcome: PERFORMED, .. });
        world.run_until(ms(120_000), |world| {
            world
                .hosts
                .iter()
                .all(|host| host.received_messages() == 4 && host.events().iter().any(done))
        });
        for host in [A, B] {
            let texts: Vec<String> =
                received(&world, host, 0).into_iter().map(|one| one.1).collect();
            assert_eq!(texts, ["a", "b", "c", "d"]);
        }
    }
}

//= rfc6525 §5.1.1
//# unanswered requests count as errors of association and destination
#[test]
fn a_peer_that_never_responds_is_given_up() {
    let mut world = World::new();
    let (a, _) = world.connected();
    world.association(A, a).add_streams(10, 0).unwrap();
    world.network.cut = vec![0];
    world.run_for(ms(600_000));
    assert!(matches!(world.hosts[A].events().last(), Some(Event::Lost(_))));
}

//= rfc6525 §5.1.1
//# MUST NOT send requests to a peer without RE-CONFIG; the user gets an error
#[test]
fn an_unnegotiated_reset_is_not_requested() {
    let mut world = World::new();
    let a = world.connect_with(|options| options.association.extensions.reconfiguration = false);
    let (a, _) = world.finish_handshake(a);
    let now = world.now;
    let endpoint = &mut world.hosts[A].endpoint;
    assert_eq!(
        endpoint.association_mut(now, a).unwrap().reset_streams(true, &[]),
        Err(Error::NotSupported)
    );
    assert_eq!(endpoint.association_mut(now, a).unwrap().reset(), Err(Error::NotSupported));
    endpoint.shutdown(now, a).unwrap();
    assert_eq!(endpoint.association_mut(now, a).unwrap().add_streams(1, 1), Err(Error::WrongState));
}
