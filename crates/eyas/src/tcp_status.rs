//! What the kernel knows of a TCP connection whose stream belongs to somebody else.

use std::time::Duration;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod other;

#[cfg(any(target_os = "linux", target_os = "android"))]
pub(crate) use linux::{TcpGuard, undelivered};
#[cfg(any(target_os = "linux", target_os = "android"))]
pub use linux::{TcpProbe, TcpStatus};
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub(crate) use other::{TcpGuard, undelivered};
#[cfg(not(any(target_os = "linux", target_os = "android")))]
pub use other::{TcpProbe, TcpStatus};

/// Silence after which the kernel sends a keep-alive probe.
pub(crate) const KEEP_ALIVE_AFTER: Duration = Duration::from_secs(60);

/// What the kernel knows of a TCP connection. For MPTCP it is about the first subflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TcpReading {
    /// Whether there is data that the peer has not acknowledged, sent or still to be sent.
    pub has_unacknowledged: bool,
    /// How long ago the last acknowledgement arrived, to the kernel's clock tick: up to 10 ms too
    /// much or too little.
    pub since_acknowledgement: Duration,
    /// How long an acknowledgement may take before the data counts as lost: the smoothed round trip
    /// and its variance, and the time for which a peer may delay it (RFC 6298 §2).
    pub patience: Duration,
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// How many segments were sent again since the connection was opened.
    pub retransmitted: u64,
    /// How often the peer has left unanswered, one time after the other, what had to be sent again,
    /// and probes of its window or for a sign of life.
    pub unanswered: u32,
}
