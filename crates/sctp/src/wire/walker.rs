//! Parsing of types, lengths and padding for chunks, parameters and error causes.
//!
//! <https://www.rfc-editor.org/rfc/rfc9260#section-3.2>,
//! <https://www.rfc-editor.org/rfc/rfc9260#section-3.2.1>
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------+-------------------------------+
//! |     type (and chunk flags)    |  length, with these 4 bytes   |
//! +-------------------------------+-------------------------------+
//! |              value, then padding up to a multiple of 4        |
//! +---------------------------------------------------------------+
//! ```

use bytes::Bytes;

use super::padded;

/// The length of type and length fields.
pub(crate) const ELEMENT_HEADER: usize = 4;

/// A part of a packet, which can be read in place or shared without a copy.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PacketView<'a> {
    source: &'a Bytes,
    start: usize,
    end: usize,
}

impl<'a> PacketView<'a> {
    /// Creates a view of all of `source`.
    pub(crate) fn whole(source: &'a Bytes) -> Self {
        Self { source, start: 0, end: source.len() }
    }

    /// Creates a view of bytes `start` to `end` of `source`, truncated to its length.
    pub(crate) fn part(source: &'a Bytes, start: usize, end: usize) -> Self {
        let end = end.min(source.len());
        Self { source, start: start.min(end), end }
    }

    #[inline]
    pub(crate) fn bytes(self) -> &'a [u8] {
        self.source.get(self.start..self.end).unwrap_or_default()
    }

    #[inline]
    pub(crate) fn len(self) -> usize {
        self.end - self.start
    }

    /// Returns the bytes as a value that shares their memory.
    #[inline]
    pub(crate) fn share(self) -> Bytes {
        self.source.slice(self.start..self.end)
    }

    /// Returns what follows the first `count` bytes, if there are that many.
    #[inline]
    pub(crate) fn skip(self, count: usize) -> Option<Self> {
        (count <= self.len()).then(|| Self { start: self.start + count, ..self })
    }

    /// Returns the first `count` bytes, if there are that many.
    #[inline]
    pub(crate) fn first(self, count: usize) -> Option<Self> {
        (count <= self.len()).then(|| Self { end: self.start + count, ..self })
    }

    /// Returns the view from here to the end of `rest`, which follows it in the same packet.
    pub(crate) fn until_end_of(self, rest: Self) -> Self {
        Self { end: rest.end.max(self.end), ..self }
    }

    /// Returns the first `N` bytes, if there are that many.
    #[inline]
    pub(crate) fn head<const N: usize>(self) -> Option<&'a [u8; N]> {
        self.bytes().first_chunk()
    }

    /// The big-endian number at `offset`.
    #[inline]
    pub(crate) fn u16_at(self, offset: usize) -> Option<u16> {
        self.bytes().get(offset..)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
    }

    /// The big-endian number at `offset`.
    #[inline]
    pub(crate) fn u32_at(self, offset: usize) -> Option<u32> {
        self.bytes().get(offset..)?.first_chunk().map(|bytes| u32::from_be_bytes(*bytes))
    }

    /// Returns the value after type and length.
    #[inline]
    pub(crate) fn value(self) -> Self {
        Self { start: (self.start + ELEMENT_HEADER).min(self.end), ..self }
    }
}

/// An element found by the walker.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WalkerStep<'a> {
    /// An element with type, length and value: at least four bytes, without its padding.
    Element(PacketView<'a>),
    /// The rest, at least one byte, because it has no valid length.
    Broken(PacketView<'a>),
}

/// Iterates over elements. Every step consumes at least one byte; nothing follows a broken element.
#[derive(Clone, Debug)]
pub(crate) struct ElementWalker<'a> {
    rest: PacketView<'a>,
}

impl<'a> ElementWalker<'a> {
    pub(crate) fn new(contents: PacketView<'a>) -> Self {
        Self { rest: contents }
    }

    /// Returns the rest.
    pub(crate) fn rest(&self) -> PacketView<'a> {
        self.rest
    }
}

impl<'a> Iterator for ElementWalker<'a> {
    type Item = WalkerStep<'a>;

    #[inline]
    fn next(&mut self) -> Option<WalkerStep<'a>> {
        let rest = self.rest;
        if rest.len() == 0 {
            return None;
        }
        let length = rest.u16_at(2).map_or(0, usize::from);
        match rest.first(length) {
            Some(element) if length >= ELEMENT_HEADER => {
                // The last padding may be missing: some implementations omit it, and it carries
                // nothing.
                self.rest.start = (rest.start + padded(length)).min(rest.end);
                Some(WalkerStep::Element(element))
            }
            _ => {
                self.rest.start = rest.end;
                Some(WalkerStep::Broken(rest))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn walk(bytes: &'static [u8]) -> Vec<(bool, &'static [u8])> {
        let source: &'static Bytes = Vec::leak(alloc::vec![Bytes::from_static(bytes)])
            .first()
            .expect("one element was inserted");
        ElementWalker::new(PacketView::whole(source))
            .map(|step| match step {
                WalkerStep::Element(view) => (true, view.bytes()),
                WalkerStep::Broken(view) => (false, view.bytes()),
            })
            .collect()
    }

    #[test]
    fn padding_is_skipped() {
        let steps = walk(&[1, 0, 0, 5, 9, 0, 0, 0, 2, 0, 0, 4]);
        assert_eq!(steps, [(true, &[1, 0, 0, 5, 9][..]), (true, &[2, 0, 0, 4])]);
    }

    //= rfc9260 §3.2
    //# the last padding of a packet may be missing
    #[test]
    fn the_last_padding_may_be_missing() {
        assert_eq!(walk(&[1, 0, 0, 5, 9]), [(true, &[1, 0, 0, 5, 9][..])]);
        assert_eq!(walk(&[1, 0, 0, 5, 9, 0]), [(true, &[1, 0, 0, 5, 9][..])]);
    }

    #[test]
    fn lengths_below_four_end_the_walk() {
        for length in 0..4 {
            let bytes = Vec::leak(alloc::vec![1, 0, 0, length, 2, 0, 0, 4]);
            assert_eq!(walk(bytes), [(false, &*bytes)], "length {length}");
        }
    }

    #[test]
    fn lengths_beyond_the_end_end_the_walk() {
        let steps = walk(&[1, 0, 0, 4, 2, 0, 0, 5]);
        assert_eq!(steps, [(true, &[1, 0, 0, 4][..]), (false, &[2, 0, 0, 5])]);
        assert_eq!(walk(&[1, 0, 0]), [(false, &[1, 0, 0][..])]);
        assert_eq!(walk(&[1, 0, 255, 255]), [(false, &[1, 0, 255, 255][..])]);
        assert_eq!(walk(&[]), []);
    }

    #[test]
    fn parts_are_truncated_to_the_source() {
        let source = Bytes::from_static(&[1, 2, 3]);
        assert_eq!(PacketView::part(&source, 1, 9).bytes(), [2, 3]);
        assert_eq!(PacketView::part(&source, 7, 9).bytes(), []);
        assert!(PacketView::whole(&source).skip(4).is_none());
        assert!(PacketView::whole(&source).u32_at(0).is_none());
        assert_eq!(PacketView::whole(&source).u16_at(usize::MAX), None);
    }
}
