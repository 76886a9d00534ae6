//! HTTP/3 (RFC 9114) for callers that keep connections, and repeat requests, by rules of their own.

use std::{fmt, future::Future};

use bytes::Bytes;
use eyas::race::evidence::FailureCause;
use eyas_h3::misuse::Misuse;
use http::{Request, Response};

use super::{Begun, Http3, Http3Body, NoResponse, NotBegun, Patience, stream_error};
use crate::{Error, Kind, http3::StreamError};

/// One HTTP/3 connection; clones share it. It is closed when the last of them, and of the responses, is dropped.
#[derive(Clone)]
pub struct Http3Sender(Http3);

/// A request whose head has been sent.
pub struct Http3Stream(Begun);

/// Why there is no response.
#[derive(Debug)]
pub struct Http3Failure {
    /// What happened.
    pub error: Error,
    /// What that means for the request.
    pub kind: Http3FailureKind,
    /// What is to be remembered of the path, if it is the cause.
    pub cause: Option<FailureCause>,
}

/// What a failure means for its request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Http3FailureKind {
    /// The connection has no room for another request at present. Nothing was sent.
    Full,
    /// The peer does not process it: it accepts no further requests (RFC 9114 §5.2), or rejected this one (§4.1.1).
    Unprocessed,
    /// Its head is larger than the peer accepts (RFC 9114 §4.2.2). Nothing was sent.
    TooLarge,
    /// The stream or the connection ended before a response began.
    Ended,
    /// The peer sent what is no valid response.
    Malformed,
    /// The source of its body failed.
    Body,
}

impl Http3Sender {
    /// Starts HTTP/3 on a QUIC connection, which negotiated `h3`, with the maximum size of a response's head in bytes.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn start(
        quic: quinn::Connection,
        head_bytes: usize,
        patience: Patience,
    ) -> Result<Self, Error> {
        Http3::with_limits(quic, (false, None), head_bytes, patience).map(Self)
    }

    /// Returns whether no further request can be sent.
    pub fn is_closed(&self) -> bool {
        self.0.is_closed()
    }

    /// Returns whether the peer was asked for a sign of life, and has given none so far.
    pub fn is_doubted(&self) -> bool {
        self.0.keep_alive.is_doubted()
    }

    /// Waits until the connection has ended. The returned future does not keep it open.
    pub fn closed(&self) -> impl Future<Output = ()> + Send + 'static {
        let quic = self.0.quic.clone();
        async move { drop(quic.closed().await) }
    }

    /// Waits for the server's settings, and returns whether it takes extended CONNECT (RFC 9220 §3), or `None` if the
    /// connection ended before.
    pub async fn offers_extended_connect(&self) -> Option<bool> {
        let settings = self.0.client.shared().peer_settings().await;
        settings.map(|settings| settings.extended_connect)
    }

    /// Opens the stream of a request with an absolute URI, and sends its head. If the peer allows no further stream at
    /// present, this either waits, or fails without having sent anything. An extended CONNECT has its protocol in the
    /// extensions, as a [`hyper::ext::Protocol`].
    ///
    /// # Errors
    /// It was not sent as a whole.
    pub async fn begin(
        &mut self,
        head: Request<()>,
        waits: bool,
    ) -> Result<Http3Stream, Http3Failure> {
        if self.0.is_closed() {
            let error = Error::new(Kind::Protocol, "the connection was closed");
            return Err(Http3Failure { error, kind: Http3FailureKind::Unprocessed, cause: None });
        }
        match self.0.begin(head, waits).await {
            Ok(begun) => Ok(Http3Stream(begun)),
            Err(NotBegun::Full) => {
                let error = Error::new(Kind::Protocol, "the peer allows no further stream");
                Err(Http3Failure { error, kind: Http3FailureKind::Full, cause: None })
            }
            Err(NotBegun::Failed(error)) => {
                let kind = match &error {
                    StreamError::Misuse(Misuse::FieldSectionTooLarge { .. }) => {
                        Http3FailureKind::TooLarge
                    }
                    error => kind(error),
                };
                let error = stream_error(Kind::Protocol, &error);
                Err(Http3Failure { error, kind, cause: None })
            }
        }
    }
}

impl Http3Stream {
    /// Sends the body, which may go on after the head of the response has arrived, and waits for that. Calls `interim`
    /// with the head of each informational response before it.
    ///
    /// # Errors
    /// There is no valid response.
    pub async fn exchange<B>(
        self,
        body: B,
        interim: impl FnMut(&Response<()>),
    ) -> Result<Response<Http3Body>, Http3Failure>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let failed = |failed| match failed {
            NoResponse::Stream(error, cause) => {
                let kind = kind(&error);
                Http3Failure { error: stream_error(Kind::Protocol, &error), kind, cause }
            }
            NoResponse::Violation(error) => {
                Http3Failure { error, kind: Http3FailureKind::Malformed, cause: None }
            }
            NoResponse::Body(error) => {
                let is_own = error.kind() == Kind::RequestBody;
                let kind = if is_own { Http3FailureKind::Body } else { Http3FailureKind::Ended };
                Http3Failure { error, kind, cause: None }
            }
        };
        self.0.exchange(body, interim).await.map_err(failed)
    }
}

/// Returns what the failure of a stream means.
fn kind(error: &StreamError) -> Http3FailureKind {
    match error {
        error if error.is_unprocessed() => Http3FailureKind::Unprocessed,
        error if error.is_violation() => Http3FailureKind::Malformed,
        // The other requests of the connection end with it.
        _ => Http3FailureKind::Ended,
    }
}

impl fmt::Debug for Http3Sender {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http3Sender").field("is_closed", &self.is_closed()).finish_non_exhaustive()
    }
}

impl fmt::Debug for Http3Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Http3Stream").field(&self.0.recv.id()).finish()
    }
}
