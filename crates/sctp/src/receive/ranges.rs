//! Sets of positions, stored as sorted, disjoint ranges.

use alloc::collections::VecDeque;

use super::TsnPosition;

/// All positions from `first` to `last`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PositionRange {
    pub(crate) first: TsnPosition,
    pub(crate) last: TsnPosition,
}

/// A set of positions. Data in order only touches the last range, so a search is only needed for
/// late data.
#[derive(Clone, Debug, Default)]
pub(crate) struct PositionRanges {
    ranges: VecDeque<PositionRange>,
}

impl PositionRanges {
    pub(crate) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// Returns the number of ranges.
    pub(crate) fn len(&self) -> usize {
        self.ranges.len()
    }

    /// The highest position in the set.
    pub(crate) fn highest(&self) -> Option<TsnPosition> {
        self.ranges.back().map(|range| range.last)
    }

    /// Returns the ranges in ascending order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = PositionRange> + '_ {
        self.ranges.iter().copied()
    }

    /// Returns whether `position` is in the set.
    pub(crate) fn contains(&self, position: TsnPosition) -> bool {
        match self.ranges.back() {
            None => false,
            Some(range) if position > range.last => false,
            Some(range) if position >= range.first => true,
            Some(_) => {
                let after = self.first_ending_at_or_after(position);
                self.ranges.get(after).is_some_and(|range| range.first <= position)
            }
        }
    }

    /// Returns whether `position`, which is not in the set, would begin a range of its own.
    pub(crate) fn starts_new_range(&self, position: TsnPosition) -> bool {
        match self.ranges.back() {
            None => true,
            Some(range) if position > range.last => position > range.last + 1,
            Some(_) => {
                let after = self.first_ending_at_or_after(position.saturating_sub(1));
                self.ranges.get(after).is_none_or(|range| range.first > position + 1)
            }
        }
    }

    /// Adds one position.
    #[inline]
    pub(crate) fn insert(&mut self, position: TsnPosition) {
        self.insert_range(PositionRange { first: position, last: position });
    }

    /// Adds all positions of a range.
    #[inline]
    pub(crate) fn insert_range(&mut self, new: PositionRange) {
        match self.ranges.back_mut() {
            Some(range) if new.first > range.last + 1 => self.ranges.push_back(new),
            Some(range) if new.first == range.last + 1 => range.last = new.last,
            Some(_) => self.insert_before_last(new),
            None => self.ranges.push_back(new),
        }
    }

    fn insert_before_last(&mut self, new: PositionRange) {
        let from = self.first_ending_at_or_after(new.first.saturating_sub(1));
        let mut merged = new;
        let mut until = from;
        while let Some(range) = self.ranges.get(until) {
            if range.first > merged.last + 1 {
                break;
            }
            merged.first = merged.first.min(range.first);
            merged.last = merged.last.max(range.last);
            until += 1;
        }
        if from == until {
            self.ranges.insert(from, merged);
            return;
        }
        if let Some(range) = self.ranges.get_mut(from) {
            *range = merged;
        }
        if until > from + 1 {
            self.ranges.drain(from + 1..until);
        }
    }

    /// Removes all positions up to `position`.
    pub(crate) fn remove_up_to(&mut self, position: TsnPosition) {
        while let Some(range) = self.ranges.front_mut() {
            if range.last <= position {
                self.ranges.pop_front();
            } else {
                range.first = range.first.max(position + 1);
                return;
            }
        }
    }

    /// Removes the range that begins right after `position` and returns its end.
    pub(crate) fn remove_adjacent(&mut self, position: TsnPosition) -> Option<TsnPosition> {
        let range = *self.ranges.front().filter(|range| range.first == position + 1)?;
        self.ranges.pop_front();
        Some(range.last)
    }

    fn first_ending_at_or_after(&self, position: TsnPosition) -> usize {
        self.ranges.partition_point(|range| range.last < position)
    }
}

/// The positions of `all` that are not in `excluded`, as ranges.
pub(crate) fn difference<'a>(
    all: &'a PositionRanges,
    excluded: &'a PositionRanges,
) -> impl Iterator<Item = PositionRange> + 'a {
    let mut all = all.iter();
    let mut excluded = excluded.iter().peekable();
    let mut rest: Option<PositionRange> = None;
    core::iter::from_fn(move || {
        loop {
            let current = match rest.take() {
                Some(current) => current,
                None => all.next()?,
            };
            while excluded.next_if(|range| range.last < current.first).is_some() {}
            let Some(&hole) = excluded.peek().filter(|range| range.first <= current.last) else {
                return Some(current);
            };
            if hole.last < current.last {
                rest = Some(PositionRange { first: hole.last + 1, last: current.last });
            }
            if hole.first > current.first {
                return Some(PositionRange { first: current.first, last: hole.first - 1 });
            }
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    fn positions(ranges: impl Iterator<Item = PositionRange>) -> BTreeSet<TsnPosition> {
        ranges.flat_map(|range| range.first..=range.last).collect()
    }

    fn ranges_of(set: &BTreeSet<TsnPosition>) -> PositionRanges {
        let mut ranges = PositionRanges::default();
        set.iter().for_each(|position| ranges.insert(*position));
        ranges
    }

    fn are_disjoint(ranges: &PositionRanges) -> bool {
        let list: Vec<PositionRange> = ranges.iter().collect();
        list.iter().all(|range| range.first <= range.last)
            && list.windows(2).all(|pair| pair[0].last + 1 < pair[1].first)
    }

    proptest! {
        #[test]
        fn a_set_of_ranges_is_a_set(
            inserts in prop::collection::vec((1_u64..80, 0_u64..6), 0..60),
            removed in 0_u64..90,
        ) {
            let mut ranges = PositionRanges::default();
            let mut model = BTreeSet::new();
            for (first, more) in inserts {
                let alone = !model.contains(&first)
                    && !model.contains(&(first - 1))
                    && !model.contains(&(first + 1));
                prop_assert_eq!(ranges.contains(first), model.contains(&first));
                if !model.contains(&first) {
                    prop_assert_eq!(ranges.starts_new_range(first), alone);
                }
                ranges.insert_range(PositionRange { first, last: first + more });
                model.extend(first..=first + more);
                prop_assert!(are_disjoint(&ranges));
                prop_assert_eq!(positions(ranges.iter()), model.clone());
            }
            ranges.remove_up_to(removed);
            model.retain(|position| *position > removed);
            prop_assert_eq!(ranges.highest(), model.last().copied());
            prop_assert_eq!(positions(ranges.iter()), model.clone());
            let end = ranges.remove_adjacent(removed);
            prop_assert_eq!(end.is_some(), model.contains(&(removed + 1)));
        }

        #[test]
        fn a_difference_is_a_difference(
            all in prop::collection::btree_set(1_u64..60, 0..50),
            excluded in prop::collection::btree_set(1_u64..60, 0..50),
        ) {
            let (all_ranges, excluded_ranges) = (ranges_of(&all), ranges_of(&excluded));
            let expected: BTreeSet<TsnPosition> = all.difference(&excluded).copied().collect();
            prop_assert_eq!(positions(difference(&all_ranges, &excluded_ranges)), expected);
        }
    }
}
