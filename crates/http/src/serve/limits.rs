//! The limits that a server imposes on its peers.

use std::time::Duration;

use http::{Request, StatusCode};

use super::malformed;

/// How long the peer has, after a graceful close, to read the rest and to close.
pub(super) const CLOSING_TIME: Duration = Duration::from_secs(5);

/// The limits of a [`Server`](super::Server). Each of them bounds something that a peer could
/// otherwise grow without end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Open connections, over all transports and addresses: 4096 by default. A further connection
    /// gets the place of one on which no request has begun, if there is one: the oldest of the peer
    /// that has the most of them. A request that comes at that moment is not processed, and its client is told
    /// so, so that it may send it again: 503 over HTTP/1, REFUSED_STREAM or H3_REQUEST_REJECTED, and GOAWAY.
    /// Otherwise the further one is closed (TCP) or refused (QUIC) at once.
    pub connections: usize,
    /// Open connections from one IPv4 address or one IPv6 /64: 2048 by default. It keeps one
    /// hostile peer from taking all of [`Self::connections`]. Once half of those are taken, a peer
    /// may have at most as many as are still free, so that a few peers cannot take them all
    /// together either.
    pub connections_per_peer: usize,
    /// Requests in flight over all connections, not counting the first one of each: 16,384 by
    /// default. Further ones are refused with REFUSED_STREAM (RFC 9113 §8.7) or H3_REQUEST_REJECTED
    /// (RFC 9114 §4.1.1), and may be retried. One connection may have a 16th of what is free.
    pub requests: usize,
    /// Bytes of responses buffered over all connections until their peers read them: 128 MiB by
    /// default, plus 4 KiB for each request. One connection may have a 16th of what is free.
    pub buffered_bytes: usize,
    /// The same for one connection: 6 MiB by default, of which HTTP/3 may have 4 MiB in flight.
    pub buffered_bytes_per_connection: usize,
    /// Files that stay open between two pieces of a response, over all connections: 512 by default.
    /// Responses above the limit reopen their file for each piece. One connection may have a 16th
    /// of what is free.
    pub open_files: usize,
    /// The same for one connection: 16 by default.
    pub open_files_per_connection: usize,
    /// Bytes of a request's head (request line and header fields, or the decoded field section as
    /// RFC 9114 §4.2.2 counts it): 32 KiB by default, at least [`Self::MIN_HEADER_BYTES`]. Larger
    /// ones are answered with 431, or with 414 if the request target alone is too long.
    pub header_bytes: usize,
    /// Header fields of an HTTP/1 request: 100 by default. More are answered with 431.
    pub header_fields: usize,
    /// Bytes of a request's body: 1 GiB by default. A larger one is answered with 413, or cut off
    /// if its length was not announced. Data of an extended CONNECT (RFC 8441) is not a body.
    pub body_bytes: u64,
    /// The time for the TLS or QUIC handshake: 10 s by default.
    pub handshake_time: Duration,
    /// The time for a request's head once the server waits for it, including between two requests
    /// of an HTTP/1 connection: 30 s by default. This is what ends a slow loris.
    pub header_read_time: Duration,
    /// The time without a request, or with fewer than [`Self::progress_bytes`] transferred while a
    /// request or a response waits for the peer: 60 s by default. The connection is closed, or the
    /// stream reset, after one to one and a half times this.
    pub idle_time: Duration,
    /// The number of bytes that a peer must read of a response, or send of a request over HTTP/1 or
    /// of one that a service waits for, within [`Self::idle_time`]: 4 KiB by default. Nothing else
    /// counts as progress: neither a PING nor a window that opens by a byte.
    pub progress_bytes: u64,
    /// Concurrent requests on one HTTP/2 or HTTP/3 connection: 128 by default.
    pub concurrent_streams: u32,
}

impl Limits {
    /// The smallest useful [`Self::header_bytes`]: 8 KiB, which is also the smallest buffer that
    /// hyper reads HTTP/1 with.
    pub const MIN_HEADER_BYTES: usize = 8 * 1024;

    /// Returns these limits, lowered so that connections and the files that stay open need at most this
    /// many descriptors. A file that is opened for one piece of a response needs one for a moment.
    #[must_use]
    pub fn within(self, descriptors: usize) -> Self {
        let needed = self.connections as u128 + self.open_files as u128;
        if needed <= descriptors as u128 {
            return self;
        }
        let share = |limit: usize| (limit as u128 * descriptors as u128 / needed) as usize;
        let connections = share(self.connections).max(1);
        Self {
            connections,
            connections_per_peer: self.connections_per_peer.min((connections / 2).max(1)),
            open_files: share(self.open_files),
            ..self
        }
    }

    /// Returns these limits with unusable values raised to usable ones.
    pub(super) fn usable(mut self) -> Self {
        self.header_bytes = self.header_bytes.max(Self::MIN_HEADER_BYTES);
        self.connections = self.connections.max(1);
        self.connections_per_peer = self.connections_per_peer.clamp(1, self.connections);
        self.concurrent_streams = self.concurrent_streams.max(1);
        self
    }

    /// Returns the number of bytes up to which HTTP/2 and HTTP/3 decode a head: more than is served,
    /// so that what is too long can be told, and no more than a URI may have in the http crate.
    pub(super) fn decoded_header_bytes(&self) -> usize {
        const LONGEST_URI: usize = u16::MAX as usize - 1;
        self.header_bytes.max(LONGEST_URI)
    }

    /// Returns the status for a head that is too long. What is much too long never becomes a request.
    pub(super) fn excess<B>(&self, request: &Request<B>) -> Option<StatusCode> {
        let is_multiplexed = malformed::is_multiplexed(request.version());
        // RFC 9113 §6.5.2, RFC 9114 §4.2.2; in HTTP/1 the signs around a name and a value.
        let overhead = if is_multiplexed { 32 } else { ": \r\n".len() };
        let uri = request.uri();
        let target = [
            (":method", Some(request.method().as_str())),
            (":scheme", uri.scheme_str()),
            (":authority", uri.authority().map(|authority| authority.as_str())),
            (":path", uri.path_and_query().map(|path| path.as_str())),
        ];
        let target = target.into_iter().filter_map(|(name, value)| Some((name, value?)));
        let target: usize = match is_multiplexed {
            true => target.map(|(name, value)| name.len() + value.len() + overhead).sum(),
            false => target.map(|(_, value)| value.len()).sum::<usize>() + "  HTTP/1.1\r\n".len(),
        };
        let fields = request.headers().iter();
        let fields = fields.map(|(name, value)| name.as_str().len() + value.len() + overhead);
        if target > self.header_bytes {
            return Some(StatusCode::URI_TOO_LONG);
        }
        let is_too_long = target + fields.sum::<usize>() > self.header_bytes;
        is_too_long.then_some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_descriptors_are_divided_and_many_change_nothing() {
        assert_eq!(Limits::default().within(8_192), Limits::default());
        for descriptors in [20, 224, 1_000, 4_000] {
            let few = Limits::default().within(descriptors);
            let needed = few.connections + few.open_files;
            assert!(needed <= descriptors && needed + 2 >= descriptors, "{few:?}");
            assert_eq!(few.connections_per_peer, few.connections / 2, "{few:?}");
        }
        let none = Limits::default().within(0);
        assert_eq!((none.connections, none.connections_per_peer, none.open_files), (1, 1, 0));
    }
}
