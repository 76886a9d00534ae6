//! Why the URL of a proxy cannot be used.

use thiserror::Error;

/// Why the URL of a proxy cannot be used, as what is said of "the proxy URL". It shows nothing of the URL but its
/// scheme and host, because a password could stand anywhere.
#[derive(Debug, Error)]
pub(super) enum ProxyUrlError {
    #[error("is not text")]
    NotText,
    #[error("is blank")]
    Blank,
    #[error("contains {0:?}: write it percent-encoded")]
    NotEncoded(char),
    /// It may be a scheme without its slashes.
    #[error("is malformed: write it as http://HOST:PORT")]
    NoScheme,
    #[error("is not a URL: write special characters percent-encoded")]
    NotUrl,
    #[error("names {0:?}, and only http, https and socks5 proxies are supported")]
    Protocol(String),
    /// This delimiter of ASCII stands before the last `@`.
    #[error("has {:?} in its user or password: write it as %{:02X}", char::from(*.0).to_string(), .0)]
    InCredentials(u8),
    #[error("has '@' in its user or password: write it as %40")]
    AtInCredentials,
    #[error("has a colon in its user, which cannot be sent")]
    ColonInUser,
    #[error("has a user or password that is not UTF-8")]
    CredentialsNotUtf8,
    #[error("has a malformed IPv6 address")]
    Brackets,
    #[error("has an invalid port: it is a number from 1 to 65535")]
    Port,
    #[error("has no host")]
    NoHost,
    #[error("has an invalid host: {0}")]
    Host(#[source] url::ParseError),
    #[error("has an invalid host: {0}")]
    Zone(#[source] eyas::race::target::TargetError),
}
