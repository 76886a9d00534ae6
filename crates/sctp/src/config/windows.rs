//! Windows and round-trip times, for one path or several: where RFC 9260 differs from earlier
//! practice and from simulation models.

/// The initial congestion window of a path, for an MTU in bytes of IP packet.
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
    /// Returns the window in bytes.
    #[must_use]
    pub fn bytes(self, mtu: usize) -> usize {
        let usual = match self {
            Self::Rfc9260 => 4404,
            Self::Rfc4960 => 4380,
        };
        (4 * mtu).min((2 * mtu).max(usual))
    }
}

/// The initial slow-start threshold of a path.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum InitialThreshold {
    /// No threshold until a loss.
    #[default]
    Unbounded,
    /// The window advertised by the peer in the handshake (suggested by RFC 4960 §7.2.1).
    PeerWindow,
}

/// How the congestion window of a path is reduced after nothing was sent on it for a retransmission
/// timeout.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum IdleWindow {
    /// Halved for each timeout, down to 4 MTU (RFC 9260 §7.2.1).
    #[default]
    Halved,
    /// Reset to [`InitialWindow`] at once.
    Initial,
}

/// What reduces the advertised receiver window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum WindowAccounting {
    /// User data and the memory overhead of chunks: tiny chunks close the window early.
    #[default]
    Memory,
    /// User data only, as in simulation models. With tiny chunks, a peer can make this side use
    /// many times the receive buffer.
    Payload,
}

/// Which chunks provide round-trip time samples. A SACK acknowledges chunks of all paths but is
/// returned on one of them: for chunks of other paths it measures the forward delay of one path
/// plus the backward delay of another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RttSampling {
    /// Every newly acknowledged chunk.
    #[default]
    AnyPath,
    /// Only chunks that were sent on the path on which the SACK returned.
    SackPath,
}
