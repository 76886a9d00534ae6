//! Verification tags that are nearly right (RFC 9260 §8.5).

use super::*;
use eyas_sctp::wire::{AbortChunk, Causes};

#[test]
fn a_tag_that_is_off_by_one_is_wrong() {
    let mut liar = Liar::new(|_| {});
    let right = liar.header.tag.0;
    let abort = Chunk::Abort(AbortChunk { reflected: false, causes: Causes::default() });
    let wrong = [right.wrapping_add(1), right.wrapping_sub(1), right ^ 1 << 31, !right, 0];
    for tag in wrong {
        liar.header.tag = VerificationTag(tag);
        liar.says(std::slice::from_ref(&abort));
        liar.says(&[Chunk::Shutdown { cumulative_tsn: Tsn(0) }]);
        liar.says(&[liar.data(0, 0, "be", "x")]);
    }
    assert!(liar.is_up());
    assert_eq!(liar.counters().bad_tags, 3 * wrong.len() as u64);
    assert_eq!(liar.answers(), Vec::<String>::new());
    liar.header.tag = VerificationTag(right);
    liar.works();
    liar.says(&[abort]);
    assert_eq!(liar.world.hosts[B].state(), AssociationState::Closed);
}

#[test]
fn our_own_tag_reflected_counts_only_with_the_t_bit() {
    let mut liar = Liar::new(|_| {});
    // The tag that B's packets carry is A's.
    liar.world.network.cut.clear();
    liar.world.tap.keep = Some("A <- B");
    liar.works();
    let from_b = liar.world.tap.kept.clone().expect("a SACK");
    let theirs = Packet::header(&from_b).expect("a packet").tag;
    liar.world.network.cut = vec![0];
    liar.header.tag = theirs;
    let abort = |reflected| Chunk::Abort(AbortChunk { reflected, causes: Causes::default() });
    liar.says(&[abort(false)]);
    assert!(liar.is_up());
    liar.says(&[abort(true)]);
    assert!(!liar.is_up());
}

#[test]
fn ports_have_to_be_right_too() {
    let mut liar = Liar::new(|_| {});
    let right = liar.header;
    let abort = Chunk::Abort(AbortChunk { reflected: false, causes: Causes::default() });
    for header in [
        Header { source_port: right.source_port ^ 1, ..right },
        Header { destination_port: right.destination_port ^ 1, ..right },
    ] {
        liar.header = header;
        liar.says(std::slice::from_ref(&abort));
    }
    assert!(liar.is_up());
}
