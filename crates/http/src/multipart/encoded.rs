//! The encoded form, piece by piece.

use std::collections::VecDeque;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use http_body::{Body as HttpBody, Frame, SizeHint};
use http_body_util::combinators::UnsyncBoxBody;

use crate::{Body, Error};

/// The pieces of a form: the headers and contents of its parts.
#[derive(Debug)]
pub(super) struct Encoded {
    pieces: VecDeque<Body>,
}

impl Encoded {
    pub(super) fn new(pieces: Vec<Body>) -> Self {
        Self { pieces: pieces.into() }
    }

    /// Converts it to a body, which can be sent again if all pieces can; it is in memory if they are.
    pub(super) fn into_body(self) -> Body {
        let copies: Option<Vec<Bytes>> = self.pieces.iter().map(Body::in_memory).collect();
        match copies {
            Some(copies) => {
                let mut whole = BytesMut::with_capacity(copies.iter().map(Bytes::len).sum());
                copies.iter().for_each(|copy| whole.extend_from_slice(copy));
                whole.freeze().into()
            }
            None => match self.pieces.iter().map(Body::source).collect::<Option<Vec<_>>>() {
                Some(sources) => Body::repeatable(Arc::new(move || {
                    let pieces = sources.iter().map(|source| Body::repeatable(Arc::clone(source)));
                    UnsyncBoxBody::new(Self { pieces: pieces.collect() })
                })),
                None => Body::boxed(self),
            },
        }
    }
}

impl HttpBody for Encoded {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        while let Some(piece) = self.pieces.front_mut() {
            match ready!(Pin::new(piece).poll_frame(cx)).transpose()? {
                Some(frame) if frame.is_data() => return Poll::Ready(Some(Ok(frame))),
                // Trailers belong to a message, not to one of its parts.
                Some(_) => {}
                None => _ = self.pieces.pop_front(),
            }
        }
        Poll::Ready(None)
    }

    fn is_end_stream(&self) -> bool {
        self.pieces.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        let left: Option<u64> = self.pieces.iter().map(|piece| piece.size_hint().exact()).sum();
        left.map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}
