//! Errors of starting a server.

use std::{fmt::Display, io, net::SocketAddr};

/// The error of a server that could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ServeError {
    /// An address could not be bound.
    #[error("cannot listen on {address}: {cause}; choose another address or port")]
    Bind {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        cause: io::Error,
    },
    /// SCTP could not be served.
    #[error(
        "cannot serve SCTP on {address}: {cause}; choose another UDP port for it, or serve without SCTP"
    )]
    Sctp {
        /// The address.
        address: SocketAddr,
        /// The system's error.
        cause: io::Error,
    },
    /// The QUIC endpoint could not be started on its socket.
    #[error("cannot start QUIC: {0}; serve without HTTP/3, or see the cause")]
    Endpoint(#[source] io::Error),
    /// A thread could not be started.
    #[error("cannot start a thread to serve with: {0}; serve with fewer of them, or see the cause")]
    Thread(#[source] io::Error),
    /// The certificate or key cannot be used.
    #[error("the certificate or its key cannot be used: {0}")]
    Identity(String),
    /// The roots of client certificates cannot be used.
    #[error("the roots of client certificates cannot be used: {0}")]
    ClientRoots(String),
    /// The server has no identity that could be replaced.
    #[error(
        "the server has no identity to replace: it serves without TLS, or a resolver chooses its \
         certificates; let the resolver choose others"
    )]
    NoOwnIdentity,
    /// There is no version of HTTP to serve.
    #[error("there is no version of HTTP to serve; HTTP/3 requires TLS")]
    NoVersion,
    /// There is no socket to serve on.
    #[error("there is no socket to serve on; give at least one")]
    NoSocket,
}

impl ServeError {
    pub(super) fn identity(cause: impl Display) -> Self {
        Self::Identity(cause.to_string())
    }

    /// Creates the error of an identity that the endpoint cannot use. What both say is said once.
    pub(super) fn unusable_identity(cause: &eyas::Error) -> Self {
        cause.identity_fault().map_or_else(|| Self::identity(cause), Self::identity)
    }
}

impl From<eyas::sockets::BindError> for ServeError {
    fn from(error: eyas::sockets::BindError) -> Self {
        Self::Bind { address: error.address, cause: error.source }
    }
}
