//! Alternates between the families (HEv3 §5.3).

use alloc::vec::Vec;

use crate::candidate::Family;

/// Puts `count` of the first family in front, then one of the other, and so on in turn. What is
/// left when one family has run out follows in its order.
pub(super) fn interleave<T>(
    items: Vec<T>,
    first: Family,
    count: usize,
    family: impl Fn(&T) -> Family,
) -> Vec<T> {
    if items.iter().all(|item| family(item) == first) {
        return items;
    }
    let all = items.len();
    let (mut own, mut other): (Vec<T>, Vec<T>) =
        items.into_iter().partition(|item| family(item) == first);
    let mut turns = Vec::with_capacity(all);
    let head = count.clamp(1, own.len().max(1)).min(own.len());
    turns.extend(own.drain(..head));
    let (mut own, mut other) = (own.into_iter(), other.drain(..));
    while turns.len() < all {
        turns.extend(other.next());
        turns.extend(own.next());
    }
    turns
}
