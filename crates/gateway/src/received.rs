//! The body of a response as it comes from the upstream, over any version.

use std::pin::Pin;
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use eyas::race::evidence::FailureCause;
use eyas_http::pipe::PipeWriter;
use eyas_http::serve::malformed::{Malformed, check_connection_fields, content_length};
use eyas_http::{Http3Body, Kind};
use http::{Method, Response, StatusCode, Version};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use thiserror::Error;

/// The body of a response from the upstream.
#[derive(Debug)]
pub(crate) enum ReceivedBody {
    /// Over HTTP/1.1 or HTTP/2.
    Hyper(Incoming),
    Http3(Box<Http3Received>),
    /// One direction of a WebSocket that was requested over HTTP/3, and the writer of the other.
    WebSocket(Box<Http3Received>, PipeWriter),
}

/// Why a body was not completed.
#[derive(Debug, Error)]
pub(crate) enum ReceivedError {
    #[error("{0}")]
    Hyper(#[source] hyper::Error),
    #[error("{}", .0.detail())]
    Http3(#[source] eyas_http::Error),
}

/// Why a response over HTTP/3 must not be forwarded.
#[derive(Debug, Error)]
pub(crate) enum MalformedResponse {
    #[error(transparent)]
    Fields(#[from] Malformed),
    /// The body is not as long as the head says.
    #[error("{}", .0.detail())]
    Length(#[source] eyas_http::Error),
}

/// A body over HTTP/3. The stream below it fails unless it is as long as announced (RFC 9114 §4.1.2).
#[derive(Debug)]
pub(crate) struct Http3Received {
    body: Http3Body,
    /// The number of bytes that are missing, if the length is known.
    left: Option<u64>,
    /// What follows, if it was read ahead.
    next: Option<Result<Frame<Bytes>, eyas_http::Error>>,
}

impl ReceivedBody {
    /// Checks the head of a response over HTTP/3 once more, because a malformed one must not be forwarded (RFC 9114
    /// §4.1.2, §10.3).
    pub(crate) fn from_http3(
        response: Response<Http3Body>,
        method: &Method,
    ) -> Result<Response<Self>, MalformedResponse> {
        check_connection_fields(Version::HTTP_3, response.headers())?;
        let announced = content_length(response.headers())?;
        let opens_tunnel = method == Method::CONNECT && response.status().is_success();
        // RFC 9110 §6.4.1: these have no content, whatever their fields say.
        let has_none = method == Method::HEAD
            || matches!(response.status(), StatusCode::NO_CONTENT | StatusCode::NOT_MODIFIED);
        let left = match opens_tunnel {
            true => None,
            false if has_none => Some(0),
            false => announced,
        };
        let (head, body) = response.into_parts();
        let mut received = Http3Received { body, left, next: None };
        // Most responses without content end with their head.
        received.read_ahead(&mut Context::from_waker(Waker::noop()));
        if let Some(Err(error)) = received
            .next
            .take_if(|next| next.as_ref().is_err_and(|error| error.kind() == Kind::BodyLength))
        {
            return Err(MalformedResponse::Length(error));
        }
        Ok(Response::from_parts(head, Self::Http3(Box::new(received))))
    }

    /// Adds the writer of what the client sends, to a response that opens a WebSocket.
    pub(crate) fn with_websocket_upload(self, upload: PipeWriter) -> Self {
        match self {
            Self::Http3(received) => Self::WebSocket(received, upload),
            other => other,
        }
    }

    /// Lets what is left of the request be sent although the response is complete. Over HTTP/1.1 and HTTP/2 hyper
    /// sends it anyway.
    pub(crate) fn let_request_end(&mut self) {
        if let Self::Http3(received) = self {
            received.body.let_request_end();
        }
    }

    /// Returns what is to be remembered of the path to the upstream after an error, if that is the cause.
    pub(crate) fn cause(&self) -> Option<FailureCause> {
        match self {
            Self::Hyper(_) => None,
            Self::Http3(received) | Self::WebSocket(received, _) => received.body.cause(),
        }
    }
}

impl Http3Received {
    /// Reads what follows, if it has arrived. So the end is known as soon as possible.
    fn read_ahead(&mut self, cx: &mut Context<'_>) {
        if let Poll::Ready(next) = Pin::new(&mut self.body).poll_frame(cx) {
            self.next = next;
        }
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, ReceivedError>>> {
        let next = match self.next.take() {
            Some(next) => Some(next),
            None => ready!(Pin::new(&mut self.body).poll_frame(cx)),
        };
        let frame = match next {
            None => return Poll::Ready(None),
            Some(Err(error)) => return Poll::Ready(Some(Err(ReceivedError::Http3(error)))),
            Some(Ok(frame)) => frame,
        };
        if let Some(left) = &mut self.left
            && let Some(data) = frame.data_ref()
        {
            *left = left.saturating_sub(data.len() as u64);
            if *left == 0 {
                self.read_ahead(cx);
            }
        }
        Poll::Ready(Some(Ok(frame)))
    }
}

impl Body for ReceivedBody {
    type Data = Bytes;
    type Error = ReceivedError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, ReceivedError>>> {
        match &mut *self {
            Self::Hyper(body) => Pin::new(body).poll_frame(cx).map_err(ReceivedError::Hyper),
            Self::Http3(received) | Self::WebSocket(received, _) => received.poll(cx),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Hyper(body) => body.is_end_stream(),
            Self::Http3(received) | Self::WebSocket(received, _) => {
                received.next.is_none() && received.body.is_end_stream()
            }
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Hyper(body) => body.size_hint(),
            Self::Http3(received) | Self::WebSocket(received, _) => {
                received.left.map_or_else(SizeHint::default, SizeHint::with_exact)
            }
        }
    }
}
