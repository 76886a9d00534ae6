//! How a server and the path to it treat HTTP/3.

/// What a client meets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It speaks HTTP/3, and the path lets it through.
    Http3,
    /// It speaks HTTP/3 and announces it, but the path swallows UDP.
    Http3Swallowed,
    /// It speaks no HTTP/3: UDP is refused.
    Old,
    /// It speaks no HTTP/3, and the path swallows UDP.
    OldSwallowed,
}

impl Kind {
    /// All of them.
    pub(super) const ALL: [Self; 4] =
        [Self::Http3, Self::Http3Swallowed, Self::Old, Self::OldSwallowed];

    /// Its port; the host is the server's own, so all ports are free.
    pub(super) const fn port(self) -> u16 {
        match self {
            Self::Http3 => 4431,
            Self::Http3Swallowed => 4432,
            Self::Old => 4433,
            Self::OldSwallowed => 4434,
        }
    }

    /// Whether the server speaks HTTP/3.
    pub(super) const fn speaks_http3(self) -> bool {
        matches!(self, Self::Http3 | Self::Http3Swallowed)
    }

    pub(super) const fn swallows_udp(self) -> bool {
        matches!(self, Self::Http3Swallowed | Self::OldSwallowed)
    }
}
