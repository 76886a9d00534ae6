//! Which path is served first when several may send.

/// In which order paths are asked whether they have something to send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum PathOrder {
    /// By their numbers: the order in which they were added.
    InOrder,
    /// The one first on which nothing was sent for longest.
    OldestTransmission,
    /// The one first on which a packet that leaves now would be there first, by estimates of delay,
    /// rate and queue.
    #[default]
    EarliestArrival,
    /// The shortest smoothed round trip first; those never measured last.
    LowestRtt,
    /// The largest congestion window first.
    LargestWindow,
    /// The largest slow-start threshold first.
    LargestSlowStartThreshold,
    /// The largest room in its window first.
    LargestSpace,
}
