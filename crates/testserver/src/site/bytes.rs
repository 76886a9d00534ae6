//! `/bytes/N`: N bytes that a client can verify.

use std::{
    sync::LazyLock,
    task::{Context, Poll},
};

use bytes::Bytes;
use eyas_http::serve::metered::{Piece, Source};

use super::BoxError;

/// The maximum of `/bytes/N`: 1 GiB.
pub const MAX_BYTES: u64 = 1 << 30;

/// The period of the pattern. A prime, so that no block size of a transport is a multiple of it,
/// and a lost, duplicated or misplaced block is noticed.
pub const PATTERN_PERIOD: u64 = 251;

/// The number of periods in the buffer that all responses are slices of: 255,016 bytes.
const PERIODS: u64 = 1016;

/// Returns the byte at this offset of `/bytes/N`, for every N: the offset modulo 251.
pub const fn pattern_byte(offset: u64) -> u8 {
    (offset % PATTERN_PERIOD) as u8
}

/// One buffer for the whole process: responses are slices of it, so that a gigabyte costs neither
/// memory nor copies.
static BUFFER: LazyLock<Bytes> =
    LazyLock::new(|| (0..PATTERN_PERIOD * PERIODS).map(pattern_byte).collect());

/// A range of the pattern.
#[derive(Clone, Debug)]
pub(super) struct PatternRange {
    position: u64,
    end: u64,
}

impl PatternRange {
    /// Creates the range from `position` up to, but excluding, `end`.
    pub(super) const fn new(position: u64, end: u64) -> Self {
        Self { position, end }
    }

    const fn remaining_bytes(&self) -> u64 {
        self.end.saturating_sub(self.position)
    }
}

impl Iterator for PatternRange {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        let buffer = &*BUFFER;
        let phase = (self.position % PATTERN_PERIOD) as usize;
        let room = (buffer.len() - phase) as u64;
        let length = self.remaining_bytes().min(room);
        if length == 0 {
            return None;
        }
        self.position += length;
        Some(buffer.slice(phase..phase + length as usize))
    }
}

impl Source for PatternRange {
    fn poll_next(
        &mut self,
        _: &mut Context<'_>,
        _: usize,
    ) -> Poll<Option<Result<Piece, BoxError>>> {
        Poll::Ready(self.next().map(|bytes| Ok(bytes.into())))
    }

    fn remaining(&self) -> Option<u64> {
        Some(self.remaining_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slice_follows_the_pattern() {
        for (start, end) in [(0, 0), (0, 1), (250, 252), (7, 600_000), (300_000, 300_001)] {
            let pieces: Vec<u8> = PatternRange::new(start, end).flatten().collect();
            let expected: Vec<u8> = (start..end).map(pattern_byte).collect();
            assert!(pieces == expected, "{start}..{end}");
        }
    }

    #[test]
    fn a_gigabyte_is_slices_of_one_buffer() {
        let mut total = 0;
        let buffer_range = BUFFER.as_ptr_range();
        for piece in PatternRange::new(0, MAX_BYTES) {
            assert!(buffer_range.contains(&piece.as_ptr()));
            total += piece.len() as u64;
        }
        assert_eq!(total, MAX_BYTES);
    }
}
