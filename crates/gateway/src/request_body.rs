//! The body of a request on its way to the upstream, which must be as long as announced.

use std::error::Error;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use eyas_http::serve::RequestBodyError;
use http_body::{Body, Frame, SizeHint};
use http_body_util::BodyExt as _;
use thiserror::Error;

use crate::expect::BodyGate;
use crate::fields;

/// Any error.
pub(crate) type BoxError = Box<dyn Error + Send + Sync>;

/// A body of any type.
type AnyBody = Pin<Box<dyn Body<Data = Bytes, Error = BoxError> + Send>>;

/// Why a body was not completed.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub(crate) enum UploadError {
    /// The client aborted it.
    #[error("the client aborted its request: {0}")]
    Broken(String),
    /// It is larger than the server allows.
    #[error("{0}")]
    TooLarge(String),
    /// It has more bytes than were announced, or fewer.
    #[error("the request's body is not as long as its Content-Length")]
    Length,
    /// The upstream responded without it.
    #[error("the upstream answered without the body")]
    Unwanted,
}

/// The progress of a body, for the task that waits for the response.
#[derive(Debug, Default)]
pub(crate) struct UploadProgress {
    bytes: AtomicU64,
    /// The upstream is ready for data that the client has not sent yet.
    awaited: AtomicBool,
    over: AtomicBool,
    error: Mutex<Option<UploadError>>,
    pub(crate) gate: BodyGate,
}

impl UploadProgress {
    /// Creates the progress of a body, which may have to wait until the gate opens.
    pub(crate) fn new(waits: bool) -> Arc<Self> {
        let gate = if waits { BodyGate::default() } else { BodyGate::opened() };
        Arc::new(Self { gate, ..Self::default() })
    }

    /// Returns the number of bytes that the upstream has accepted.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Relaxed)
    }

    /// Returns whether the client is to send more.
    pub(crate) fn is_awaited(&self) -> bool {
        self.awaited.load(Relaxed)
    }

    /// Returns whether the body is complete.
    pub(crate) fn is_over(&self) -> bool {
        self.over.load(Relaxed)
    }

    /// Returns the error of the body, if it was not the upstream's.
    pub(crate) fn error(&self) -> Option<UploadError> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn fail(&self, error: UploadError) -> BoxError {
        self.over.store(false, Relaxed);
        *self.error.lock().unwrap_or_else(PoisonError::into_inner) = Some(error.clone());
        error.into()
    }
}

/// The body for the upstream.
pub(crate) struct UploadBody {
    /// `None` once it has ended.
    body: Option<AnyBody>,
    /// The frame that was peeked at.
    first: Option<Frame<Bytes>>,
    /// The number of bytes that are missing, if the length was announced.
    left: Option<u64>,
    progress: Arc<UploadProgress>,
}

impl UploadBody {
    /// Returns an empty body.
    pub(crate) fn none() -> Self {
        let progress = UploadProgress::new(false);
        progress.over.store(true, Relaxed);
        Self { body: None, first: None, left: None, progress }
    }

    /// Wraps this body with its announced length.
    pub(crate) fn new<B>(body: B, announced: Option<u64>, progress: Arc<UploadProgress>) -> Self
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let body: AnyBody = Box::pin(body.map_err(Into::into));
        Self { body: Some(body), first: None, left: announced, progress }
    }

    pub(crate) fn progress(&self) -> &Arc<UploadProgress> {
        &self.progress
    }

    /// Waits for the first frame or the end, and returns whether the body is empty.
    pub(crate) async fn is_empty(&mut self) -> Result<bool, UploadError> {
        match poll_fn(|cx| self.poll_part(cx)).await {
            None => Ok(true),
            Some(Ok(frame)) => {
                self.first = Some(frame);
                Ok(false)
            }
            Some(Err(_)) => {
                let broken = || UploadError::Broken("its end is missing".to_owned());
                Err(self.progress.error().unwrap_or_else(broken))
            }
        }
    }

    fn poll_part(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        if !ready!(self.progress.gate.poll_open(cx)) {
            self.body = None;
            return Poll::Ready(Some(Err(self.progress.fail(UploadError::Unwanted))));
        }
        let polled = body.as_mut().poll_frame(cx);
        self.progress.awaited.store(polled.is_pending(), Relaxed);
        let Some(frame) = ready!(polled) else { return Poll::Ready(self.end().map(Err)) };
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => {
                self.body = None;
                return Poll::Ready(Some(Err(self.progress.fail(upload_error(&error)))));
            }
        };
        match frame.into_data() {
            Ok(data) => Poll::Ready(Some(self.count(data).and_then(|data| {
                // The upstream is to learn of the end together with the last data.
                let has_ended = self.body.as_ref().is_some_and(|body| body.is_end_stream());
                match has_ended.then(|| self.end()).flatten() {
                    Some(error) => Err(error),
                    None => Ok(Frame::data(data)),
                }
            }))),
            Err(frame) => {
                let trailers = frame.into_trailers().unwrap_or_default();
                match self.end() {
                    Some(error) => Poll::Ready(Some(Err(error))),
                    None => {
                        Poll::Ready(Some(Ok(Frame::trailers(fields::filter_trailers(trailers)))))
                    }
                }
            }
        }
    }

    /// Counts bytes, and fails if there are more than announced.
    fn count(&mut self, data: Bytes) -> Result<Bytes, BoxError> {
        let length = data.len() as u64;
        if let Some(left) = &mut self.left {
            match left.checked_sub(length) {
                Some(rest) => {
                    *left = rest;
                    // The end is not read after the last announced byte.
                    self.progress.over.store(rest == 0, Relaxed);
                }
                None => {
                    self.body = None;
                    return Err(self.progress.fail(UploadError::Length));
                }
            }
        }
        self.progress.bytes.fetch_add(length, Relaxed);
        Ok(data)
    }

    /// Notes the end, and returns an error if it is too early.
    fn end(&mut self) -> Option<BoxError> {
        self.body = None;
        if self.left.is_some_and(|left| left > 0) {
            return Some(self.progress.fail(UploadError::Length));
        }
        self.progress.over.store(true, Relaxed);
        None
    }
}

/// Returns the error for a body that the server in front has aborted.
fn upload_error(error: &BoxError) -> UploadError {
    let text = error.to_string();
    match error.downcast_ref::<RequestBodyError>() {
        Some(error) if error.is_too_large() => UploadError::TooLarge(text),
        _ => UploadError::Broken(text),
    }
}

impl Body for UploadBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        match self.first.take() {
            Some(first) => Poll::Ready(Some(Ok(first))),
            None => self.poll_part(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.first.is_none() && self.body.is_none()
    }

    fn size_hint(&self) -> SizeHint {
        // The framing is set in the head.
        SizeHint::default()
    }
}

#[cfg(test)]
mod tests;
