//! Why a request over HTTP/3, or its response, goes no further.

use eyas_h3::{
    fault::{ConnectionFault, StreamFault},
    misuse::Misuse,
};

use super::transport::{PeerCode, QuicConnectionEnd, QuicFailure};

/// Why a connection has ended.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum ConnectionEnd {
    /// QUIC says so.
    #[error("{0}")]
    Quic(QuicConnectionEnd),
    /// The peer broke a rule, and this side closed the connection.
    #[error("the peer violated HTTP/3: {0}")]
    Violation(ConnectionFault),
}

/// Why a half of a request's stream carries no more.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum StreamError {
    /// The peer reset the stream, or asked to stop.
    #[error("the peer reset the stream: {0}")]
    Aborted(PeerCode),
    /// The peer accepts no further requests (RFC 9114 §5.2).
    #[error("the peer is closing the connection")]
    GoingAway,
    /// What the peer sent on this stream is wrong, which concerns only the stream.
    #[error("what the peer sent is malformed: {0}")]
    Malformed(StreamFault),
    /// The peer announces a field section that is much larger than is accepted. Nothing of it was read.
    #[error("the head or the trailers of the message are much larger than is accepted")]
    Excessive,
    /// What the peer sent on this stream is wrong, which ended the connection.
    #[error("the peer violated HTTP/3: {0}")]
    Violation(ConnectionFault),
    /// The connection has ended.
    #[error("{0}")]
    Ended(ConnectionEnd),
    /// This side asks for what cannot be sent.
    #[error("{0}")]
    Misuse(Misuse),
    /// The stream was lost with early data, or was ended by this side.
    #[error("{0}")]
    Unusable(QuicFailure),
}

impl StreamError {
    /// Returns whether the peer has stated that it did not process the request (RFC 9114 §4.1.1, §5.2).
    #[cfg(feature = "client")]
    pub(crate) fn is_unprocessed(&self) -> bool {
        match self {
            Self::Aborted(code) => code.is(eyas_h3::code::ErrorCode::RequestRejected),
            Self::GoingAway => true,
            _ => false,
        }
    }

    /// Returns whether the peer broke a rule on this stream.
    pub(crate) fn is_violation(&self) -> bool {
        matches!(self, Self::Malformed(_) | Self::Excessive | Self::Violation(_))
    }
}

impl From<StreamFault> for StreamError {
    fn from(fault: StreamFault) -> Self {
        Self::Malformed(fault)
    }
}

impl From<Misuse> for StreamError {
    fn from(misuse: Misuse) -> Self {
        match misuse {
            Misuse::GoingAway => Self::GoingAway,
            other => Self::Misuse(other),
        }
    }
}
