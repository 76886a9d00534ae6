//! Verification tags that are nearly valid (RFC 9260 §8.5).

use super::*;
use eyas_sctp::wire::{AbortChunk, Causes};

//= rfc9260 §8.5
//# a wrong tag MUST be silently discarded
#[test]
fn a_tag_that_is_off_by_one_is_rejected() {
    let mut peer = HostilePeer::new(|_| {});
    let right = peer.header.tag.0;
    let abort = Chunk::Abort(AbortChunk { reflected: false, causes: Causes::default() });
    let wrong = [right.wrapping_add(1), right.wrapping_sub(1), right ^ 1 << 31, !right, 0];
    for tag in wrong {
        peer.header.tag = VerificationTag(tag);
        peer.send(std::slice::from_ref(&abort));
        peer.send(&[Chunk::Shutdown { cumulative_tsn: Tsn(0) }]);
        peer.send(&[peer.data(0, 0, "be", "x")]);
    }
    assert!(peer.is_up());
    assert_eq!(peer.counters().bad_tags, 3 * wrong.len() as u64);
    assert_eq!(peer.answers(), Vec::<String>::new());
    peer.header.tag = VerificationTag(right);
    peer.check_data();
    peer.send(&[abort]);
    assert_eq!(peer.world.hosts[B].state(), AssociationState::Closed);
}

//= rfc9260 §8.5.1
//# the T bit: ABORT and SHUTDOWN COMPLETE with our own tag
#[test]
fn our_own_tag_reflected_counts_only_with_the_t_bit() {
    let mut peer = HostilePeer::new(|_| {});
    // The tag that B's packets carry is A's.
    peer.world.network.cut.clear();
    peer.world.tap.keep = Some("A <- B");
    peer.check_data();
    let from_b = peer.world.tap.kept.clone().expect("a SACK");
    let theirs = PacketParser::header(&from_b).expect("a packet").tag;
    peer.world.network.cut = vec![0];
    peer.header.tag = theirs;
    let abort = |reflected| Chunk::Abort(AbortChunk { reflected, causes: Causes::default() });
    peer.send(&[abort(false)]);
    assert!(peer.is_up());
    peer.send(&[abort(true)]);
    assert!(!peer.is_up());
}

//= hostile sctp-blind
//# the right tag from the wrong ports
//= bound: ports and address are checked
#[test]
fn ports_have_to_match_too() {
    let mut peer = HostilePeer::new(|_| {});
    let right = peer.header;
    let abort = Chunk::Abort(AbortChunk { reflected: false, causes: Causes::default() });
    for header in [
        CommonHeader { source_port: right.source_port ^ 1, ..right },
        CommonHeader { destination_port: right.destination_port ^ 1, ..right },
    ] {
        peer.header = header;
        peer.send(std::slice::from_ref(&abort));
    }
    assert!(peer.is_up());
}
