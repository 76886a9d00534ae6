//! The next ordered message of each stream (RFC 9260 §6.5).
//!
//! Unused streams cost nothing: there is no table of 65,535 entries. The others take eight bytes
//! each, sorted, and are found without a search if they are used in turn from 0 on or one at a
//! time.

use alloc::vec::Vec;

use crate::identifier::StreamId;

const NUMBER_BITS: u32 = 48;
const NUMBER_MASK: u64 = (1 << NUMBER_BITS) - 1;

/// A stream and the number of a message on it, which does not wrap, in one integer: sorted by
/// stream, then by number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct MessagePlace(u64);

impl MessagePlace {
    pub(crate) fn new(stream: StreamId, number: u64) -> Self {
        Self((u64::from(stream.0) << NUMBER_BITS) | (number & NUMBER_MASK))
    }

    pub(crate) fn stream(self) -> StreamId {
        StreamId((self.0 >> NUMBER_BITS) as u16)
    }

    pub(crate) fn number(self) -> u64 {
        self.0 & NUMBER_MASK
    }
}

/// The number of the next ordered message of each stream. Numbers begin at 0 and do not wrap; the
/// low bits are the SSN or the MID.
#[derive(Debug, Default)]
pub(crate) struct InboundStreams {
    due: Vec<MessagePlace>,
    last: usize,
}

impl InboundStreams {
    /// Returns the number of the message that is due on `stream`.
    #[inline]
    pub(crate) fn due(&mut self, stream: StreamId) -> u64 {
        match self.find(stream) {
            Ok(index) => {
                self.last = index;
                self.due.get(index).map_or(0, |place| place.number())
            }
            Err(_) => 0,
        }
    }

    /// Sets the number of the message that is due on `stream`.
    #[inline]
    pub(crate) fn set_due(&mut self, stream: StreamId, number: u64) {
        let place = MessagePlace::new(stream, number);
        match self.find(stream) {
            Ok(index) => {
                if let Some(old) = self.due.get_mut(index) {
                    *old = place;
                }
                self.last = index;
            }
            Err(index) => {
                self.due.insert(index, place);
                self.last = index;
            }
        }
    }

    /// Resets all streams to 0.
    pub(crate) fn clear(&mut self) {
        self.due.clear();
    }

    #[inline]
    fn find(&self, stream: StreamId) -> Result<usize, usize> {
        let is_at =
            |index: usize| self.due.get(index).is_some_and(|place| place.stream() == stream);
        if is_at(self.last) {
            return Ok(self.last);
        }
        let index = usize::from(stream.0);
        if is_at(index) {
            return Ok(index);
        }
        self.due.binary_search_by_key(&stream, |place| place.stream())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::collections::BTreeMap;

    #[test]
    fn every_stream_has_its_own_number() {
        let mut streams = InboundStreams::default();
        let mut model = BTreeMap::new();
        for step in 0_u64..5000 {
            let stream = StreamId((step.wrapping_mul(0x9e37_79b9) >> 7) as u16 % 500 * 131);
            assert_eq!(streams.due(stream), *model.get(&stream).unwrap_or(&0));
            streams.set_due(stream, step);
            model.insert(stream, step);
        }
        assert!(model.iter().all(|(stream, number)| streams.due(*stream) == *number));
        streams.clear();
        assert_eq!(streams.due(StreamId(131)), 0);
    }

    #[test]
    fn places_sort_by_stream_then_number() {
        assert!(MessagePlace::new(StreamId(1), NUMBER_MASK) < MessagePlace::new(StreamId(2), 0));
        assert_eq!(MessagePlace::new(StreamId(7), 9).stream(), StreamId(7));
        assert_eq!(MessagePlace::new(StreamId(65_535), 9).number(), 9);
    }
}
