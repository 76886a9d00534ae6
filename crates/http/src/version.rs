//! Sets of HTTP versions.

use http::Version;

/// Returns the name of the version as in status lines and JSON: `HTTP/2` and `HTTP/3` have no minor
/// number.
pub const fn version_name(version: Version) -> &'static str {
    match version {
        Version::HTTP_09 | Version::HTTP_10 => "HTTP/1.0",
        Version::HTTP_2 => "HTTP/2",
        Version::HTTP_3 => "HTTP/3",
        _ => "HTTP/1.1",
    }
}

/// A set of HTTP versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// HTTP/1.1 (RFC 9112).
    pub http1: bool,
    /// HTTP/2 over TLS (RFC 9113).
    pub http2: bool,
    /// HTTP/3 (RFC 9114).
    pub http3: bool,
}

impl Versions {
    /// All versions.
    pub const ALL: Self = Self { http1: true, http2: true, http3: true };
    /// HTTP/1.1 only.
    pub const HTTP_1: Self = Self { http1: true, http2: false, http3: false };
    /// HTTP/2 only.
    pub const HTTP_2: Self = Self { http1: false, http2: true, http3: false };
    /// HTTP/3 only.
    pub const HTTP_3: Self = Self { http1: false, http2: false, http3: true };

    /// Returns whether any version of the set runs over TCP.
    pub const fn over_streams(self) -> bool {
        self.http1 || self.http2
    }

    /// Returns the ALPN names to offer over TCP, best first.
    #[cfg(any(feature = "client", feature = "server"))]
    pub(crate) fn stream_alpn(self) -> Vec<String> {
        let offered = [(self.http2, "h2"), (self.http1, "http/1.1")];
        offered.iter().filter(|(wanted, _)| *wanted).map(|(_, name)| (*name).to_owned()).collect()
    }

    /// Returns the ALPN names to offer over one SCTP stream, which HTTP/2 would multiplex again.
    #[cfg(all(feature = "server", feature = "sctp"))]
    pub(crate) fn sctp_alpn(self) -> Vec<String> {
        if self.http1 { vec!["http/1.1".to_owned()] } else { Vec::new() }
    }

    /// Returns the ALPN names to offer over QUIC, best first.
    #[cfg(any(feature = "client", feature = "server"))]
    pub(crate) fn quic_alpn(self) -> Vec<String> {
        if self.http3 { vec!["h3".to_owned()] } else { Vec::new() }
    }

    /// Returns whether the set contains this version.
    pub fn contains(self, version: Version) -> bool {
        match version {
            Version::HTTP_2 => self.http2,
            Version::HTTP_3 => self.http3,
            _ => self.http1,
        }
    }
}

impl Default for Versions {
    fn default() -> Self {
        Self::ALL
    }
}
