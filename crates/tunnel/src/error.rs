//! Why a tunnel cannot be used.

use eyas::ConnectError;
use eyas::race::evidence::{AttemptFailure, FailureCause};
use eyas_relay::destination::{RefusedRequest, RequestRefusal};
use eyas_relay::proxy_status::ErrorType;

use crate::forward::ListenAt;
use crate::frame::RefuseReason;
use crate::session::SessionEnd;

/// Why a tunnel cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TunnelError {
    /// The server cannot be reached.
    #[error(transparent)]
    Connect(#[from] ConnectError),
    /// The proxy cannot be reached, or does not lead to the server.
    #[error("{text}")]
    Proxy {
        /// What went wrong.
        fault: ProxyFault,
        /// The same as text.
        text: String,
    },
    /// TLS with the server, through a proxy, failed.
    #[error("through the proxy: {}: {}", .0.cause, .0.detail)]
    Handshake(AttemptFailure),
    /// The server presented no key.
    #[error("the server presented no key")]
    NoKey,
    /// The session ended before it had begun.
    #[error("the server does not accept this key, or serves no tunnels: {0}")]
    NotAccepted(SessionEnd),
    /// It is impossible to listen at this end.
    #[error("cannot listen at {0}: {1}")]
    Listen(ListenAt, String),
    /// The other end refused a request.
    #[error("{what}: {text}")]
    Refused {
        /// What was refused.
        what: String,
        /// The reason.
        why: RefuseReason,
        /// The reason as text.
        text: String,
    },
    /// The session is over.
    #[error("the session is over: {0}")]
    Over(SessionEnd),
}

impl TunnelError {
    /// Returns why the key of the server was rejected, if that is the error.
    pub fn rejected_key(&self) -> Option<&AttemptFailure> {
        match self {
            Self::Connect(error) => error.certificate().map(|(_, failure)| failure),
            Self::Handshake(failure) => {
                (failure.cause == FailureCause::Certificate).then_some(failure)
            }
            _ => None,
        }
    }
}

/// What went wrong at or before a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ProxyFault {
    /// DNS has no address of the proxy.
    NoAddress,
    /// There is no connection to the proxy, or from there to the server.
    Unreachable,
    /// The proxy did not answer in time.
    TimedOut,
    /// The certificate of an `https` proxy was rejected.
    Certificate,
    /// TLS with an `https` proxy failed otherwise.
    Tls,
    /// The proxy violated HTTP.
    Protocol,
    /// The proxy requires other credentials (407).
    Unauthorized,
    /// The proxy does not allow connections to the server (403).
    NotAllowed,
}

impl From<&RefusedRequest> for ProxyFault {
    fn from(refused: &RefusedRequest) -> Self {
        match (&refused.why, refused.error) {
            (_, ErrorType::ProxyConfigurationError) => Self::Unauthorized,
            (_, ErrorType::TlsCertificateError) => Self::Certificate,
            (_, ErrorType::TlsProtocolError) => Self::Tls,
            (_, ErrorType::HttpProtocolError) => Self::Protocol,
            (RequestRefusal::NoAddress(_), _) => Self::NoAddress,
            (RequestRefusal::TimedOut(_), _) => Self::TimedOut,
            (RequestRefusal::NotAllowed(_), _) => Self::NotAllowed,
            _ => Self::Unreachable,
        }
    }
}
