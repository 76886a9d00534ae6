//! Which versions of HTTP a server speaks.

/// A set of HTTP versions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// HTTP/1.1 (RFC 9112).
    pub http1: bool,
    /// HTTP/2 (RFC 9113).
    pub http2: bool,
    /// HTTP/3 (RFC 9114).
    pub http3: bool,
}

impl Versions {
    /// All of them.
    pub const ALL: Self = Self { http1: true, http2: true, http3: true };
}
