//! ICMP messages, which any host can forge: accepted only if they quote a packet of the association
//! (RFC 9260 §10, ICMP 5 and 6).

use super::*;
use crate::associations::world::{PORT, multihomed};
use eyas_sctp::io::{Input, Unreachable};

/// Reports to `A` that its packets to `B` do not arrive.
fn report(world: &mut World, reason: Unreachable, quoted: &[u8]) {
    let quoted = Some(Bytes::copy_from_slice(quoted));
    let input = Input::Unreachable { remote: socket(B, 0), reason, quoted };
    world.hosts[A].endpoint.handle_input(world.now, input);
    world.drain();
}

fn unverified(world: &World) -> u64 {
    world.hosts[A].endpoint.counters().unverified_reports
}

/// `A` has sent an INIT, which was lost.
fn opening() -> (World, Bytes) {
    let mut world = World::new();
    world.tap.keep = Some("INIT");
    world.network.cut = vec![0];
    world.connect();
    world.run_for(ms(5));
    let init = world.tap.kept.clone().expect("the INIT");
    (world, init)
}

//= rfc9260 §10 ICMP1 to 6
//# messages that do not quote the tag, or for an INIT ours, MUST be discarded
#[test]
fn a_handshake_is_only_ended_by_an_icmp_message_that_quotes_its_init() {
    let (mut world, init) = opening();
    let changed = |at: usize| {
        let mut other = init.to_vec();
        other[at] ^= 1;
        other
    };
    // Too short to verify; other ports, another tag, another chunk, another initiate tag.
    let forged = [init[..7].to_vec(), init[..8].to_vec(), init[..19].to_vec(), Vec::new()];
    let forged = forged.into_iter().chain([1, 3, 7, 12, 19].map(changed));
    for (number, quoted) in (1..).zip(forged) {
        report(&mut world, Unreachable::Protocol, &quoted);
        assert_eq!(world.hosts[A].state(), AssociationState::CookieWait, "{quoted:?}");
        assert_eq!(unverified(&world), number);
    }
    report(&mut world, Unreachable::Protocol, &init[..20]);
    let refused = Event::Lost(LossReason::Refused(Unreachable::Protocol));
    assert_eq!(world.hosts[A].events(), [refused]);
}

//= rfc9260 §10 ICMP8
//# Protocol Unreachable, or inside UDP Port Unreachable (RFC 6951 §5.5), MUST count as ABORT with
//# the T bit
/// RFC 9260 §10, ICMP8.
#[test]
fn an_association_is_ended_by_an_icmp_message_that_quotes_its_packet() {
    let mut world = World::new();
    let (a, _) = world.connected();
    world.tap.keep = Some("DATA");
    world.send(A, a, 0, "seen on the way");
    world.run_for(ms(1000));
    let packet = world.tap.kept.clone().expect("the DATA");
    let mut wrong_tag = packet[..8].to_vec();
    wrong_tag[7] ^= 1;
    report(&mut world, Unreachable::Protocol, &wrong_tag);
    report(&mut world, Unreachable::Route, &packet[..8]);
    world.run_for(ms(1000));
    assert_eq!(world.hosts[A].state(), AssociationState::Established);
    world.clear_ladder();
    report(&mut world, Unreachable::Protocol, &packet[..8]);
    let refused = Event::Lost(LossReason::Refused(Unreachable::Protocol));
    assert_eq!(world.hosts[A].events().last(), Some(&refused));
    world.run_for(ms(1000));
    assert!(!world.tap.ladder.iter().any(|line| line.contains("A -> B")), "{:?}", world.tap.ladder);
}

//= hostile sctp-blind
//# forged ICMP about an unverified address
//= bound: only verified paths are trusted
/// An address that the peer lists may belong to an uninvolved host.
#[test]
fn an_icmp_message_about_an_unconfirmed_address_ends_nothing() {
    let mut world = World::with(multihomed(A, 2), multihomed(B, 2));
    world.network.cut = vec![1];
    world.tap.keep = Some("HEARTBEAT");
    world.connected();
    world.run_for(ms(500));
    let packet = world.tap.kept.clone().expect("the HEARTBEAT to the other address");
    let quoted = Some(packet.slice(..8));
    let input = Input::Unreachable { remote: socket(B, 1), reason: Unreachable::Protocol, quoted };
    world.hosts[A].endpoint.handle_input(world.now, input);
    world.drain();
    assert_eq!(world.hosts[A].state(), AssociationState::Established);
}

//= rfc9260 §10 ICMP7
//# Packet Too Big lowers the MTU, never below 576 or 1,280
#[test]
fn the_mtu_is_only_reduced_by_an_icmp_message_that_quotes_a_packet() {
    let mut world = World::with_associations(|config| config.path_mtu_discovery = false);
    let (a, _) = world.connected();
    world.tap.keep = Some("DATA");
    world.send(A, a, 0, "seen on the way");
    world.run_for(ms(1000));
    let packet = world.tap.kept.clone().expect("the DATA");
    let mtu = |world: &World| world.hosts[A].status(a).paths[0].mtu;
    let before = mtu(&world);
    let mut wrong_tag = packet[..8].to_vec();
    wrong_tag[7] ^= 1;
    let foreign = [&PORT.to_be_bytes()[..], &packet[2..8]].concat();
    for quoted in [&wrong_tag[..], &foreign, &packet[..4]] {
        report(&mut world, Unreachable::TooBig(1300), quoted);
    }
    assert_eq!((mtu(&world), unverified(&world)), (before, 3));
    report(&mut world, Unreachable::TooBig(1300), &packet[..8]);
    assert!(mtu(&world) < before);
    assert_eq!(unverified(&world), 3);
}
