//! Numbers that are counted up and down while what they count comes and goes.
//!
//! Nothing is taken that was not added. Taking more is a fault of ours and never the peer's: builds with
//! debug assertions stop there, so that fuzzers and property tests find it. Others are left with nothing
//! rather than with a number that has wrapped, which would keep an association from ever sending again.

/// A sum of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Tally(usize);

impl Tally {
    #[inline]
    pub(super) fn get(self) -> usize {
        self.0
    }

    #[inline]
    pub(super) fn add(&mut self, bytes: usize) {
        self.0 += bytes;
    }

    #[inline]
    pub(super) fn take(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.0, "{bytes} bytes taken of {}", self.0);
        self.0 = self.0.saturating_sub(bytes);
    }
}

/// A number of things.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count(u32);

impl Count {
    #[inline]
    pub(super) fn get(self) -> usize {
        self.0 as usize
    }

    #[inline]
    pub(super) fn add_one(&mut self) {
        self.0 += 1;
    }

    #[inline]
    pub(super) fn take_one(&mut self) {
        debug_assert!(self.0 > 0, "one taken of none");
        self.0 = self.0.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::{Count, Tally};

    #[test]
    fn added_amounts_can_be_removed() {
        let (mut bytes, mut things) = (Tally::default(), Count::default());
        bytes.add(3);
        bytes.take(2);
        things.add_one();
        things.add_one();
        things.take_one();
        assert_eq!((bytes.get(), things.get()), (1, 1));
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "2 bytes taken of 1")]
    fn more_bytes_than_were_added_are_a_fault() {
        let mut bytes = Tally::default();
        bytes.add(1);
        bytes.take(2);
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "one taken of none")]
    fn removing_a_missing_item_is_a_fault() {
        Count::default().take_one();
    }
}
