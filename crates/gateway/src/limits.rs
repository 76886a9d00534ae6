//! The limits of a gateway towards its upstream.

use std::time::Duration;

/// The limits of a [`Gateway`](crate::Gateway) towards its upstream. Those of clients are limits of
/// the server in front of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GatewayLimits {
    /// Connections to the upstream, including idle and upgraded ones: 4096 by default. Further
    /// requests wait for [`Self::connect_time`], and are then answered with 503.
    pub connections: usize,
    /// Idle connections kept for further requests: 256 by default.
    pub idle_connections: usize,
    /// How long an idle connection is kept: 4 s by default. Node and uvicorn close theirs after 5
    /// s, and a request that crosses with the close is lost unless it may be retried.
    pub keep_time: Duration,
    /// How long an `https` upstream gets new requests on a connection over HTTP/2 before HTTP/3 is
    /// looked for again: 5 min by default, as long as the memory avoids it after a failure.
    pub fallback_time: Duration,
    /// The time for connecting, after which requests are answered with 504: 5 s by default.
    pub connect_time: Duration,
    /// The time for the head of a response, while the upstream reads nothing of the request: 60 s
    /// by default. Then the answer is 504.
    pub response_time: Duration,
    /// How long to wait after `Expect: 100-continue`: 1 s by default. Then the body is sent anyway
    /// (RFC 9110 §10.1.1).
    pub continue_time: Duration,
    /// The time between two pieces of a response: 5 min by default. Then it is aborted.
    pub idle_time: Duration,
    /// The time without a byte in either direction on an upgraded connection: 1 h by default.
    pub tunnel_idle_time: Duration,
    /// Bytes of a response's head: 64 KiB by default. A larger one is answered with 502.
    pub header_bytes: usize,
    /// Fields of a response: 200 by default. More are answered with 502.
    pub header_fields: usize,
}

impl GatewayLimits {
    /// The smallest useful [`Self::header_bytes`]: hyper's minimum buffer.
    pub const MIN_HEADER_BYTES: usize = 8 * 1024;

    /// Returns these limits, lowered so that connections to the upstream need at most this many descriptors, of which
    /// half are for further attempts to connect.
    #[must_use]
    pub fn within(self, descriptors: usize) -> Self {
        let connections = self.connections.min((descriptors / 2).max(1));
        // Idle ones make room for others, but that takes a moment.
        Self { connections, idle_connections: self.idle_connections.min(connections / 4), ..self }
    }
}

impl Default for GatewayLimits {
    fn default() -> Self {
        Self {
            connections: 4096,
            idle_connections: 256,
            keep_time: Duration::from_secs(4),
            fallback_time: Duration::from_mins(5),
            connect_time: Duration::from_secs(5),
            response_time: Duration::from_secs(60),
            continue_time: Duration::from_secs(1),
            idle_time: Duration::from_secs(300),
            tunnel_idle_time: Duration::from_hours(1),
            header_bytes: 64 * 1024,
            header_fields: 200,
        }
    }
}
