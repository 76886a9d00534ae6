//! Bodies of responses that are read no further than there is room for them, and that account for what
//! they hold: the site of `eyas serve` (`eyas-testserver`) has such.

use std::{
    any::Any,
    fmt,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use http::HeaderValue;
use http_body::{Body, Frame, SizeHint};

use super::{body_error::BoxError, content::Content};

pub use super::{
    budget::{Held, LEAST_PIECE, OpenFile, Share},
    piece::{PIECE, Piece},
    source::Source,
};

/// The body of a response. The server knows it when a service gives it, and asks it for no more than
/// there is room for; within another body it is one like any other.
pub struct MeteredBody(Content);

impl MeteredBody {
    /// No content.
    pub fn empty() -> Self {
        Self(Content::Empty)
    }

    /// A few bytes made on the spot.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self(Content::Full(bytes.into()))
    }

    /// What this gives.
    pub fn of(source: impl Source + 'static) -> Self {
        Self(Content::Metered(Box::new(source)))
    }

    /// The content of a body, if it is one of these.
    pub(super) fn unwrap<B: 'static>(body: B) -> Result<Content, B> {
        let mut body = Some(body);
        let known = (&mut body as &mut dyn Any).downcast_mut::<Option<Self>>();
        match known.and_then(Option::take) {
            Some(Self(content)) => Ok(content),
            None => body.map_or(Ok(Content::Empty), Err),
        }
    }
}

impl Body for MeteredBody {
    type Data = Piece;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Piece>, BoxError>>> {
        self.0.poll_next(cx, PIECE).map_ok(Frame::data).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.0.is_over()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.remaining().map_or_else(SizeHint::default, SizeHint::with_exact)
    }
}

impl fmt::Debug for MeteredBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MeteredBody")
            .field("remaining", &self.0.remaining())
            .finish_non_exhaustive()
    }
}

/// What a service has of its server to itself: among the extensions of each request.
#[derive(Clone, Debug)]
pub struct Allowance {
    /// What may be held for the connection.
    pub share: Arc<Share>,
    /// The `Alt-Svc` field of responses over HTTP/1 and HTTP/2, if they have one.
    pub alt_svc: Option<HeaderValue>,
}
