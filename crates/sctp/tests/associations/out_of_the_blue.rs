//! Out-of-the-blue packets, and packets with the wrong tag (RFC 9260 §8.4, §8.5).

use crate::associations::world::{
    A, B, FOREIGN_PORT, PORT, World, init, listening, ms, packet, socket,
};
use bytes::Bytes;
use eyas_sctp::endpoint::AssociationState;
use eyas_sctp::serial::Tsn;
use eyas_sctp::wire::{AbortChunk, Causes, Chunk, ErrorChunk, InitChunk};
use std::net::SocketAddr;

fn abort(reflected: bool) -> Chunk {
    Chunk::Abort(AbortChunk { reflected, causes: Causes::default() })
}

/// The replies of `B` to an out-of-the-blue packet.
fn answer(world: &mut World, packet: Bytes) -> Vec<String> {
    world.clear_ladder();
    world.inject(B, socket(A, 0), packet);
    world.run_for(ms(1));
    world.tap.ladder.clone()
}

//= rfc9260 §5.1.5
//# a cookie for other ports, tag or address MUST be silently discarded
#[test]
fn out_of_the_blue_packets_are_answered_by_the_rules() {
    let mut world = World::new();
    let data = Chunk::Shutdown { cumulative_tsn: Tsn(1) };
    assert_eq!(answer(&mut world, packet(9, &[data])), ["A <- B  ABORT"]);
    assert_eq!(answer(&mut world, packet(9, &[Chunk::ShutdownAck])), ["A <- B  SHUTDOWN-COMPLETE"]);
    for silent in [
        abort(false),
        abort(true),
        Chunk::ShutdownComplete { reflected: false },
        Chunk::CookieAck,
        Chunk::Error(ErrorChunk { causes: Causes::default() }),
        Chunk::CookieEcho(Bytes::from_static(&[1; 200])),
    ] {
        assert!(
            answer(&mut world, packet(9, core::slice::from_ref(&silent))).is_empty(),
            "{silent:?}"
        );
    }
    assert_eq!(world.hosts[B].endpoint.counters().forged_cookies, 1);
    assert_eq!(world.hosts[B].endpoint.associations(), []);
}

/// A host that was restarted answers the packets of an association that omits checksums, if it accepts such associations.
//= rfc9653 §5.3
//# MAY process packets out of the blue with a checksum of zero; any other wrong one is refused, and zero with INIT
#[test]
fn packets_without_a_checksum_are_answered_where_associations_have_none() {
    let shutdown = packet(9, &[Chunk::Shutdown { cumulative_tsn: Tsn(1) }]);
    let mut without = shutdown.to_vec();
    without[8..12].fill(0);
    for accepts in [false, true] {
        let mut config = listening();
        config.association.extensions.zero_checksum = accepts;
        let mut world = World::with(listening(), config);
        let answers = answer(&mut world, without.clone().into());
        assert_eq!(answers, if accepts { vec!["A <- B  ABORT"] } else { vec![] });
        assert_eq!(world.hosts[B].endpoint.counters().bad_checksums, u64::from(!accepts));
        let mut wrong = shutdown.to_vec();
        wrong[8] ^= 1;
        assert!(answer(&mut world, wrong.into()).is_empty(), "any other checksum must be right");
        // Packets of a handshake always have their checksum (§5.2).
        let mut init = packet(0, &[Chunk::Init(init(1))]).to_vec();
        init[8..12].fill(0);
        assert!(answer(&mut world, init.into()).is_empty());
    }
}

//= rfc9260 §8.4
//# packets out of the blue: eight rules, 100 answers per second
#[test]
fn answers_to_out_of_the_blue_packets_are_limited() {
    let mut world = World::new();
    for _ in 0..1000 {
        world.inject(B, socket(A, 0), packet(9, &[Chunk::ShutdownAck]));
    }
    world.run_for(ms(1));
    assert_eq!(world.tap.ladder.len(), 100);
    assert_eq!(world.hosts[B].endpoint.counters().answers_withheld, 900);
}

#[test]
fn an_init_for_a_closed_port_is_refused() {
    let mut world = World::new();
    let id = world.connect_with(|options| options.remote_port = PORT + 1);
    world.run_for(ms(100));
    assert_eq!(world.tap.ladder, ["A -> B  INIT", "A <- B  ABORT"]);
    let (lost, why) = &world.hosts[A].events[0];
    assert_eq!(*lost, id);
    assert!(format!("{why:?}").contains("AbortedByPeer"), "{why:?}");
}

//= rfc9260 §3
//# INIT, INIT ACK and SHUTDOWN COMPLETE are not bundled
//= rfc9260 §3.3.2
//# INIT without a tag is discarded; with a window below 1,500 or without streams it gets ABORT
#[test]
fn an_invalid_init_creates_nothing() {
    let mut world = World::new();
    let answers =
        |world: &mut World, init: InitChunk| answer(world, packet(0, &[Chunk::Init(init)]));
    assert_eq!(answers(&mut world, init(1)), ["A <- B  INIT-ACK"]);
    assert!(answers(&mut world, init(0)).is_empty(), "a tag of zero");
    assert_eq!(answers(&mut world, InitChunk { a_rwnd: 1499, ..init(1) }), ["A <- B  ABORT"]);
    let none = InitChunk { outbound_streams: 0, ..init(1) };
    assert_eq!(answers(&mut world, none), ["A <- B  ABORT"]);
    let none = InitChunk { inbound_streams: 0, ..init(1) };
    assert_eq!(answers(&mut world, none), ["A <- B  ABORT"]);
    let bundled = packet(0, &[Chunk::Init(init(1)), Chunk::CookieAck]);
    assert!(answer(&mut world, bundled).is_empty(), "it must be the only chunk");
    let tagged = packet(5, &[Chunk::Init(init(1))]);
    assert_eq!(answer(&mut world, tagged), ["A <- B  ABORT"], "it must have a tag of zero");
}

//= hostile sctp-setup
//# a flood of INITs
//= bound: nothing before a valid COOKIE ECHO; `max_associations`
#[test]
fn a_flood_of_inits_leaves_no_state() {
    let mut world = World::new();
    for tag in 1..=10_000_u32 {
        let source = SocketAddr::from((tag.wrapping_mul(0x9e37_79b9).to_be_bytes(), 9899));
        let source = if source.ip().is_multicast() { socket(A, 0) } else { source };
        world.inject(B, source, packet(0, &[Chunk::Init(init(tag))]));
        world.drain();
    }
    assert_eq!(world.tap.ladder.len(), 10_000, "one INIT ACK each");
    assert_eq!(world.hosts[B].endpoint.associations(), []);
    assert_eq!(world.hosts[B].endpoint.counters().packets_in, 10_000);
}

//= rfc9260 §12.2.4
//# 1,000 INIT ACKs per second to one source that does not come back
/// A source that never returns a cookie may be spoofed.
#[test]
fn init_acks_to_a_peer_that_never_returns_are_limited() {
    let mut world = World::new();
    let most = world.hosts[B].endpoint.config().max_init_acks_per_source as usize;
    for tag in 1..=10_000 {
        world.inject(B, socket(A, 0), packet(0, &[Chunk::Init(init(tag))]));
        world.drain();
    }
    assert_eq!(world.tap.ladder.len(), most);
    assert_eq!(world.hosts[B].endpoint.counters().answers_withheld as usize, 10_000 - most);
    // Other sources are served, and so is this one after a second.
    world.inject(B, socket(A, 1), packet(0, &[Chunk::Init(init(1))]));
    world.drain();
    assert_eq!(world.tap.ladder.len(), most + 1);
    world.run_for(ms(1000));
    world.connected();
}

/// One source may open any number of associations if it returns the cookies.
#[test]
fn a_peer_that_returns_its_cookie_is_not_limited() {
    let mut config = listening();
    config.max_init_acks_per_source = 2;
    let mut world = World::with(listening(), config);
    for _ in 0..20 {
        world.connect();
        world.run_for(ms(50));
    }
    assert_eq!(world.hosts[B].endpoint.associations().len(), 20);
}

//= rfc9260 §12.2.4
//# no amplifier: INIT ACK is at most 2.4 times an INIT
/// The size with the headers of IPv4 and UDP.
#[test]
fn an_init_ack_is_little_more_than_twice_its_init() {
    let mut world = World::new();
    world.tap.keep = Some("INIT-ACK");
    let init = packet(0, &[Chunk::Init(init(1))]);
    world.inject(B, socket(A, 0), init.clone());
    world.drain();
    let ack = world.tap.kept.expect("the INIT ACK").len() + 28;
    assert!(ack * 10 <= (init.len() + 28) * 24, "{ack} bytes for {}", init.len() + 28);
}

/// Both hosts, associated from port [`FOREIGN_PORT`].
fn associated() -> World {
    let mut world = World::new();
    let a = world.connect_with(|options| options.local_port = FOREIGN_PORT);
    world.finish_handshake(a);
    world
}

#[test]
fn blind_attacks_on_an_association_do_nothing() {
    let mut world = associated();
    // Any wrong tag will do for the test: an attacker with a right one is not blind.
    for tag in [0, 1, 0x8000_0000, u32::MAX] {
        for chunk in [
            abort(false),
            abort(true),
            Chunk::ShutdownAck,
            Chunk::ShutdownComplete { reflected: false },
            Chunk::ShutdownComplete { reflected: true },
            Chunk::Shutdown { cumulative_tsn: Tsn(1) },
            Chunk::CookieAck,
        ] {
            assert!(answer(&mut world, packet(tag, &[chunk])).is_empty());
        }
    }
    assert_eq!(world.hosts[B].state(), AssociationState::Established);
    assert_eq!(world.hosts[B].endpoint.counters().bad_tags, 28);
}

#[test]
fn a_packet_from_an_unknown_address_belongs_to_no_association() {
    let mut world = associated();
    let foreign = "10.0.9.9:9899".parse().unwrap();
    world.clear_ladder();
    world.inject(B, foreign, packet(0, &[Chunk::Init(init(1))]));
    world.inject(B, foreign, packet(1, &[abort(false)]));
    world.run_for(ms(1));
    assert_eq!(world.tap.ladder.len(), 1, "an INIT ACK: this could be another peer");
    assert_eq!(world.hosts[B].state(), AssociationState::Established);
}

//= hostile sctp-setup
//# replayed cookies
//= bound: `valid_cookie_life`, `cookie_key_life`, `MAX_PRESERVE`
#[test]
fn a_replayed_cookie_has_no_effect() {
    let mut world = World::new();
    world.tap.keep = Some("COOKIE-ECHO");
    let a = world.connect_with(|options| options.local_port = FOREIGN_PORT);
    world.finish_handshake(a);
    let replayed = world.tap.kept.clone().expect("the COOKIE ECHO was seen");
    // While the association exists, the cookie is acknowledged again, and nothing changes.
    assert_eq!(answer(&mut world, replayed.clone()), ["A <- B  COOKIE-ACK"]);
    assert_eq!(world.hosts[B].endpoint.associations().len(), 1);
    world.hosts[A].endpoint.shutdown(world.now, a).unwrap();
    world.run_for(ms(1000));
    assert_eq!(world.hosts[B].endpoint.associations(), []);
    // After its lifetime the cookie opens nothing; before, it is as good as new (RFC 9260 §5.1.5).
    world.run_for(ms(61_000));
    assert_eq!(answer(&mut world, replayed), ["A <- B  ERROR"]);
    assert_eq!(world.hosts[B].endpoint.associations(), []);
    assert_eq!(world.hosts[B].endpoint.counters().stale_cookies, 1);
}

//= hostile sctp-setup
//# INITs faster than their answers are sent
//= bound: `MAX_ANSWERS`, each at most `MAX_ANSWER`
#[test]
fn queued_responses_are_bounded() {
    let mut config = listening();
    config.max_init_acks_per_source = 5000;
    let mut world = World::with(listening(), config);
    for tag in 1..=5000 {
        world.inject(B, socket(A, 0), packet(0, &[Chunk::Init(init(tag))]));
    }
    world.run_for(ms(1));
    assert_eq!(world.tap.ladder.len(), 1024);
    assert_eq!(world.hosts[B].endpoint.counters().answers_withheld, 5000 - 1024);
}
