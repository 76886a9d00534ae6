//! What a server allows its peers.

use std::time::Duration;

/// After a graceful close, the peer gets this long to read the rest and to close.
pub(super) const CLOSING_TIME: Duration = Duration::from_secs(5);

/// The bounds of a [`Server`](super::Server). Every one of them is there because a peer could
/// otherwise grow something without end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Connections open at once, over all transports and addresses: 4096. A connection above it is
    /// closed (TCP) or refused (QUIC) at once.
    pub connections: usize,
    /// Connections open at once from one IPv4 address or one IPv6 /64: 2048. It keeps one hostile
    /// peer from taking all of [`Self::connections`]. Once half of those are taken, a peer may have
    /// as many as are still free, so that some peers do not take them together either.
    pub connections_per_peer: usize,
    /// Requests in flight at once over all connections, beside the first one of each: 16,384. More
    /// are refused with REFUSED_STREAM (RFC 9113 §8.7) or H3_REQUEST_REJECTED (RFC 9114 §4.1.1), and
    /// may be sent again. One connection may have a 16th of what is free.
    pub requests: usize,
    /// Bytes of responses held at once over all connections, until their peers take them: 128 MiB,
    /// and beyond that 4 KiB for each request. One connection may have a 16th of what is free.
    pub buffered_bytes: usize,
    /// The same for one connection: 6 MiB, of which HTTP/3 may have 4 on its way.
    pub buffered_bytes_per_connection: usize,
    /// Files that stay open between two pieces of a response, over all connections: 512. What finds
    /// no room opens its file again for each piece. One connection may have a 16th of what is free.
    pub open_files: usize,
    /// The same for one connection: 16.
    pub open_files_per_connection: usize,
    /// Bytes of a request's head (request line and header fields, or the decoded field section as
    /// RFC 9114 §4.2.2 counts it): 32 KiB, at least [`Self::MIN_HEADER_BYTES`]. A bigger one is
    /// answered 431.
    pub header_bytes: usize,
    /// Header fields of one request in HTTP/1: 100. More are answered 431.
    pub header_fields: usize,
    /// Bytes of one request's body: 1 GiB. A bigger one is answered 413, or cut where its length
    /// was not announced. What goes through an extended CONNECT (RFC 8441) is no body.
    pub body_bytes: u64,
    /// For the TLS or QUIC handshake: 10 s.
    pub handshake_time: Duration,
    /// For a request's head once the server waits for it, between two requests of an HTTP/1
    /// connection too: 30 s. This is what ends a slow loris.
    pub header_read_time: Duration,
    /// Without a request, or with fewer than [`Self::progress_bytes`] moved while a request or a
    /// response waits for the peer: 60 s. A connection is closed, or a stream reset, between once and
    /// one and a half times this.
    pub idle_time: Duration,
    /// What a peer has to take of a response, or send of a request over HTTP/1 or of one that a service
    /// waits for, within [`Self::idle_time`] for it to go on: 4 KiB. Nothing else is progress: no PING, and no window
    /// that opens by a byte.
    pub progress_bytes: u64,
    /// Requests in flight on one HTTP/2 or HTTP/3 connection: 128.
    pub concurrent_streams: u32,
}

impl Limits {
    /// The smallest useful [`Self::header_bytes`]: 8 KiB, which is also the smallest buffer that
    /// hyper reads HTTP/1 with.
    pub const MIN_HEADER_BYTES: usize = 8 * 1024;

    /// These limits with everything that cannot work raised to what can.
    pub(super) fn usable(mut self) -> Self {
        self.header_bytes = self.header_bytes.max(Self::MIN_HEADER_BYTES);
        self.connections = self.connections.max(1);
        self.connections_per_peer = self.connections_per_peer.clamp(1, self.connections);
        self.concurrent_streams = self.concurrent_streams.max(1);
        self
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 4096,
            connections_per_peer: 2048,
            requests: 16_384,
            buffered_bytes: 128 << 20,
            buffered_bytes_per_connection: 6 << 20,
            open_files: 512,
            open_files_per_connection: 16,
            header_bytes: 32 * 1024,
            header_fields: 100,
            body_bytes: 1 << 30,
            handshake_time: Duration::from_secs(10),
            header_read_time: Duration::from_secs(30),
            idle_time: Duration::from_secs(60),
            progress_bytes: 4 * 1024,
            concurrent_streams: 128,
        }
    }
}
