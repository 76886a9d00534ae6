//! What a stream may ask of the automatic mapping.

use core::time::Duration;

/// What a stream asks of [`super::StreamMapping::Automatic`]; other mappings do not ask. Preferences are
/// optional: without any the mapping serves all streams alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct StreamPreference {
    /// The lower, the sooner: a path takes the streams of the lowest value first, and slower paths
    /// those of the highest, as long as they have something to send. 0 for streams without a preference.
    pub priority: u16,
    /// How long after it was sent a message should be there, as far as that can be estimated: the
    /// stream takes no path on which it would come later while another one is in time. `None`: no
    /// matter.
    pub deadline: Option<Duration>,
}
