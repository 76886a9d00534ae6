//! Why a body ended prematurely.

use std::error::Error;

use eyas_h3::message::MessageFault;

use crate::http3::StreamError;

/// Any error.
pub(super) type BoxError = Box<dyn Error + Send + Sync>;

/// The reason why a body ended prematurely.
#[derive(Debug, thiserror::Error)]
pub(super) enum BodyError {
    /// The request's body could not be read.
    #[error("reading the request body: {0}")]
    Hyper(#[from] hyper::Error),
    /// The request's body could not be read.
    #[error("reading the request body: {0}")]
    Http2(#[from] h2::Error),
    /// The request's body could not be read.
    #[error("reading the request body: {0}")]
    Http3(StreamError),
    /// The client reads no more of a tunnel.
    #[error("the client has cancelled the tunnel")]
    Abandoned,
    /// The request's trailers are malformed, which the h2 crate does not notice.
    #[error("reading the request's trailers: {0}")]
    Trailers(MessageFault),
    /// The request's body is bigger than the server allows.
    #[error("the request body exceeds the limit of {0} bytes")]
    TooLarge(u64),
    /// The service failed.
    #[error("the service failed: {0}")]
    Service(BoxError),
    /// The service panicked.
    #[error("the service panicked")]
    Panicked,
    /// A personality of the test server requires it.
    #[error("deliberately cut short")]
    Deliberate,
}
