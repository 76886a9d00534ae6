//! Errors of building endpoints, listeners, identities and resolvers. A failure to connect is a
//! [`ConnectError`](crate::ConnectError).

use std::io;

/// Why an endpoint, a listener, an identity or a resolver could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A certificate or key could not be read or used.
    #[error("certificate or key not usable: {0}")]
    Identity(String),
    /// The security parameters contradict each other, or the crypto provider does not support them.
    #[error("security parameters not usable: {0}")]
    Security(String),
    /// The resolver cannot be used.
    #[error("resolver not usable: {0}")]
    Resolver(String),
    /// A listener could not be bound.
    #[error(transparent)]
    Listen(#[from] crate::sockets::BindError),
    /// The listener's parameters contradict each other.
    #[error("cannot listen: {0}")]
    Parameters(String),
    /// An operation on a socket failed.
    #[error("socket: {0}")]
    Socket(#[from] io::Error),
}

impl From<rustls::Error> for Error {
    fn from(error: rustls::Error) -> Self {
        Self::Security(match error {
            rustls::Error::General(why) => why,
            rustls::Error::InconsistentKeys(_) => {
                "the private key is not that of the certificate".to_owned()
            }
            other => other.to_string(),
        })
    }
}
