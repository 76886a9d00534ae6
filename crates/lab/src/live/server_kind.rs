//! How a server and the path to it treat HTTP/3.

/// The kinds of servers that a client meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ServerKind {
    /// The server supports HTTP/3, and the path passes it.
    Http3,
    /// The server supports and announces HTTP/3, but the path swallows UDP.
    Http3Swallowed,
    /// The server does not support HTTP/3: UDP is refused.
    WithoutHttp3,
    /// The server does not support HTTP/3, and the path swallows UDP.
    WithoutHttp3Swallowed,
}

impl ServerKind {
    /// All kinds.
    pub(super) const ALL: [Self; 4] =
        [Self::Http3, Self::Http3Swallowed, Self::WithoutHttp3, Self::WithoutHttp3Swallowed];

    /// Returns its port; the server has its own host, so all ports are free.
    pub(super) const fn port(self) -> u16 {
        match self {
            Self::Http3 => 4431,
            Self::Http3Swallowed => 4432,
            Self::WithoutHttp3 => 4433,
            Self::WithoutHttp3Swallowed => 4434,
        }
    }

    /// Returns whether the server supports HTTP/3.
    pub(super) const fn supports_http3(self) -> bool {
        matches!(self, Self::Http3 | Self::Http3Swallowed)
    }

    pub(super) const fn swallows_udp(self) -> bool {
        matches!(self, Self::Http3Swallowed | Self::WithoutHttp3Swallowed)
    }
}
