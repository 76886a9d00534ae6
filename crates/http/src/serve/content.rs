//! The content of a response.

use std::task::{Context, Poll};

use bytes::Bytes;

use super::{body_error::BodyError, piece::Piece, service::body::ServiceBody, source::Source};

/// The content of a response.
pub(super) enum Content {
    /// Nothing.
    Empty,
    /// A few bytes from memory.
    Full(Bytes),
    /// Content that is produced as there is room for it.
    Metered(Box<dyn Source>),
    /// The body from the caller's service.
    Service(ServiceBody),
}

impl Content {
    /// Returns the number of remaining bytes, if known.
    pub(super) fn remaining(&self) -> Option<u64> {
        match self {
            Self::Empty => Some(0),
            Self::Full(bytes) => Some(bytes.len() as u64),
            Self::Metered(source) => source.remaining(),
            Self::Service(body) => body.remaining(),
        }
    }

    /// Returns whether the content has ended, including trailers.
    pub(super) fn has_ended(&self) -> bool {
        match self {
            Self::Service(body) => body.has_ended(),
            content => content.remaining() == Some(0),
        }
    }

    /// Returns the next bytes. `room` is the requested number, which may be exceeded.
    pub(super) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        room: usize,
    ) -> Poll<Option<Result<Piece, BodyError>>> {
        match self {
            Self::Empty => Poll::Ready(None),
            Self::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Full(bytes) => Poll::Ready(Some(Ok(std::mem::take(bytes).into()))),
            Self::Metered(source) => source.poll_next(cx, room).map_err(BodyError::Service),
            Self::Service(body) => body.poll_next(cx, room),
        }
    }
}
