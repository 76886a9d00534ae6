//! Which SACKs measure the round trip of a path.

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
