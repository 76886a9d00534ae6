//! What a gateway allows its upstream, and what it asks of it.

use std::time::Duration;

/// The bounds of a [`Gateway`](super::Gateway). What clients may do is for the limits of the server in
/// front of it to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections to the upstream at once, with those that nothing is asked on and those that were
    /// upgraded: 4096. A request above it waits for [`Self::connect_time`], and is then answered 503.
    pub connections: usize,
    /// Connections kept for further requests: 256.
    pub idle_connections: usize,
    /// How long one is kept: 4 s. Node and uvicorn close theirs after 5 s, and a request that meets the
    /// close on its way is lost unless it may be sent again.
    pub keep_time: Duration,
    /// Until a connection is up, or given up with 504: 5 s.
    pub connect_time: Duration,
    /// Until the head of a response, while the upstream takes nothing of the request: 60 s. Then it is
    /// 504.
    pub response_time: Duration,
    /// For what `Expect: 100-continue` waits for: 1 s. Then the body is sent unasked (RFC 9110 §10.1.1).
    pub continue_time: Duration,
    /// Between two pieces of a response: 5 min. Then it is broken off.
    pub idle_time: Duration,
    /// Without a byte in either direction on a connection that was upgraded: 1 h.
    pub tunnel_idle_time: Duration,
    /// Bytes of a response's head: 64 KiB. A bigger one is 502.
    pub header_bytes: usize,
    /// Fields of a response: 200. More are 502.
    pub header_fields: usize,
}

impl Limits {
    /// The smallest useful [`Self::header_bytes`]: what hyper reads with at least.
    pub const MIN_HEADER_BYTES: usize = 8 * 1024;
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            idle_connections: 256,
            keep_time: Duration::from_secs(4),
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
