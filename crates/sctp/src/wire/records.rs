//! Lists of fixed-size entries, parsed on iteration.

use bytes::{Bytes, BytesMut};
use core::marker::PhantomData;

use crate::identifier::StreamId;
use crate::serial::Tsn;

/// An entry of a list on the wire.
pub trait WireRecord: Copy {
    /// The length of an entry.
    const SIZE: usize;

    /// Parses the first [`Self::SIZE`] bytes of `bytes`; `None` if there are fewer.
    fn read(bytes: &[u8]) -> Option<Self>;

    /// Appends the entry.
    fn write(&self, buffer: &mut BytesMut);
}

/// An encoded list of entries; an incomplete last entry is ignored.
#[derive(Clone, Copy, Debug)]
pub struct WireRecords<'a, R> {
    bytes: &'a [u8],
    record: PhantomData<R>,
}

impl<'a, R: WireRecord> WireRecords<'a, R> {
    /// Creates a list from its encoding.
    #[must_use]
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, record: PhantomData }
    }

    /// Returns the number of remaining entries.
    #[must_use]
    pub fn remaining(&self) -> usize {
        self.bytes.len() / R::SIZE
    }

    /// Returns whether there are no entries.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.remaining() == 0
    }
}

impl<R: WireRecord> Iterator for WireRecords<'_, R> {
    type Item = R;

    #[inline]
    fn next(&mut self) -> Option<R> {
        let record = R::read(self.bytes)?;
        self.bytes = self.bytes.get(R::SIZE..).unwrap_or_default();
        Some(record)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let count = self.remaining();
        (count, Some(count))
    }
}

impl<R: WireRecord> ExactSizeIterator for WireRecords<'_, R> {}

/// Encodes `records`.
#[must_use]
pub fn encode_records<R: WireRecord>(records: &[R]) -> Bytes {
    let mut buffer = BytesMut::with_capacity(records.len() * R::SIZE);
    put_records(records, &mut buffer);
    buffer.freeze()
}

/// Appends the encoded `records`.
pub(crate) fn put_records<R: WireRecord>(records: &[R], buffer: &mut BytesMut) {
    for record in records {
        record.write(buffer);
    }
}

impl WireRecord for u16 {
    const SIZE: usize = 2;

    #[inline]
    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk().map(|bytes| Self::from_be_bytes(*bytes))
    }

    #[inline]
    fn write(&self, buffer: &mut BytesMut) {
        buffer.extend_from_slice(&self.to_be_bytes());
    }
}

impl WireRecord for u32 {
    const SIZE: usize = 4;

    #[inline]
    fn read(bytes: &[u8]) -> Option<Self> {
        bytes.first_chunk().map(|bytes| Self::from_be_bytes(*bytes))
    }

    #[inline]
    fn write(&self, buffer: &mut BytesMut) {
        buffer.extend_from_slice(&self.to_be_bytes());
    }
}

impl WireRecord for Tsn {
    const SIZE: usize = 4;

    #[inline]
    fn read(bytes: &[u8]) -> Option<Self> {
        u32::read(bytes).map(Self)
    }

    #[inline]
    fn write(&self, buffer: &mut BytesMut) {
        self.0.write(buffer);
    }
}

impl WireRecord for StreamId {
    const SIZE: usize = 2;

    #[inline]
    fn read(bytes: &[u8]) -> Option<Self> {
        u16::read(bytes).map(Self)
    }

    #[inline]
    fn write(&self, buffer: &mut BytesMut) {
        self.0.write(buffer);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    #[test]
    fn entries_round_trip() {
        let tsns = [Tsn(1), Tsn(u32::MAX)];
        let bytes = encode_records(&tsns);
        assert_eq!(bytes[..], [0, 0, 0, 1, 255, 255, 255, 255]);
        let read: Vec<Tsn> = WireRecords::new(&bytes).collect();
        assert_eq!(read, tsns);
    }

    #[test]
    fn an_incomplete_entry_is_ignored() {
        let records = WireRecords::<StreamId>::new(&[0, 7, 0]);
        assert_eq!(records.len(), 1);
        assert_eq!(records.collect::<Vec<_>>(), [StreamId(7)]);
        assert!(WireRecords::<Tsn>::new(&[0, 7, 0]).is_empty());
    }
}
