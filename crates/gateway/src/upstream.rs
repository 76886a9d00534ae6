//! The address of an upstream.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use eyas::race::target::{TargetHost, parse_port};
use eyas::zone::parse_host;
use http::HeaderValue;
use thiserror::Error;

/// The address of an upstream: `http://host:port` or `unix:/path`, spoken to with HTTP/1.1;
/// `h2c://host:port`, with HTTP/2 in the clear; `https://host:port`, with HTTP/3, HTTP/2 or
/// HTTP/1.1, whichever works best; or `h3://host:port`, with HTTP/3 alone. Paths are not supported,
/// because they would have to be added to that of each request, and removed from redirects and
/// cookies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream(pub(crate) UpstreamAddress);

#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum UpstreamAddress {
    Host { host: TargetHost, port: u16, scheme: UpstreamScheme },
    Unix(PathBuf),
}

/// The error of parsing an [`Upstream`].
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[non_exhaustive]
pub enum UpstreamError {
    /// It is not one of the supported URLs.
    #[error(
        "expected http://HOST:PORT, https://HOST:PORT, h2c://HOST:PORT, h3://HOST:PORT or unix:/PATH"
    )]
    Form,
    /// It has a path, a query, a user or a fragment.
    #[error("an upstream has no path, query or user, as requests have their own; omit {0:?}")]
    Surplus(String),
    /// The host is invalid.
    #[error("{0}")]
    Host(String),
}

/// How an upstream is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum UpstreamScheme {
    /// HTTP/1.1 in the clear.
    Http,
    /// HTTP/2 in the clear, with prior knowledge (RFC 9113 §3.3).
    H2c,
    /// HTTP/3, or HTTP/2 or HTTP/1.1 over TLS.
    Https,
    /// HTTP/3 alone.
    H3,
}

impl UpstreamScheme {
    pub(crate) const fn is_secure(self) -> bool {
        matches!(self, Self::Https | Self::H3)
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::H2c => "h2c",
            Self::Https => "https",
            Self::H3 => "h3",
        }
    }

    const fn default_port(self) -> u16 {
        if self.is_secure() { 443 } else { 80 }
    }
}

impl FromStr for Upstream {
    type Err = UpstreamError;

    fn from_str(text: &str) -> Result<Self, UpstreamError> {
        if let Some(path) = text.strip_prefix("unix:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            return match path.starts_with('/') {
                true => Ok(Self(UpstreamAddress::Unix(path.into()))),
                false => Err(UpstreamError::Form),
            };
        }
        let (scheme, rest) = text.split_once("://").ok_or(UpstreamError::Form)?;
        let scheme = match scheme.to_ascii_lowercase().as_str() {
            "http" => UpstreamScheme::Http,
            "h2c" => UpstreamScheme::H2c,
            "https" => UpstreamScheme::Https,
            "h3" => UpstreamScheme::H3,
            _ => return Err(UpstreamError::Form),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        if let Some(at) = rest.find(['/', '?', '#']) {
            return Err(UpstreamError::Surplus(rest[at..].to_owned()));
        }
        if let Some(at) = rest.find('@') {
            return Err(UpstreamError::Surplus(rest[..=at].to_owned()));
        }
        let (host, port) = match rest.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                (host, parse_port(port).ok_or(UpstreamError::Form)?)
            }
            _ => (rest, scheme.default_port()),
        };
        if port == 0 {
            return Err(UpstreamError::Form);
        }
        let host = host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host);
        let host = parse_host(host).map_err(|error| UpstreamError::Host(error.to_string()))?;
        Ok(Self(UpstreamAddress::Host { host, port, scheme }))
    }
}

impl fmt::Display for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            UpstreamAddress::Host { host, port, scheme } => {
                write!(f, "{}://{host}:{port}", scheme.name())
            }
            UpstreamAddress::Unix(path) => write!(f, "unix:{}", path.display()),
        }
    }
}

impl Upstream {
    /// Returns whether it is never spoken to with HTTP/1.1.
    pub(crate) const fn has_no_http1(&self) -> bool {
        matches!(
            self.0,
            UpstreamAddress::Host { scheme: UpstreamScheme::H2c | UpstreamScheme::H3, .. }
        )
    }

    /// Returns the host for requests without one, which HTTP/1.0 allows.
    pub(crate) fn authority(&self) -> HeaderValue {
        // The zone of an address means something on this host only, and is not sent.
        let sent = |host: &TargetHost| match host {
            TargetHost::Literal(ip, _) => TargetHost::Literal(*ip, 0).to_string(),
            TargetHost::Name(name) => name.clone(),
        };
        let text = match &self.0 {
            UpstreamAddress::Host { host, port, scheme } if *port == scheme.default_port() => {
                sent(host)
            }
            UpstreamAddress::Host { host, port, .. } => format!("{}:{port}", sent(host)),
            UpstreamAddress::Unix(_) => "localhost".to_owned(),
        };
        HeaderValue::try_from(text).unwrap_or_else(|_| HeaderValue::from_static("localhost"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn upstreams_parse_as_displayed() {
        for (text, displayed, authority) in [
            ("http://127.0.0.1:3000", "http://127.0.0.1:3000", "127.0.0.1:3000"),
            ("http://localhost:3000/", "http://localhost:3000", "localhost:3000"),
            ("HTTP://a.example", "http://a.example:80", "a.example"),
            ("https://a.example", "https://a.example:443", "a.example"),
            ("https://[2001:db8::1]:8443", "https://[2001:db8::1]:8443", "[2001:db8::1]:8443"),
            ("http://[::1]", "http://[::1]:80", "[::1]"),
            ("http://[fe80::1%lo]:81", "http://[fe80::1%1]:81", "[fe80::1]:81"),
            ("http://[fe80::1%25lo]", "http://[fe80::1%1]:80", "[fe80::1]"),
            ("h2c://a.example", "h2c://a.example:80", "a.example"),
            ("h3://a.example", "h3://a.example:443", "a.example"),
            ("unix:/run/app.sock", "unix:/run/app.sock", "localhost"),
            ("unix:///run/app.sock", "unix:/run/app.sock", "localhost"),
        ] {
            let upstream: Upstream = text.parse().unwrap();
            assert_eq!(upstream.to_string(), displayed);
            assert_eq!(upstream.authority(), authority);
        }
    }

    #[test]
    fn an_invalid_upstream_is_an_error() {
        for text in [
            "",
            "3000",
            "localhost:3000",
            "ftp://a",
            "http://",
            "http://a:0",
            "http://a:x",
            "http://a:70000",
            "http://a/b",
            "http://a?b",
            "http://u@a",
            "unix:app.sock",
        ] {
            assert!(text.parse::<Upstream>().is_err(), "{text}");
        }
        let surplus = "http://a:1/base".parse::<Upstream>().unwrap_err();
        assert!(surplus.to_string().contains("\"/base\""), "{surplus}");
    }
}
