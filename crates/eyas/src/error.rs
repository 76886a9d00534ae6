//! Errors of building endpoints, listeners, identities and resolvers. A failure to connect is a
//! [`ConnectError`](crate::ConnectError).

use std::io;

const PASSPHRASE_NEEDED: &str = "the private key is encrypted: its passphrase is needed";

/// Why an endpoint, a listener, an identity or a resolver could not be built.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A certificate or key could not be read or used.
    #[error("certificate or key not usable: {0}")]
    Identity(String),
    /// A private key is encrypted, and its passphrase was not given.
    #[error("certificate or key not usable: {PASSPHRASE_NEEDED}")]
    PassphraseNeeded,
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

impl Error {
    /// Returns why a certificate or a key is not usable, if that is the error, for a sentence that
    /// says so itself.
    pub fn identity_fault(&self) -> Option<&str> {
        match self {
            Self::Identity(why) => Some(why),
            Self::PassphraseNeeded => Some(PASSPHRASE_NEEDED),
            _ => None,
        }
    }
}

#[cfg(feature = "sctp")]
impl From<eyas_sctp_tokio::DtlsIdentityError> for Error {
    fn from(error: eyas_sctp_tokio::DtlsIdentityError) -> Self {
        Self::Identity(error.to_string())
    }
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
