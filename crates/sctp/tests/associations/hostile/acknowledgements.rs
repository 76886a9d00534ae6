//! Acknowledgements of data that was never sent, and gap ack blocks out of order (RFC 9260 §6.2.1).

use super::*;
use eyas_sctp::wire::{GapBlock, SackBuilder};

/// `B` has ten messages in flight; returns its last TSN.
fn sending(peer: &mut HostilePeer) -> Tsn {
    let b = peer.world.hosts[B].only();
    peer.world.tap.keep = Some("DATA");
    for _ in 0..4 {
        peer.world.send(B, b, 0, vec![1; 1000]);
    }
    peer.world.drain();
    let packet = peer.world.tap.kept.clone().expect("DATA");
    let (_, chunks) = PacketParser::parse(&packet, ChecksumKind::Crc32c).expect("a packet");
    let tsn = |chunk| if let Chunk::Data(data) = chunk { Some(data.tsn) } else { None };
    chunks.filter_map(tsn).last().expect("it was kept")
}

fn queued(peer: &HostilePeer) -> usize {
    let b = peer.world.hosts[B].only();
    peer.world.hosts[B].status(b).queued
}

fn sack(cumulative_tsn: Tsn, blocks: &[(u16, u16)], is_nr: bool) -> Chunk {
    let gap_blocks: Vec<GapBlock> =
        blocks.iter().map(|&(start, end)| GapBlock { start, end }).collect();
    let builder = SackBuilder { cumulative_tsn, a_rwnd: 1 << 20, is_nr, ..SackBuilder::default() };
    Chunk::Sack(SackBuilder { gap_blocks: &gap_blocks, ..builder }.build())
}

//= rfc9260 §12.4
//# a SACK for a TSN never sent: MUST abort; it is dropped and counted
//= otherwise: after TSNs were reset (RFC 6525 §5.2.4) a late SACK looks like one
#[test]
fn acknowledgements_of_unsent_data_are_ignored() {
    let mut peer = HostilePeer::new(|_| {});
    let last = sending(&mut peer);
    let before = queued(&peer);
    for ahead in [1, 2, 1000, 1 << 20, 1 << 30] {
        peer.send(&[sack(last.plus(ahead), &[], false)]);
    }
    assert_eq!((queued(&peer), peer.counters().bad_sacks), (before, 5));
    assert!(peer.is_up());
    peer.send(&[sack(last, &[], false)]);
    assert_eq!((queued(&peer), peer.counters().bad_sacks), (0, 5));
}

#[test]
fn gap_ack_blocks_out_of_order_are_ignored() {
    let mut peer = HostilePeer::new(|_| {});
    let last = sending(&mut peer);
    let before = queued(&peer);
    let first = last.plus(u32::MAX - 3);
    for is_nr in [false, true] {
        for blocks in [
            &[(3, 2)][..],
            &[(0, 0)],
            &[(3, 3), (2, 2)],
            &[(2, 3), (3, 3)],
            &[(2, 65_535)],
            &[(60_000, 60_001)],
        ] {
            peer.send(&[sack(first, blocks, is_nr)]);
        }
    }
    assert_eq!(queued(&peer), before);
    assert!(peer.counters().bad_sacks >= 6, "{}", peer.counters().bad_sacks);
    assert!(peer.is_up());
}

#[test]
fn a_sack_with_the_maximum_number_of_blocks_is_handled() {
    let mut peer = HostilePeer::new(|_| {});
    let last = sending(&mut peer);
    let blocks: Vec<(u16, u16)> = (1..16_000).map(|n| (n * 4, n * 4 + 1)).collect();
    for _ in 0..100 {
        peer.send(&[sack(last.previous(), &blocks, false)]);
    }
    assert!(peer.is_up());
    assert_eq!(peer.counters().bad_sacks, 100);
}

#[test]
fn a_shutdown_that_acknowledges_the_future_does_not_lose_data() {
    let mut peer = HostilePeer::new(|_| {});
    let last = sending(&mut peer);
    let before = queued(&peer);
    peer.send(&[Chunk::Shutdown { cumulative_tsn: last.plus(5) }]);
    assert_eq!((queued(&peer), peer.counters().bad_sacks), (before, 1));
}
