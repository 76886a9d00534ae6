//! Counts the requests of a client and the connections that carried them.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The counters of a client since it was created.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ClientStats {
    /// Requests sent on a connection, including those that follow redirects and those sent again.
    pub requests: u64,
    /// Requests on a connection that had already carried one.
    pub reuses: u64,
    /// Requests that were sent again on another connection.
    pub retries: u64,
    /// Requests that got no response.
    pub failures: u64,
    /// Connections opened for a request. Those of a late switch are not included.
    pub connections: u64,
    /// Connections open now.
    pub connections_open: u64,
}

/// The current counts.
#[derive(Default)]
pub(super) struct Counters {
    pub(super) requests: AtomicU64,
    pub(super) reuses: AtomicU64,
    pub(super) retries: AtomicU64,
    pub(super) failures: AtomicU64,
    pub(super) connections: AtomicU64,
}

impl Counters {
    pub(super) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }

    pub(super) fn stats(&self, open: usize) -> ClientStats {
        ClientStats {
            requests: self.requests.load(Relaxed),
            reuses: self.reuses.load(Relaxed),
            retries: self.retries.load(Relaxed),
            failures: self.failures.load(Relaxed),
            connections: self.connections.load(Relaxed),
            connections_open: open as u64,
        }
    }
}
