//! HTTP on an established connection, in any version.
//!
//! Everything here works on any byte stream or QUIC connection, however it was established.

mod alert;
mod early_answer;
mod expected;
mod fields;
mod h1;
mod h2;
mod h3;
mod informational;
mod life;
mod queued_body;
mod tunnel;
mod wire_body;

use http::{Request, Response, Version};

use self::expected::Expected;
pub use self::{
    early_answer::EarlyAnswer,
    h3::{Http3Body, Http3Failure, Http3FailureKind, Http3Sender, Http3Stream, Patience},
    informational::{InformationalLimit, InputEnd, TooManyInformational},
};
pub(crate) use self::{
    fields::Omitted,
    h1::Http1,
    h2::{Http2, Way},
    h3::Http3,
    life::{Life, Mark},
    tunnel::{TunnelIo, TunnelReply},
};
use crate::{Body, Error};

/// The largest response head that is read, in bytes, over any version.
pub(crate) const MAX_HEAD_BYTES: usize = 256 * 1024;

/// The maximum number of header fields in a response head over HTTP/1; over HTTP/2 and 3 only bytes
/// are counted. hyper reserves two arrays of this length for each head that it reads: together they
/// stay just below 128 KiB, above which glibc would ask the kernel for memory of their own.
pub(crate) const MAX_HEAD_FIELDS: usize = 2_000;

/// The sending side of a connection.
pub(crate) enum Sender {
    Http1(Http1),
    Http2(Http2),
    Http3(Http3),
}

/// Why a request got no response.
pub(crate) struct SendFailure {
    pub(crate) error: Error,
    /// The request's body if it is untouched, because nothing of the request was sent.
    pub(crate) unsent: Option<Body>,
    /// Whether the peer stated that it did not process the request, so that it may be retried
    /// whatever its method.
    pub(crate) unprocessed: bool,
}

impl SendFailure {
    pub(crate) fn new(error: Error) -> Self {
        Self { error, unsent: None, unprocessed: false }
    }
}

impl Sender {
    /// Returns another handle to the same connection, if the version multiplexes.
    pub(crate) fn share(&self) -> Option<Self> {
        match self {
            Self::Http1(_) => None,
            Self::Http2(sender) => Some(Self::Http2(sender.clone())),
            Self::Http3(sender) => Some(Self::Http3(sender.clone())),
        }
    }

    pub(crate) fn version(&self) -> Version {
        match self {
            Self::Http1(_) => Version::HTTP_11,
            Self::Http2(_) => Version::HTTP_2,
            Self::Http3(_) => Version::HTTP_3,
        }
    }

    /// Adds what tells, below a byte stream, whether the host at the other end still answers.
    pub(crate) fn with_life_below(mut self, below: Life) -> Self {
        match &mut self {
            Self::Http1(sender) => sender.below = below,
            Self::Http2(sender) => sender.below = below,
            // QUIC itself tells.
            Self::Http3(_) => {}
        }
        self
    }

    /// Returns what tells whether the host at the other end still answers.
    pub(crate) fn life(&self) -> Life {
        match self {
            Self::Http1(sender) => sender.below.clone(),
            Self::Http2(sender) => sender.below.clone(),
            Self::Http3(sender) => Life::Quic(sender.quic().clone()),
        }
    }

    /// Returns whether the connection is known to be unusable for another request.
    pub(crate) fn is_closed(&self) -> bool {
        match self {
            Self::Http1(sender) => sender.is_closed(),
            Self::Http2(sender) => sender.is_closed(),
            Self::Http3(sender) => sender.is_closed(),
        }
    }

    /// Sends a request with an absolute URI and waits for the head of its response, which must
    /// match the request.
    pub(crate) async fn send(
        &mut self,
        request: Request<Body>,
    ) -> Result<Response<Body>, SendFailure> {
        let expected = Expected::from_request(&request);
        let response = match self {
            Self::Http1(sender) => sender.send(request).await,
            Self::Http2(sender) => sender.send(request).await,
            Self::Http3(sender) => sender.send(request).await,
        }?;
        let (head, body) = response.into_parts();
        expected.check(&head).map_err(SendFailure::new)?;
        Ok(Response::from_parts(head, body))
    }
}
