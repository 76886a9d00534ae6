//! The body of a service's response.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, ready},
};

use bytes::{Buf, Bytes};
use http::HeaderMap;
use http_body::{Body, Frame, SizeHint};

use crate::serve::{
    body_error::{BodyError, BoxError},
    budget::Share,
    piece::{PIECE, Piece},
    turn::Turn,
};

/// A body of any type.
trait AnyBody: Send {
    fn poll_bytes(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>>;

    fn size(&self) -> SizeHint;

    fn is_ended(&self) -> bool;
}

impl<B> AnyBody for B
where
    B: Body + Send,
    B::Error: Into<BoxError>,
{
    fn poll_bytes(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let bytes = |mut data: B::Data| data.copy_to_bytes(data.remaining());
        self.poll_frame(cx).map_ok(|frame| frame.map_data(bytes)).map_err(Into::into)
    }

    fn size(&self) -> SizeHint {
        self.size_hint()
    }

    fn is_ended(&self) -> bool {
        self.is_end_stream()
    }
}

/// The body of a service's response. A frame is requested once the previous one has been passed to
/// the transport, and only the bytes being sent count towards the budget.
pub(in crate::serve) struct ServiceBody {
    /// `None` once it has ended.
    body: Option<Pin<Box<dyn AnyBody>>>,
    /// What is left of the last frame.
    prepared: Bytes,
    trailers: Option<HeaderMap>,
    failure: Option<BodyError>,
    share: Arc<Share>,
    turn: Arc<Turn>,
}

impl ServiceBody {
    /// Wraps this body, on a connection with this share.
    pub(in crate::serve) fn new<B>(body: B, share: Arc<Share>, turn: Arc<Turn>) -> Self
    where
        B: Body + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let body: Pin<Box<dyn AnyBody>> = Box::pin(body);
        let prepared = Bytes::new();
        Self { body: Some(body), prepared, trailers: None, failure: None, share, turn }
    }

    /// Returns the number of remaining bytes, if known.
    pub(in crate::serve) fn remaining(&self) -> Option<u64> {
        let rest = self.body.as_ref().map_or(Some(0), |body| body.size().exact());
        rest.map(|rest| rest + self.prepared.len() as u64)
    }

    /// Returns whether the body has ended, including trailers.
    pub(in crate::serve) fn has_ended(&self) -> bool {
        self.prepared.is_empty()
            && self.trailers.is_none()
            && self.failure.is_none()
            && self.body.as_ref().is_none_or(|body| body.is_ended())
    }

    /// Returns the number of bytes that the service has provided and that have not been taken.
    pub(in crate::serve) fn prepared(&self) -> usize {
        self.prepared.len()
    }

    /// Ready when there are bytes, with their number, or when there will be none.
    pub(in crate::serve) fn poll_prepared(&mut self, cx: &mut Context<'_>) -> Poll<usize> {
        while self.prepared.is_empty()
            && let Some(body) = &mut self.body
        {
            let polled = catch_unwind(AssertUnwindSafe(|| body.as_mut().poll_bytes(cx)));
            self.turn.set_service(matches!(polled, Ok(Poll::Pending)));
            match polled {
                Ok(polled) => match ready!(polled) {
                    Some(Ok(frame)) => self.accept(frame),
                    Some(Err(error)) => self.fail(BodyError::Service(error)),
                    None => self.body = None,
                },
                Err(_) => self.fail(BodyError::Panicked),
            }
        }
        Poll::Ready(self.prepared.len())
    }

    fn accept(&mut self, frame: Frame<Bytes>) {
        match frame.into_data() {
            Ok(data) => self.prepared = data,
            Err(frame) => {
                self.trailers = frame.into_trailers().ok();
                self.body = None;
            }
        }
    }

    fn fail(&mut self, error: BodyError) {
        tracing::error!(%error, "a response was cut short");
        self.failure = Some(error);
        self.body = None;
    }

    /// Returns the next bytes, at most `room`.
    pub(in crate::serve) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
        room: usize,
    ) -> Poll<Option<Result<Piece, BodyError>>> {
        let prepared = ready!(self.poll_prepared(cx));
        if prepared == 0 {
            return Poll::Ready(self.failure.take().map(Err));
        }
        let held = self.share.piece(prepared.min(room).min(PIECE));
        let bytes = self.prepared.split_to(held.bytes());
        Poll::Ready(Some(Ok(Piece::holding(bytes, Arc::new(held)))))
    }

    /// Takes the trailers of the service.
    pub(in crate::serve) fn take_trailers(&mut self) -> Option<HeaderMap> {
        self.trailers.take()
    }
}

impl Drop for ServiceBody {
    fn drop(&mut self) {
        self.turn.set_service(false);
    }
}
