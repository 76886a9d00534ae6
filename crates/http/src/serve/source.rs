//! What is made as there is room for it.

use std::task::{Context, Poll};

use super::{body_error::BoxError, piece::Piece};

/// What a response's bytes come from.
pub trait Source: Send {
    /// The next bytes. `room` is how many are wanted: not all have to be that few.
    fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        room: usize,
    ) -> Poll<Option<Result<Piece, BoxError>>>;

    /// How many bytes are still to come, if that is known.
    fn remaining(&self) -> Option<u64>;
}
