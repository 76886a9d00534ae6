//! On which path an acknowledgement returns.

/// Where a SACK is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(rename_all = "kebab-case"))]
#[non_exhaustive]
pub enum SackPath {
    /// The path on which the last packet with data came (RFC 9260 §6.4).
    LastArrival,
    /// Of the paths that delivered data since the last SACK, the one on which a SACK went least
    /// lately.
    InTurn,
    /// Of the active paths that packets came on lately, the one with the least round trip; another
    /// one after data came twice, as the SACKs may have been lost there.
    #[default]
    LowestRtt,
    /// The path on which the first packet with data came since the last SACK.
    First,
}
