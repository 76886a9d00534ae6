//! Response bodies that are read only as far as there is room for them, and that account for the
//! memory they use. The site of `eyas serve` (`eyas-testserver`) uses them.

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

/// A response body that the server recognises, and polls only for as much as it has room for.
/// Wrapped in another body, it behaves like any other.
pub struct MeteredBody(Content);

impl MeteredBody {
    /// Returns an empty body.
    pub fn empty() -> Self {
        Self(Content::Empty)
    }

    /// Returns a small body from memory.
    pub fn full(bytes: impl Into<Bytes>) -> Self {
        Self(Content::Full(bytes.into()))
    }

    /// Returns a body that reads from this source.
    pub fn from_source(source: impl Source + 'static) -> Self {
        Self(Content::Metered(Box::new(source)))
    }

    /// Returns the content of a body, if it is a metered one.
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
        self.0.has_ended()
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

/// The server's resources for a service, in the extensions of each request.
#[derive(Clone, Debug)]
pub struct Allowance {
    /// The share of the connection.
    pub share: Arc<Share>,
    /// The `Alt-Svc` field of responses over HTTP/1 and HTTP/2, if there is one.
    pub alt_svc: Option<HeaderValue>,
}
