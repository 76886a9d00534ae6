//! Request bodies in hyper's queue.

use std::{
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use http_body::{Body as HttpBody, Frame, SizeHint};

use crate::{Body, Error};

/// The body of a request, in a single pointer: the queue of every connection has room for 32
/// requests from the start, and most requests have no body.
pub(super) struct QueuedBody(Option<Box<Body>>);

impl From<Body> for QueuedBody {
    fn from(body: Body) -> Self {
        Self((!body.is_none()).then(|| Box::new(body)))
    }
}

impl From<QueuedBody> for Body {
    fn from(queued: QueuedBody) -> Self {
        queued.0.map_or_else(Self::empty, |body| *body)
    }
}

impl HttpBody for QueuedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        match &mut self.0 {
            Some(body) => Pin::new(&mut **body).poll_frame(cx),
            None => Poll::Ready(None),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.0.as_ref().is_none_or(|body| body.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        self.0.as_ref().map_or(SizeHint::with_exact(0), |body| body.size_hint())
    }
}
