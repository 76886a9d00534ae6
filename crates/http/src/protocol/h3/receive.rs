//! Receives a response.

use std::{
    pin::Pin,
    task::{Context, Poll, ready},
};

use bytes::{Buf as _, Bytes};
use h3::{
    client::RequestStream,
    error::{Code, StreamError},
};
use http::Response;
use http_body::Frame;

use super::{
    ClientSide, Http3, SendFailure, broken::Watch, failure, frame_error, keep_alive::InFlightGuard,
    stream_error, transmit::Transmission,
};
use crate::{
    Error, Kind,
    protocol::InformationalLimit,
    quic_streams::{FrameError, Receiving},
};

/// The receiving side of one request. Dropping it before the end tells the peer to stop sending.
pub(super) struct ReceivedBody {
    stream: RequestStream<Receiving<ClientSide>, Bytes>,
    state: State,
    transmission: Option<Transmission>,
    watch: Watch,
    /// The connection lives as long as one of its responses is being read.
    _connection: Http3,
    /// The connection is kept alive until then.
    _in_flight: InFlightGuard,
}

#[derive(Clone, Copy, PartialEq, Eq)]
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
            watch: Watch::new(connection.quic.clone()),
            _connection: connection,
            _in_flight: in_flight,
        }
    }

    /// Returns the head of the final response.
    pub(super) async fn head(&mut self) -> Result<Response<()>, SendFailure> {
        let limit = InformationalLimit::default();
        loop {
            let response = self.stream.recv_response().await.map_err(|error| {
                let failure = failure(&error);
                SendFailure {
                    error: failure.error.with_path_failure(self.watch.cause()),
                    ..failure
                }
            })?;
            if !response.status().is_informational() {
                return Ok(response);
            }
            let counted = limit.count(response.headers());
            counted.map_err(|too_many| SendFailure::new(too_many.into()))?;
        }
    }

    pub(super) fn with_transmission(mut self, transmission: Transmission) -> Self {
        self.transmission = Some(transmission);
        self
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
