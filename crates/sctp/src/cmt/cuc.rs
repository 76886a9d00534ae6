//! Congestion window update for CMT (CUC): with one sequence of TSNs over all paths, the cumulative
//! acknowledgement says nothing of a single path, so each has a pseudo-cumulative point of its own
//! (Iyengar, Amer, Stewart: Concurrent Multipath Transfer Using SCTP Multihoming Over Independent
//! End-to-End Paths, 2006, §3.2).

/// When the pseudo-cumulative point of a path counts as advanced, which lets its window grow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum Cuc {
    /// No point for each path: when the cumulative TSN covers something that was sent on it.
    None,
    /// When the lowest TSN that the path has outstanding is acknowledged, retransmitted or not.
    V1,
    /// When the lowest outstanding TSN of those sent once, or the lowest of those retransmitted, is
    /// acknowledged: a retransmission that is lost again does not stop the window.
    #[default]
    V2,
}
