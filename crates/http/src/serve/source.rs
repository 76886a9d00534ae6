//! Sources of response bytes that are read as there is room for them.

use std::task::{Context, Poll};

use super::{body_error::BoxError, piece::Piece};

/// A source of a response's bytes.
pub trait Source: Send {
    /// Returns the next bytes. `room` is how many are wanted; the source may return more.
    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        room: usize,
    ) -> Poll<Option<Result<Piece, BoxError>>>;

    /// Returns how many bytes are left, if known.
    fn remaining(&self) -> Option<u64>;
}
