//! Windows and round trips, whether one path is used or several: where RFC 9260 differs from what was
//! usual before it, and from simulation models.

/// The congestion window of a new path, for an MTU in bytes of IP packet.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InitialWindow {
    /// `min(4 · MTU, max(2 · MTU, 4404))` (RFC 9260 §7.2.1).
    #[default]
    Rfc9260,
    /// `min(4 · MTU, max(2 · MTU, 4380))` (RFC 4960 §7.2.1).
    Rfc4960,
}

impl InitialWindow {
    /// In bytes.
    #[must_use]
    pub fn bytes(self, mtu: usize) -> usize {
        let usual = match self {
            Self::Rfc9260 => 4404,
            Self::Rfc4960 => 4380,
        };
        (4 * mtu).min((2 * mtu).max(usual))
    }
}

/// The slow-start threshold of a new path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InitialThreshold {
    /// None until something is lost.
    #[default]
    Unbounded,
    /// The window that the peer advertised in the handshake (RFC 4960 §7.2.1 suggests it).
    PeerWindow,
}

/// What becomes of the congestion window of a path on which nothing was sent for a retransmission
/// timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IdleWindow {
    /// Halved for each timeout, down to 4 MTU (RFC 9260 §7.2.1).
    #[default]
    Halved,
    /// Back to [`InitialWindow`] at once.
    Initial,
}

/// What closes the window that the peer is told.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WindowAccounting {
    /// User data, and the memory that chunks cost beyond it: tiny chunks close the window early.
    #[default]
    Memory,
    /// User data alone, as simulation models have it. A peer that sends tiny chunks can make this
    /// side hold many times the receive buffer.
    Payload,
}

/// A SACK tells of chunks of all paths, but it comes back on one: what it measures of the others is
/// the way there on one path and the way back on another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RttSampling {
    /// Every SACK measures every path of which it newly acknowledges something.
    #[default]
    AnyPath,
    /// Only chunks that were sent on the path on which the SACK came back are measured.
    SackPath,
}
