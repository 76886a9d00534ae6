//! Acknowledgements of what was never sent, and blocks out of order (RFC 9260 §6.2.1).

use super::*;
use eyas_sctp::wire::{GapBlock, SackBuilder};

/// `B` has ten messages under way; gives its last TSN.
fn sending(liar: &mut Liar) -> Tsn {
    let b = liar.world.hosts[B].only();
    liar.world.tap.keep = Some("DATA");
    for _ in 0..4 {
        liar.world.send(B, b, 0, vec![1; 1000]);
    }
    liar.world.drain();
    let packet = liar.world.tap.kept.clone().expect("DATA");
    let (_, chunks) = Packet::parse(&packet, Checksum::Crc32c).expect("a packet");
    let tsn = |chunk| if let Chunk::Data(data) = chunk { Some(data.tsn) } else { None };
    chunks.filter_map(tsn).last().expect("it was kept")
}

fn queued(liar: &Liar) -> usize {
    let b = liar.world.hosts[B].only();
    liar.world.hosts[B].status(b).queued
}

fn sack(cumulative_tsn: Tsn, blocks: &[(u16, u16)], is_nr: bool) -> Chunk {
    let gap_blocks: Vec<GapBlock> =
        blocks.iter().map(|&(start, end)| GapBlock { start, end }).collect();
    let builder = SackBuilder { cumulative_tsn, a_rwnd: 1 << 20, is_nr, ..SackBuilder::default() };
    Chunk::Sack(SackBuilder { gap_blocks: &gap_blocks, ..builder }.build())
}

#[test]
fn what_was_never_sent_is_not_acknowledged() {
    let mut liar = Liar::new(|_| {});
    let last = sending(&mut liar);
    let before = queued(&liar);
    for ahead in [1, 2, 1000, 1 << 20, 1 << 30] {
        liar.says(&[sack(last.plus(ahead), &[], false)]);
    }
    assert_eq!((queued(&liar), liar.counters().bad_sacks), (before, 5));
    assert!(liar.is_up());
    liar.says(&[sack(last, &[], false)]);
    assert_eq!((queued(&liar), liar.counters().bad_sacks), (0, 5));
}

#[test]
fn blocks_out_of_order_are_not_believed() {
    let mut liar = Liar::new(|_| {});
    let last = sending(&mut liar);
    let before = queued(&liar);
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
            liar.says(&[sack(first, blocks, is_nr)]);
        }
    }
    assert_eq!(queued(&liar), before);
    assert!(liar.counters().bad_sacks >= 6, "{}", liar.counters().bad_sacks);
    assert!(liar.is_up());
}

#[test]
fn a_sack_with_all_the_blocks_there_can_be_is_handled() {
    let mut liar = Liar::new(|_| {});
    let last = sending(&mut liar);
    let blocks: Vec<(u16, u16)> = (1..16_000).map(|n| (n * 4, n * 4 + 1)).collect();
    for _ in 0..100 {
        liar.says(&[sack(last.previous(), &blocks, false)]);
    }
    assert!(liar.is_up());
    assert_eq!(liar.counters().bad_sacks, 100);
}

#[test]
fn a_shutdown_that_acknowledges_the_future_does_not_lose_data() {
    let mut liar = Liar::new(|_| {});
    let last = sending(&mut liar);
    let before = queued(&liar);
    liar.says(&[Chunk::Shutdown { cumulative_tsn: last.plus(5) }]);
    assert_eq!((queued(&liar), liar.counters().bad_sacks), (before, 1));
}
