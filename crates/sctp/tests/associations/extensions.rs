//! Extensions that are used only if both sides offer them.

use crate::associations::world::{A, B, World, listening, ms};
use eyas_sctp::config::EndpointConfig;
use eyas_sctp::endpoint::AssociationState;
use eyas_sctp::event::Event;
use eyas_sctp::identifier::StreamId;
use eyas_sctp::message::{MessageReliability, SendInfo};

/// `A` and `B`, each with its own configuration.
fn between(a: impl Fn(&mut EndpointConfig), b: impl Fn(&mut EndpointConfig)) -> World {
    let (mut first, mut second) = (listening(), listening());
    a(&mut first);
    b(&mut second);
    World::with(first, second)
}

//= rfc3758 §3.3.2
//# INIT ACK includes it only if the INIT did; RFC 5061's list counts as well; `Status::agreed` says
#[test]
fn an_extension_needs_both_sides() {
    for (ours, theirs) in [(true, false), (false, true), (true, true)] {
        let set = |config: &mut EndpointConfig, on: bool| {
            let extensions = &mut config.association.extensions;
            extensions.interleaving = on;
            extensions.partial_reliability = on;
            extensions.reconfiguration = on;
            extensions.nr_sack = on;
            extensions.ecn = on;
            extensions.zero_checksum = on;
        };
        let mut world = between(|config| set(config, ours), |config| set(config, theirs));
        let (a, b) = world.connected();
        for (host, id) in [(A, a), (B, b)] {
            let agreed = world.hosts[host].status(id).agreed;
            let on = ours && theirs;
            assert_eq!(agreed.interleaving, on);
            assert_eq!(agreed.partial_reliability, on);
            assert_eq!(agreed.reconfiguration, on);
            assert_eq!(agreed.nr_sack, on);
            assert_eq!(agreed.ecn, on);
            assert_eq!(agreed.zero_checksum, on);
        }
        world.send(A, a, 0, vec![0; 5000]);
        world.send(B, b, 0, vec![0; 5000]);
        world.run_for(ms(1000));
        assert_eq!(world.hosts[A].received_bytes(), 5000);
        assert_eq!(world.hosts[B].received_bytes(), 5000);
    }
}

//= rfc8260 §2, §2.2.1
//# I-DATA for all messages if both list it, otherwise DATA
#[test]
fn interleaving_determines_the_chunk_type() {
    for (on, line) in [(true, "A -> B  I-DATA"), (false, "A -> B  DATA")] {
        let mut world = World::with_associations(|config| config.extensions.interleaving = on);
        let (a, _) = world.connected();
        world.clear_ladder();
        world.send(A, a, 0, "x");
        world.run_for(ms(100));
        assert_eq!(world.tap.ladder[0], line);
    }
}

//= rfc3758 §3.5 C3, F3
//# once the point has moved, FORWARD TSN is sent at once, to a confirmed address
#[test]
fn abandoned_messages_are_skipped() {
    for interleaving in [true, false] {
        let mut world =
            World::with_associations(|config| config.extensions.interleaving = interleaving);
        let (a, b) = world.connected();
        let mut info = SendInfo { stream: StreamId(4), context: 77, ..SendInfo::default() };
        info.reliability = MessageReliability::Lifetime(ms(15));
        world.lose("DATA");
        let endpoint = &mut world.hosts[A].endpoint;
        endpoint.send(world.now, a, &info, "too late".into()).unwrap();
        world.run_for(ms(1));
        world.send(A, a, 4, "in time");
        world.run_for(ms(10_000));
        let received = &world.hosts[B].received[&b];
        assert_eq!(received.len(), 1);
        assert_eq!(received[0].clone().into_bytes(), "in time");
        let forward = if interleaving { "I-FORWARD-TSN" } else { "B  FORWARD-TSN" };
        assert!(
            world.tap.ladder.iter().any(|line| line.contains(forward)),
            "{:?}",
            world.tap.ladder
        );
        let failed = |event: &Event| {
            matches!(event, Event::SendFailed { stream: StreamId(4), context: 77, sent: true, data, .. }
                if data == "too late")
        };
        assert!(world.hosts[A].events().iter().any(failed));
        assert_eq!(world.hosts[A].status(a).queued, 0);
    }
}

/// A peer that acknowledges what is skipped is there, even if none of the data arrives: each SACK
/// that advances the cumulative TSN resets the error count (RFC 9260 §8.1, RFC 3758 §3.5).
#[test]
fn hundreds_of_skips_do_not_end_the_association_of_the_sender() {
    for interleaving in [true, false] {
        for reliability in
            [MessageReliability::Lifetime(ms(15)), MessageReliability::Retransmissions(0)]
        {
            let mut world =
                World::with_associations(|config| config.extensions.interleaving = interleaving);
            let (a, b) = world.connected();
            let mut info = SendInfo { stream: StreamId(4), ..SendInfo::default() };
            info.reliability = reliability;
            for count in 0..200 {
                world.lose("DATA");
                let endpoint = &mut world.hosts[A].endpoint;
                endpoint.send(world.now, a, &info, "lost".into()).unwrap();
                world.run_until(ms(200_000), |world| world.hosts[A].status(a).queued == 0);
                let state = world.hosts[A].state();
                assert_eq!(state, AssociationState::Established, "{count} {reliability:?}");
            }
            world.send(A, a, 4, "arrives");
            world.run_for(ms(1_000));
            assert_eq!(world.hosts[B].received[&b].len(), 1);
        }
    }
}

#[test]
fn congestion_marks_slow_the_sender_and_are_confirmed() {
    let mut world = World::with_associations(|config| config.extensions.ecn = true);
    let (a, _) = world.connected();
    world.send(A, a, 0, vec![0; 300_000]);
    world.run_for(ms(100));
    let window = |world: &World| world.hosts[A].status(a).paths[0].congestion_window;
    let mut windows = Vec::new();
    for step in 0..80 {
        world.tap.congested = step < 20;
        world.run_for(ms(1));
        windows.push(window(&world));
    }
    assert!(!windows.is_sorted(), "it only grew: {windows:?}");
    assert!(world.tap.ladder.iter().any(|line| line.contains("<- B") && line.contains("ECNE")));
    assert!(world.tap.ladder.iter().any(|line| line.contains("-> B") && line.contains("CWR")));
    world.run_for(ms(5000));
    assert_eq!(world.hosts[B].received_bytes(), 300_000);
    let echoes =
        |world: &World| world.tap.ladder.iter().filter(|line| line.contains("ECNE")).count();
    let already_sent = echoes(&world);
    world.send(A, a, 0, vec![0; 50_000]);
    world.run_for(ms(2000));
    assert_eq!(echoes(&world), already_sent, "the CWR ended it");
}

//= rfc8261 RFC 9653 §5
//# after the handshake no checksum, if both sides say so
//= rfc9653 §5.2
//# packets with INIT and COOKIE ECHO MUST have a correct checksum, and so MUST all if the peer has not said that it accepts zero
#[test]
fn without_checksums_only_handshake_packets_have_them() {
    let mut world = World::with_associations(|config| config.extensions.zero_checksum = true);
    world.tap.keep = Some("I-DATA");
    let (a, _) = world.connected();
    world.send(A, a, 0, "unchecked");
    world.run_for(ms(500));
    assert_eq!(world.tap.kept.as_ref().unwrap()[8..12], [0; 4]);
    assert_eq!(world.hosts[B].received_messages(), 1);
    for handshake in ["INIT", "COOKIE-ECHO"] {
        world.tap.keep = Some(handshake);
        world.tap.kept = None;
        world.connect();
        world.run_for(ms(50));
        assert_ne!(world.tap.kept.as_ref().expect(handshake)[8..12], [0; 4], "{handshake}");
    }
}

#[test]
fn nr_sacks_free_delivered_data() {
    let mut world = World::with_associations(|config| config.extensions.nr_sack = true);
    let (a, _) = world.connected();
    world.lose("DATA");
    world.send(A, a, 0, vec![1; 1000]);
    world.run_for(ms(1));
    for _ in 0..5 {
        world.send(A, a, 1, vec![2; 1000]);
    }
    world.run_for(ms(50));
    assert!(world.tap.ladder.iter().any(|line| line.contains("NR-SACK")), "{:?}", world.tap.ladder);
    world.run_for(ms(5000));
    assert_eq!(world.hosts[B].received_bytes(), 6000);
}
