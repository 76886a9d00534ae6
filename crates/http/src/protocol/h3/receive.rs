//! Receives a response.

use std::{
    fmt,
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, Bytes};
use eyas::race::evidence::FailureCause;
use h3::{
    client::RequestStream,
    error::{Code, StreamError},
};
use http::{Response, StatusCode};
use http_body::Frame;

use super::{
    ClientSide, Http3, NoResponse, broken::Watch, frame_error, keep_alive::InFlightGuard,
    stream_error, transmit::Transmission,
};
use crate::{
    Error, Kind,
    protocol::InformationalLimit,
    quic_streams::{FrameError, Receiving},
};

/// The body of a response over HTTP/3. Dropping it before the end tells the peer to stop sending.
pub struct ReceivedBody {
    stream: RequestStream<Receiving<ClientSide>, Bytes>,
    state: State,
    transmission: Option<Transmission>,
    watch: Watch,
    /// The connection lives as long as one of its responses is being read.
    connection: Http3,
    /// The connection is kept alive until then.
    _in_flight: InFlightGuard,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Data,
    Trailers,
    Ended,
}

impl ReceivedBody {
    pub(super) fn new(
        stream: RequestStream<Receiving<ClientSide>, Bytes>,
        connection: Http3,
        in_flight: InFlightGuard,
    ) -> Self {
        Self {
            stream,
            state: State::Data,
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
            let received = self.stream.recv_response().await;
            let response = received.map_err(|error| {
                match self.connection.goaway.excludes(self.stream.id()) {
                    true => NoResponse::Stream(StreamError::RemoteClosing, None),
                    false => NoResponse::Stream(error, self.watch.cause()),
                }
            })?;
            if !response.status().is_informational() {
                return Ok(response);
            }
            if response.status() == StatusCode::SWITCHING_PROTOCOLS {
                // RFC 9114 §4.5.
                let why = "it answered 101 (Switching Protocols), which HTTP/3 does not have";
                return Err(NoResponse::Violation(Error::new(Kind::Protocol, why)));
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
        f.debug_struct("Http3Body").field("state", &self.state).finish_non_exhaustive()
    }
}

impl http_body::Body for ReceivedBody {
    type Data = Bytes;
    type Error = Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        let polled = self.poll(cx);
        match &polled {
            Poll::Ready(_) => self.watch.received(),
            Poll::Pending => self.watch.awaits(),
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.state == State::Ended
    }
}

impl ReceivedBody {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Error>>> {
        loop {
            match self.state {
                State::Data => match ready!(self.stream.poll_recv_data(cx)) {
                    Ok(Some(mut data)) if data.has_remaining() => {
                        let data = data.copy_to_bytes(data.remaining());
                        return Poll::Ready(Some(Ok(Frame::data(data))));
                    }
                    Ok(Some(_)) => {}
                    Ok(None) => self.state = State::Trailers,
                    Err(error) => return Poll::Ready(Some(Err(self.fail(&error)))),
                },
                State::Trailers => match ready!(self.stream.poll_recv_trailers(cx)) {
                    Ok(trailers) => {
                        self.state = State::Ended;
                        if let Some(trailers) = trailers {
                            return Poll::Ready(Some(Ok(Frame::trailers(trailers))));
                        }
                    }
                    Err(error) => return Poll::Ready(Some(Err(self.fail(&error)))),
                },
                State::Ended => return Poll::Ready(None),
            }
        }
    }

    fn fail(&mut self, error: &StreamError) -> Error {
        self.state = State::Ended;
        let kind = match (error, frame_error(error)) {
            (_, Some(FrameError::Truncated)) => Kind::BodyTruncated,
            (_, Some(FrameError::TooLong)) => Kind::Protocol,
            (StreamError::StreamError { code, .. }, _) if *code == Code::H3_REQUEST_INCOMPLETE => {
                Kind::BodyTruncated
            }
            (StreamError::StreamError { .. } | StreamError::HeaderTooBig { .. }, _) => {
                Kind::Protocol
            }
            _ => Kind::BodyReset,
        };
        stream_error(kind, error).with_path_failure(self.watch.cause())
    }
}
