//! Sends the request's body while the response is received.

use std::pin::pin;

use bytes::{Buf as _, Bytes};
use eyas_h3::{code::ErrorCode, misuse::Misuse};
use http_body::Body;
use http_body_util::BodyExt as _;
use tokio::sync::oneshot;

use super::stream_error;
use crate::{
    Error, Kind,
    http3::{Sending, StreamError},
};

type BoxError = Box<dyn std::error::Error + Send + Sync>;

type SendStream = Sending<quinn::Connection>;

/// A body being sent in a separate task. Dropping this resets the stream, so that a truncated body
/// never looks complete to the peer.
pub(super) struct Transmission {
    outcome: Option<oneshot::Receiver<Result<(), Error>>>,
}

/// Sends the body: at once if it is empty, otherwise in the background.
pub(super) async fn start<B>(mut stream: SendStream, body: B) -> Result<Transmission, Error>
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    if body.is_end_stream() {
        // STOP_SENDING for an empty body is not a failure of the request.
        let _ = stream.finish().await;
        return Ok(Transmission { outcome: None });
    }
    let (mut result, outcome) = oneshot::channel();
    tokio::spawn(async move {
        let done = tokio::select! {
            done = transmit(&mut stream, body) => Some(done),
            () = result.closed() => None,
        };
        match done {
            Some(Ok(())) => {
                let _ = result.send(Ok(()));
            }
            Some(Err(error)) => {
                stream.reset(ErrorCode::RequestCancelled);
                let _ = result.send(Err(error));
            }
            None => stream.reset(ErrorCode::RequestCancelled),
        }
    });
    Ok(Transmission { outcome: Some(outcome) })
}

async fn transmit<B>(stream: &mut SendStream, body: B) -> Result<(), Error>
where
    B: Body<Data = Bytes>,
    B::Error: Into<BoxError>,
{
    let mut body = pin!(body.map_err(source_error));
    while !body.is_end_stream()
        && let Some(frame) = body.frame().await
    {
        let sent = match frame?.into_data() {
            Ok(data) if data.has_remaining() => stream.send_data(data).await,
            Ok(_) => Ok(()),
            Err(frame) => match frame.into_trailers() {
                Ok(trailers) => stream.send_trailers(&trailers).await,
                Err(_) => Ok(()),
            },
        };
        match sent {
            Ok(()) => {}
            // The peer needs no more of the body, and the response decides the outcome, whatever the
            // code: "Clients MUST NOT discard complete responses as a result of having their request
            // terminated abruptly" (RFC 9114 §4.1).
            Err(StreamError::Aborted(_)) => return Ok(()),
            Err(error) => return Err(send_error(&error)),
        }
    }
    stream.finish().await.map_err(|error| send_error(&error))
}

fn send_error(error: &StreamError) -> Error {
    match error {
        StreamError::Misuse(Misuse::ContentLength { .. }) => stream_error(Kind::RequestBody, error),
        error => stream_error(Kind::Protocol, error),
    }
}

/// Returns the error of a body's source, which may be ours already.
fn source_error(error: impl Into<BoxError>) -> Error {
    match error.into().downcast::<Error>() {
        Ok(error) => *error,
        Err(error) => Error::from_source(Kind::RequestBody, error),
    }
}

impl Transmission {
    /// Lets the body be sent to its end although the response is complete (RFC 9114 §4.1: the server asks the client
    /// to stop, if it wants that). `connection` lives as long as that takes.
    pub(super) fn outlive_response<C: Send + 'static>(self, connection: C) {
        if let Some(outcome) = self.outcome {
            tokio::spawn(async move {
                let _ = outcome.await;
                drop(connection);
            });
        }
    }

    /// Returns the error if sending fails; never returns otherwise.
    pub(super) async fn failed(&mut self) -> Error {
        let outcome = match &mut self.outcome {
            Some(outcome) => outcome.await,
            None => return std::future::pending().await,
        };
        self.outcome = None;
        match outcome {
            Ok(Err(error)) => error,
            _ => std::future::pending().await,
        }
    }
}
