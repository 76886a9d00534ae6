//! Retransmission policies (Iyengar, Amer, Stewart 2006 §4).

/// Where a chunk goes that was lost and is sent again before T3 runs out. After T3 it is another
/// active path (RFC 9260 §6.4.1); among several the policy chooses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum RtxPolicy {
    /// RTX-SAME: the path that it was sent on.
    #[default]
    Same,
    /// RTX-ASAP: a path whose window has room now; of several, the one with the most.
    Asap,
    /// RTX-CWND: the path with the largest congestion window.
    Cwnd,
    /// RTX-SSTHRESH: the path with the largest slow-start threshold.
    Ssthresh,
    /// RTX-LOSSRATE: the path that lost the least part of what was sent on it.
    LossRate,
}
