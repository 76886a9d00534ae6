use alloc::vec::Vec;
use proptest::prelude::*;

use super::{TsnRange, are_plausible, collect, difference};
use crate::serial::Tsn;
use crate::wire::{GapBlock, SackBuilder};

const BASE: Tsn = Tsn(u32::MAX - 5);

fn blocks(pairs: &[(u16, u16)]) -> Vec<GapBlock> {
    pairs.iter().map(|&(start, end)| GapBlock { start, end }).collect()
}

fn ranges(bits: u64) -> Vec<TsnRange> {
    let mut ranges: Vec<TsnRange> = Vec::new();
    for offset in (0..64).filter(|offset| bits >> offset & 1 == 1) {
        let tsn = BASE.plus(offset);
        match ranges.last_mut() {
            Some(last) if last.1.next() == tsn => last.1 = tsn,
            _ => ranges.push((tsn, tsn)),
        }
    }
    ranges
}

#[test]
fn blocks_out_of_order_are_rejected() {
    let plausible = |gap_blocks: &[(u16, u16)]| {
        let gap_blocks = blocks(gap_blocks);
        let sack =
            SackBuilder { cumulative_tsn: BASE, gap_blocks: &gap_blocks, ..Default::default() };
        are_plausible(&sack.build(), BASE.plus(20))
    };
    assert!(plausible(&[]));
    assert!(plausible(&[(2, 3), (5, 5), (6, 20)]));
    assert!(!plausible(&[(2, 3), (5, 21)]), "beyond what was sent");
    assert!(!plausible(&[(1, 3)]), "what the cumulative TSN should have covered");
    assert!(!plausible(&[(0, 3)]));
    assert!(!plausible(&[(5, 6), (2, 3)]));
    assert!(!plausible(&[(2, 5), (5, 6)]));
    assert!(!plausible(&[(4, 3)]));
}

#[test]
fn both_kinds_of_blocks_are_merged() {
    let (gap_blocks, nr_gap_blocks) = (blocks(&[(2, 3), (9, 9)]), blocks(&[(3, 5), (7, 7)]));
    let sack = SackBuilder {
        cumulative_tsn: BASE,
        gap_blocks: &gap_blocks,
        nr_gap_blocks: &nr_gap_blocks,
        is_nr: true,
        ..Default::default()
    };
    let mut all = Vec::new();
    collect(&sack.build(), &mut all);
    let of = |start, end| (BASE.plus(start), BASE.plus(end));
    assert_eq!(all, [of(2, 5), of(7, 7), of(9, 9)]);
}

proptest! {
    #[test]
    fn a_difference_is_that_of_sets(these: u64, those: u64) {
        let mut bits = 0u64;
        let mut last: Option<Tsn> = None;
        difference(&ranges(these), &ranges(those), |from, to| {
            assert!(from.is_at_or_before(to));
            assert!(last.is_none_or(|last| last.is_before(from)), "out of order");
            last = Some(to);
            for offset in from.distance_from(BASE)..=to.distance_from(BASE) {
                assert_eq!(bits >> offset & 1, 0, "reported twice");
                bits |= 1 << offset;
            }
        });
        prop_assert_eq!(bits, these & !those);
    }
}
