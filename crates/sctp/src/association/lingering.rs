//! A deadline for data that delays the shutdown (RFC 9260 §9.2 sets none before the SHUTDOWN, and a
//! peer with a window of zero may acknowledge probes forever, §6.1 A).

use alloc::boxed::Box;
use core::time::Duration;

/// The peer must accept this fraction of the data that was queued at the start of the shutdown
/// within each [`shutdown_stall`](crate::config::AssociationConfig::shutdown_stall), and so all of
/// it within this many times that.
const SHUTDOWN_PARTS: usize = 32;

/// The progress that the peer has to make before the association can shut down, once a shutdown was
/// requested.
#[derive(Debug, Default)]
pub(super) struct ShutdownProgress {
    expected: Option<Box<ExpectedProgress>>,
}

#[derive(Clone, Copy, Debug)]
struct ExpectedProgress {
    /// When the peer must have accepted another part.
    due: Duration,
    /// The bytes that may remain by then.
    at_most: usize,
    /// The bytes of a part.
    part: usize,
}

impl ShutdownProgress {
    /// Starts the deadline for the bytes that are queued, unless it has been started.
    pub(super) fn begin(&mut self, now: Duration, queued: usize, stall: Duration) {
        let part = queued.div_ceil(SHUTDOWN_PARTS);
        let at_most = queued - part;
        self.expected.get_or_insert_with(|| {
            Box::new(ExpectedProgress { due: now.saturating_add(stall), at_most, part })
        });
    }

    /// Returns the current deadline.
    pub(super) fn due(&self) -> Option<Duration> {
        self.expected.as_ref().map(|expected| expected.due)
    }

    /// Handles the deadline. Returns whether the peer has accepted enough data; it then has another
    /// `stall` for the next part.
    pub(super) fn handle_timeout(&mut self, now: Duration, queued: usize, stall: Duration) -> bool {
        let Some(expected) = &mut self.expected else { return true };
        if queued > expected.at_most {
            return false;
        }
        expected.at_most = queued.saturating_sub(expected.part);
        expected.due = now.saturating_add(stall);
        true
    }
}
