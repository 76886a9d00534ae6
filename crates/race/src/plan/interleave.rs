//! Alternates between the families (HEv3 §5.3).

use alloc::vec::Vec;

/// Returns `count` items of the first family, then alternates between the other family and the
/// first; when one runs out, the rest of the other follows.
pub(super) fn interleave<T, F: PartialEq>(
    items: Vec<T>,
    first: F,
    count: usize,
    family: impl Fn(&T) -> F,
) -> Vec<T> {
    if items.iter().all(|item| family(item) == first) {
        return items;
    }
    let all = items.len();
    let (mut preferred, mut other): (Vec<T>, Vec<T>) =
        items.into_iter().partition(|item| family(item) == first);
    let mut interleaved = Vec::with_capacity(all);
    let head = count.clamp(1, preferred.len().max(1)).min(preferred.len());
    interleaved.extend(preferred.drain(..head));
    let (mut preferred, mut other) = (preferred.into_iter(), other.drain(..));
    while interleaved.len() < all {
        interleaved.extend(other.next());
        interleaved.extend(preferred.next());
    }
    interleaved
}
