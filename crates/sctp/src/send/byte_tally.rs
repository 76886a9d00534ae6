//! Counters of items that are added and removed.
//!
//! Nothing may be subtracted that was not added. Subtracting more is a bug of ours and never the
//! peer's fault: builds with debug assertions panic, so that fuzzers and property tests find it.
//! Other builds saturate at zero rather than wrap, which would keep an association from ever
//! sending again.

/// A sum of bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ByteTally(usize);

impl ByteTally {
    #[inline]
    pub(super) fn get(self) -> usize {
        self.0
    }

    #[inline]
    pub(super) fn add(&mut self, bytes: usize) {
        self.0 += bytes;
    }

    #[inline]
    pub(super) fn subtract(&mut self, bytes: usize) {
        debug_assert!(bytes <= self.0, "{bytes} bytes removed of {}", self.0);
        self.0 = self.0.saturating_sub(bytes);
    }
}

/// A number of items.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ItemCount(u32);

impl ItemCount {
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
        debug_assert!(self.0 > 0, "the count was already zero");
        self.0 = self.0.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::{ByteTally, ItemCount};

    #[test]
    fn added_amounts_can_be_removed() {
        let (mut bytes, mut items) = (ByteTally::default(), ItemCount::default());
        bytes.add(3);
        bytes.subtract(2);
        items.add_one();
        items.add_one();
        items.take_one();
        assert_eq!((bytes.get(), items.get()), (1, 1));
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "2 bytes removed of 1")]
    fn removing_more_bytes_than_were_added_panics() {
        let mut bytes = ByteTally::default();
        bytes.add(1);
        bytes.subtract(2);
    }

    #[cfg(debug_assertions)]
    #[test]
    #[should_panic(expected = "the count was already zero")]
    fn removing_a_missing_item_panics() {
        ItemCount::default().take_one();
    }
}
