//! How much may leave at once (RFC 9260 §6.1 rule D).

/// What `Max.Burst` ([`crate::config::AssociationConfig::max_burst`]) means where several paths are
/// used at once and nothing paces the packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum BurstLimit {
    /// As many bytes as were acknowledged on the path since, and `Max.Burst` packets more.
    #[default]
    Acknowledged,
    /// `Max.Burst` packets with new data on each path for every event: a packet that came in, a
    /// message that was handed in, a timer. What is not used is lost.
    PerEvent,
    /// As [`Self::PerEvent`], on all paths together.
    Total,
    /// No limit but the window.
    None,
}
