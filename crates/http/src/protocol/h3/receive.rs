//! Receives a response.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll},
};

use bytes::Bytes;
use eyas::race::evidence::FailureCause;
use eyas_h3::message::RequestMethod;
use http::Response;
use http_body::Frame;

use super::{
    Http3, NoResponse, body_kind, broken::Watch, keep_alive::InFlightGuard, stream_error,
    transmit::Transmission,
};
use crate::{
    Error,
    http3::{Receiving, StreamError},
    protocol::InformationalLimit,
};

/// The body of a response over HTTP/3. Dropping it before the end tells the peer to stop sending.
pub struct ReceivedBody {
    stream: Receiving<quinn::Connection>,
    /// The kind of the request's method.
    method: RequestMethod,
    is_over: bool,
    transmission: Option<Transmission>,
    watch: Watch,
    /// The connection lives as long as one of its responses is being read.
    connection: Http3,
    /// The connection is kept alive until then.
    _in_flight: InFlightGuard,
}

impl ReceivedBody {
    pub(super) fn new(
        stream: Receiving<quinn::Connection>,
        method: RequestMethod,
        connection: Http3,
        in_flight: InFlightGuard,
    ) -> Self {
        Self {
            stream,
            method,
            is_over: false,
            transmission: None,
            watch: Watch::new(&connection),
            connection,
            _in_flight: in_flight,
        }
    }

    /// Returns the head of the final response. Calls `interim` with each informational one before it.
    pub(super) async fn head(
        &mut self,
        mut interim: impl FnMut(&Response<()>),
    ) -> Result<Response<()>, NoResponse> {
        let limit = InformationalLimit::default();
        loop {
            let (shared, id) = (self.connection.client.shared(), self.stream.id());
            let received = tokio::select! {
                biased;
                received = self.stream.response(self.method) => received,
                // The server need not reset what it does not process (RFC 9114 §5.2).
                () = shared.excluded(id) => Err(StreamError::GoingAway),
            };
            let response = received.map_err(|error| match shared.excludes(id) {
                true => NoResponse::Stream(StreamError::GoingAway, None),
                false => NoResponse::Stream(error, self.watch.cause()),
            })?;
            if !response.status().is_informational() {
                return Ok(response);
            }
            let counted = limit.count(response.headers());
            counted.map_err(|too_many| NoResponse::Violation(too_many.into()))?;
            interim(&response);
        }
    }

    /// Returns what is to be remembered of the path after an error, if it is the cause.
    pub fn cause(&self) -> Option<FailureCause> {
        self.watch.cause()
    }

    /// Lets what is left of the request be sent although the response has ended. Otherwise it is cancelled once this is
    /// dropped.
    pub fn let_request_end(&mut self) {
        if let Some(transmission) = self.transmission.take() {
            transmission.outlive_response(self.connection.clone());
        }
    }

    pub(super) fn with_transmission(mut self, transmission: Transmission) -> Self {
        self.transmission = Some(transmission);
        self
    }
}

impl fmt::Debug for ReceivedBody {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http3Body").field("is_over", &self.is_over).finish_non_exhaustive()
    }
}

impl http_body::Body for ReceivedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let Poll::Ready(next) = self.stream.poll_frame(cx) else {
            self.watch.awaits();
            return Poll::Pending;
        };
        self.is_over = !matches!(next, Some(Ok(_)));
        let next = next.map(|frame| {
            frame.map_err(|error| {
                let cause = self.watch.cause();
                stream_error(body_kind(&error), &error).with_path_failure(cause)
            })
        });
        self.watch.received();
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        self.is_over
    }
}
