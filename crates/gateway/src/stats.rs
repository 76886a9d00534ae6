//! The counters of a gateway.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use eyas_http::metrics::Page;

use crate::failure::FailureReason;

/// The counters of a gateway.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct GatewayStats {
    /// Open connections to the upstream.
    pub open: u64,
    /// Connections made.
    pub connections: u64,
    /// Those of them over HTTP/2.
    pub http2_connections: u64,
    /// Those over HTTP/3.
    pub http3_connections: u64,
    /// Requests on a connection that had served others.
    pub reused: u64,
    /// Requests that were retried because the first attempt cannot have had an effect.
    pub repeated: u64,
    /// Currently open upgraded connections, such as WebSockets.
    pub tunnels: u64,
    /// The same since the start.
    pub tunnels_opened: u64,
    /// Responses aborted by the upstream.
    pub aborted_responses: u64,
    /// Requests without a response from the upstream, by reason, in the order of
    /// [`GatewayStats::REASONS`].
    pub failures: [u64; FailureReason::NAMES.len()],
}

impl GatewayStats {
    /// Why there was no response: names used in metrics.
    pub const REASONS: [&'static str; FailureReason::NAMES.len()] = FailureReason::NAMES;

    /// Adds the metrics to a page.
    pub fn write(&self, page: &mut Page) {
        page.gauge("eyas_upstream_connections", "Open connections to the upstream.");
        page.row(self.open);
        let help = "Connections made to the upstream, by version of HTTP.";
        page.counter("eyas_upstream_connections_total", help);
        let multiplexed = self.http2_connections.saturating_add(self.http3_connections);
        let by_version = [
            ("1.1", self.connections.saturating_sub(multiplexed)),
            ("2", self.http2_connections),
            ("3", self.http3_connections),
        ];
        page.rows("version", by_version);
        let help = "Requests sent over a connection that had served others.";
        page.counter("eyas_upstream_reused_total", help);
        page.row(self.reused);
        let help =
            "Requests retried over a new connection because the first attempt had no effect.";
        page.counter("eyas_upstream_repeated_total", help);
        page.row(self.repeated);
        page.gauge("eyas_upstream_tunnels", "Open WebSockets and other tunnels.");
        page.row(self.tunnels);
        page.counter("eyas_upstream_tunnels_total", "WebSockets and other tunnels opened.");
        page.row(self.tunnels_opened);
        page.counter("eyas_upstream_broken_off_total", "Responses aborted by the upstream.");
        page.row(self.aborted_responses);
        let help = "Requests without a response from the upstream, by reason.";
        page.counter("eyas_upstream_failures_total", help);
        page.rows("reason", Self::REASONS.into_iter().zip(self.failures));
    }
}

#[derive(Debug, Default)]
pub(crate) struct GatewayCounters {
    pub(crate) open: AtomicU64,
    pub(crate) connections: AtomicU64,
    pub(crate) http2_connections: AtomicU64,
    pub(crate) http3_connections: AtomicU64,
    pub(crate) reused: AtomicU64,
    pub(crate) repeated: AtomicU64,
    pub(crate) tunnels: AtomicU64,
    pub(crate) tunnels_opened: AtomicU64,
    pub(crate) aborted_responses: AtomicU64,
    failures: [AtomicU64; FailureReason::NAMES.len()],
}

impl GatewayCounters {
    pub(crate) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }

    pub(crate) fn failed(&self, reason: FailureReason) {
        Self::count(&self.failures[reason as usize]);
    }

    pub(crate) fn snapshot(&self) -> GatewayStats {
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        GatewayStats {
            open: read(&self.open),
            connections: read(&self.connections),
            http2_connections: read(&self.http2_connections),
            http3_connections: read(&self.http3_connections),
            reused: read(&self.reused),
            repeated: read(&self.repeated),
            tunnels: read(&self.tunnels),
            tunnels_opened: read(&self.tunnels_opened),
            aborted_responses: read(&self.aborted_responses),
            failures: self.failures.each_ref().map(read),
        }
    }
}
