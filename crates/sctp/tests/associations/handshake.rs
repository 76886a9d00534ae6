//! The handshake (RFC 9260 §5.1), with each packet lost in turn, and the resulting state.

use crate::associations::world::{A, B, Wiretap, World, listening, ms, multihomed, socket};
use eyas_sctp::endpoint::{AssociationState, PathState};
use eyas_sctp::event::{Event, LossReason};
use eyas_sctp::identifier::VerificationTag;
use eyas_sctp::io::{Input, Unreachable};
use eyas_sctp::wire::{ChecksumKind, Chunk, InitChunk, PacketParser};
use std::collections::BTreeSet;
use std::time::Duration;

fn up(by_peer: bool) -> Event {
    Event::Up { outbound: 1024, inbound: 1024, by_peer }
}

//= rfc9260 §5.1.1, §5.1.2
//# the lesser number of streams; INIT ACK goes to the source of the INIT
#[test]
fn four_packets_establish_an_association() {
    let mut world = World::new();
    world.connected();
    assert_eq!(
        world.tap.ladder[..4],
        ["A -> B  INIT", "A <- B  INIT-ACK", "A -> B  COOKIE-ECHO", "A <- B  COOKIE-ACK",]
    );
    assert_eq!(world.now, ms(40));
    assert_eq!(world.hosts[A].events(), [Event::Answered, up(false)]);
    assert_eq!(world.hosts[B].events(), [up(true)]);
}

#[test]
fn no_state_is_kept_before_the_cookie_is_returned() {
    let mut world = World::new();
    world.lose("COOKIE-ECHO");
    world.connect();
    world.run_for(ms(100));
    assert_eq!(world.hosts[B].endpoint.associations(), []);
    assert_eq!(world.hosts[A].state(), AssociationState::CookieEchoed);
}

#[test]
fn each_handshake_packet_may_get_lost() {
    for lost in ["INIT", "INIT-ACK", "COOKIE-ECHO", "COOKIE-ACK"] {
        let mut world = World::new();
        world.lose(lost);
        world.connected();
        assert!(world.lost_all(), "{lost}");
        assert!(world.now >= ms(1000), "{lost} is made up for by T1: {:?}", world.now);
        assert_eq!(world.hosts[A].events(), [Event::Answered, up(false)], "{lost}");
        assert_eq!(world.hosts[B].events(), [up(true)], "{lost}");
    }
}

//= rfc9260 §5.1
//# INIT and COOKIE ECHO are retransmitted up to Max.Init.Retransmits, to the next address each time
#[test]
fn silence_ends_after_max_init_retransmits() {
    let mut world = World::new();
    world.network.cut = vec![0];
    let id = world.connect();
    world.run_for(Duration::from_secs(1000));
    assert_eq!(world.hosts[A].events, [(id, Event::Lost(LossReason::NoAnswer))]);
    assert_eq!(world.tap.ladder.len(), 9, "one INIT and eight more");
    assert_eq!(world.hosts[A].endpoint.associations(), []);
}

#[test]
fn max_init_timeout_limits_the_timeouts_after_the_first() {
    let mut config = listening();
    config.association.rto_initial = ms(3000);
    config.association.max_init_retransmits = 2;
    config.association.max_init_timeout = Some(ms(300));
    let mut world = World::with(config, listening());
    world.network.cut = vec![0];
    let id = world.connect();
    world.run_for(ms(3599));
    assert_eq!(world.hosts[A].events, []);
    world.run_for(ms(1));
    assert_eq!(world.hosts[A].events, [(id, Event::Lost(LossReason::NoAnswer))]);
    assert_eq!(world.tap.ladder.len(), 3);
}

//= rfc9260 §5.1, §5.1.5
//# COOKIE ECHO and COOKIE ACK come first in their packets
#[test]
fn early_messages_are_bundled_with_the_cookie() {
    let mut world = World::new();
    let a = world.connect();
    world.send(A, a, 0, "early");
    world.run_for(ms(500));
    assert_eq!(
        world.tap.ladder[..4],
        [
            "A -> B  INIT",
            "A <- B  INIT-ACK",
            "A -> B  COOKIE-ECHO I-DATA",
            "A <- B  COOKIE-ACK SACK",
        ]
    );
    assert_eq!(world.hosts[B].received_messages(), 1);
}

#[test]
fn early_data_arrives_once_although_the_cookie_is_lost() {
    for lost in ["COOKIE-ECHO", "COOKIE-ACK"] {
        let mut world = World::new();
        world.lose(lost);
        let a = world.connect();
        world.send(A, a, 0, "early");
        world.run_for(ms(5000));
        assert_eq!(world.hosts[B].received_messages(), 1, "{lost}");
        assert_eq!(world.hosts[A].status(a).queued, 0, "{lost}");
    }
}

#[test]
fn an_icmp_error_can_end_a_handshake() {
    let mut world = World::new();
    world.network.cut = vec![0];
    let id = world.connect();
    world.run_for(ms(5));
    let (remote, reason) = (socket(B, 0), Unreachable::Protocol);
    let report = Input::Unreachable { remote, reason, quoted: None };
    world.hosts[A].endpoint.handle_input(world.now, report);
    world.run_for(ms(5));
    let refused = Event::Lost(LossReason::Refused(Unreachable::Protocol));
    assert_eq!(world.hosts[A].events, [(id, refused)]);
}

#[test]
fn an_icmp_error_for_one_address_moves_on_to_the_next() {
    let mut world = World::new();
    world.network.cut = vec![0];
    let id = world.connect_with(|options| options.remotes.push(socket(B, 1)));
    world.run_for(ms(5));
    let (remote, reason) = (socket(B, 0), Unreachable::Route);
    let report = Input::Unreachable { remote, reason, quoted: None };
    world.hosts[A].endpoint.handle_input(world.now, report);
    world.finish_handshake(id);
    assert_eq!(world.now, ms(45));
    assert_eq!(world.hosts[A].status(id).paths.len(), 1);
}

#[test]
fn the_next_address_is_tried_when_one_is_silent() {
    let mut world = World::new();
    world.network.cut = vec![0];
    let id = world.connect_with(|options| options.remotes.push(socket(B, 1)));
    world.finish_handshake(id);
    assert_eq!(world.tap.ladder[..2], ["A -> B  INIT (lost)", "A -> B  INIT (network 1)"]);
}

#[test]
fn a_cookie_stays_valid_for_its_own_association() {
    let mut world = World::new();
    // Longer than a cookie's lifetime: 63 s pass until the seventh COOKIE ECHO.
    for _ in 0..6 {
        world.lose("COOKIE-ACK");
    }
    let a = world.connect();
    world.send(A, a, 0, "early");
    world.finish_handshake_within(a, ms(70_000));
    world.run_for(ms(10_000));
    assert!(world.lost_all());
    assert_eq!(world.hosts[B].endpoint.counters().stale_cookies, 0);
    assert_eq!(world.hosts[A].events()[..2], [Event::Answered, up(false)]);
    assert_eq!(world.hosts[B].received_messages(), 1);
    assert_eq!(world.hosts[B].endpoint.associations().len(), 1);
}

#[test]
fn the_cookie_is_sent_to_another_address_if_the_first_is_silent() {
    let mut world = World::with(multihomed(A, 2), multihomed(B, 2));
    let a = world.connect();
    world.send(A, a, 0, "early");
    world.run_for(ms(15));
    world.network.cut = vec![0];
    let (_, b) = world.finish_handshake(a);
    assert_eq!(
        world.tap.ladder[..5],
        [
            "A -> B  INIT",
            "A <- B  INIT-ACK",
            "A -> B  COOKIE-ECHO I-DATA (lost)",
            // The address is not verified yet: no data, and a heartbeat (RFC 9260 §5.4).
            "A -> B  COOKIE-ECHO HEARTBEAT (network 1)",
            "A <- B  COOKIE-ACK HEARTBEAT HEARTBEAT-ACK (network 1)",
        ]
    );
    assert_eq!(world.now, ms(1040));
    for (host, id) in [(A, a), (B, b)] {
        world.run_for(ms(50));
        assert_eq!(world.hosts[host].status(id).paths[1].state, PathState::Active);
    }
    world.run_for(ms(10_000));
    assert_eq!(world.hosts[B].received_messages(), 1);
}

#[test]
fn no_init_is_sent_to_an_unconfirmed_address() {
    let mut world = World::with(multihomed(A, 2), multihomed(B, 2));
    let a = world.connect();
    world.run_for(ms(15));
    world.network.cut = vec![0, 1];
    world.run_for(ms(100_000));
    // The next COOKIE ECHO goes there, and its cookie is stale by then.
    world.network.cut = vec![0];
    world.clear_ladder();
    world.run_for(ms(25_000));
    assert_eq!(
        world.tap.ladder[..3],
        [
            "A -> B  COOKIE-ECHO HEARTBEAT (network 1)",
            "A <- B  ERROR (network 1)",
            "A -> B  INIT (lost)",
        ]
    );
    assert!(world.tap.ladder[3..].iter().all(|line| line == "A -> B  INIT (lost)"));
    world.network.cut = vec![];
    world.finish_handshake(a);
}

/// The world after `A` receives an INIT ACK that `change` has modified.
fn answer_to(change: impl Fn(&mut InitChunk)) -> World {
    let mut world = World::new();
    world.tap.wiretap = Some(Wiretap::default());
    world.tap.keep = Some("INIT-ACK");
    world.lose("INIT-ACK");
    world.connect();
    world.run_for(ms(100));
    let packet = world.tap.kept.take().expect("the INIT ACK");
    let (_, mut chunks) = PacketParser::parse(&packet, ChecksumKind::Crc32c).expect("a packet");
    let Some(Chunk::InitAck(mut ack)) = chunks.next() else { panic!("no INIT ACK") };
    change(&mut ack);
    let wiretap = world.tap.wiretap.as_ref().expect("it listens");
    let forged = wiretap.forge(A, &[Chunk::InitAck(ack)]).expect("the tag is known");
    world.clear_ladder();
    world.tap.keep = Some("ABORT");
    world.inject(A, socket(B, 0), forged);
    world.run_for(ms(1));
    world
}

//= rfc9260 §3.3.3, erratum 7148
//# an INIT ACK without a tag, a window or streams MUST end the handshake, with ABORT
#[test]
fn an_invalid_init_ack_ends_the_handshake() {
    type Change = fn(&mut InitChunk);
    let changes: [(Change, bool); 4] = [
        (|ack| ack.initiate_tag = VerificationTag::ZERO, true),
        (|ack| ack.a_rwnd = 1499, false),
        (|ack| ack.outbound_streams = 0, false),
        (|ack| ack.inbound_streams = 0, false),
    ];
    for (change, reflects) in changes {
        let world = answer_to(change);
        assert_eq!(world.tap.ladder, ["A -> B  ABORT"]);
        let abort = world.tap.kept.as_ref().expect("the ABORT");
        let (_, mut chunks) = PacketParser::parse(abort, ChecksumKind::Crc32c).expect("a packet");
        let Some(Chunk::Abort(abort)) = chunks.next() else { panic!("no ABORT") };
        assert_eq!(abort.reflected, reflects);
        let lost = Event::Lost(LossReason::ProtocolViolation { cause: 7 });
        assert_eq!(world.hosts[A].events(), [lost]);
    }
    assert_eq!(answer_to(|_| {}).tap.ladder, ["A -> B  COOKIE-ECHO"]);
}

//= rfc9260 §10 ICMP9
//# other Destination Unreachable: the path is probed
#[test]
fn an_icmp_error_cannot_end_an_established_association() {
    let mut world = World::new();
    let (a, _) = world.connected();
    for reason in [Unreachable::Protocol, Unreachable::Route, Unreachable::TooBig(600)] {
        let remote = socket(B, 0);
        let report = Input::Unreachable { remote, reason, quoted: None };
        world.hosts[A].endpoint.handle_input(world.now, report);
    }
    world.run_for(ms(1000));
    assert_eq!(world.hosts[A].state(), AssociationState::Established);
    world.send(A, a, 0, vec![0; 5000]);
    world.run_for(ms(1000));
    assert_eq!(world.hosts[B].received_bytes(), 5000);
}

#[test]
fn ten_thousand_associations_share_an_endpoint() {
    let mut config = listening();
    config.max_init_acks_per_source = 10_000;
    let mut world = World::with(listening(), config);
    let ids: Vec<_> = (0..10_000).map(|_| world.connect()).collect();
    world.run_for(ms(100));
    let up = |event: &Event| matches!(event, Event::Up { .. });
    for host in &world.hosts {
        assert_eq!(host.endpoint.associations().len(), 10_000);
        assert_eq!(host.events().iter().filter(|event| up(event)).count(), 10_000);
    }
    for (n, id) in ids.iter().enumerate() {
        world.send(A, *id, 0, n.to_be_bytes().to_vec());
    }
    world.run_for(ms(1000));
    assert_eq!(world.hosts[B].received_messages(), 10_000);
    for id in &ids {
        world.hosts[A].endpoint.shutdown(world.now, *id).unwrap();
    }
    world.run_for(ms(1000));
    assert_eq!(world.hosts[A].endpoint.associations(), []);
    assert_eq!(world.hosts[B].endpoint.associations(), []);
}

//= rfc9260 §3.1
//# ports MUST NOT be 0
#[test]
fn ports_do_not_run_out_with_the_dynamic_ones() {
    let mut world = World::new();
    let ports: BTreeSet<u16> = (0..16_384 + 100)
        .map(|_| {
            let id = world.connect();
            world.hosts[A].status(id).local_port
        })
        .collect();
    assert_eq!(ports.len(), 16_484, "each has its own");
    assert_eq!(ports.range(49_152..).count(), 16_384, "the dynamic ones come first");
    assert!(ports.iter().all(|port| *port >= 1024));
}
