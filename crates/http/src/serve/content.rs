//! What a response carries, whoever gives it.

use std::task::{Context, Poll};

use bytes::Bytes;

use super::{
    body_error::BodyError,
    piece::Piece,
    request_body::RequestBody,
    service::body::ServiceBody,
    site::{bytes::Pattern, files::body::FileBody, listing::ListingBody},
};

/// What a response carries.
pub(super) enum Content {
    /// Nothing.
    Empty,
    /// A few bytes made on the spot.
    Full(Bytes),
    /// A stretch of the pattern of `/bytes/N`.
    Pattern(Pattern),
    /// A stretch of a file.
    File(FileBody),
    /// A page that is made as it is taken.
    Listing(ListingBody),
    /// The request's body.
    Echo(Box<RequestBody>),
    /// What the caller's service gives.
    Service(ServiceBody),
}

impl Content {
    /// How many bytes are still to come, if that is known.
    pub(super) fn remaining(&self) -> Option<u64> {
        match self {
            Self::Empty => Some(0),
            Self::Full(bytes) => Some(bytes.len() as u64),
            Self::Pattern(pattern) => Some(pattern.remaining()),
            Self::File(file) => Some(file.remaining()),
            Self::Listing(_) => None,
            Self::Echo(body) => body.length(),
            Self::Service(body) => body.remaining(),
        }
    }

    /// Whether nothing comes any more, trailers included.
    pub(super) fn is_over(&self) -> bool {
        match self {
            Self::Service(body) => body.is_over(),
            content => content.remaining() == Some(0),
        }
    }

    /// The next bytes. `room` is how many are wanted: not all have to be that few.
    pub(super) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        room: usize,
    ) -> Poll<Option<Result<Piece, BodyError>>> {
        match self {
            Self::Empty => Poll::Ready(None),
            Self::Full(bytes) if bytes.is_empty() => Poll::Ready(None),
            Self::Full(bytes) => Poll::Ready(Some(Ok(std::mem::take(bytes).into()))),
            Self::Pattern(pattern) => Poll::Ready(pattern.next().map(|bytes| Ok(bytes.into()))),
            Self::File(file) => file.poll_next(cx, room),
            Self::Listing(listing) => listing.poll_next(cx),
            Self::Echo(body) => body.poll_next(cx).map_ok(Piece::from),
            Self::Service(body) => body.poll_next(cx, room),
        }
    }
}
