//! On which path an acknowledgement returns.

/// Where a SACK is sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum SackPath {
    /// The path on which the last packet with data came (RFC 9260 §6.4).
    LastArrival,
    /// The paths that delivered data since the last SACK, in turn.
    InTurn,
    /// The active path with the shortest smoothed round trip.
    #[default]
    LowestRtt,
    /// The path on which the first packet with data came since the last SACK.
    First,
}
