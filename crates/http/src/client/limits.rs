//! The time limits and redirect limits of a request.

use std::time::Duration;

/// Redirects followed unless the caller says otherwise.
const DEFAULT_REDIRECTS: usize = 10;

/// What a request is bounded by: the values of its client, unless it has its own.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    /// Redirects that are followed.
    pub(super) redirects: usize,
    /// The wait for a connection.
    pub(super) connect: Option<Duration>,
    /// The whole exchange.
    pub(super) total: Option<Duration>,
    /// The peer's silence.
    pub(super) idle: Option<Duration>,
}

impl Default for Limits {
    fn default() -> Self {
        Self { redirects: DEFAULT_REDIRECTS, connect: None, total: None, idle: None }
    }
}
