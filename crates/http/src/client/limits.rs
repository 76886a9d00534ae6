//! The time limits and redirect limits of a request.

use std::time::Duration;

use tokio::time::Instant;

/// The default maximum number of redirects.
const DEFAULT_REDIRECTS: usize = 10;

/// The limits of a request: those of its client unless it overrides them.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// The maximum number of redirects.
    pub(super) redirects: usize,
    /// How long to wait for a connection.
    pub(super) connect: Option<Duration>,
    /// How long the whole exchange may take.
    pub(super) total: Option<Duration>,
    /// When that time is over, once the exchange has begun.
    pub(super) deadline: Option<Instant>,
    /// How long the peer may be silent.
    pub(super) idle: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            redirects: DEFAULT_REDIRECTS,
            connect: None,
            total: None,
            deadline: None,
            idle: None,
        }
    }
}
