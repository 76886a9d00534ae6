//! The counters of a server.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use http::Version;

use super::{admission::OpenByTransport, budget::Budget};

/// A snapshot of a server's counters, all since its start unless noted otherwise.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stats {
    /// Currently open connections.
    pub connections_open: u64,
    /// Currently open TCP connections.
    pub tcp_open: u64,
    /// Currently open MPTCP connections.
    pub mptcp_open: u64,
    /// Currently open QUIC connections.
    pub quic_open: u64,
    /// Currently open SCTP associations.
    pub sctp_open: u64,
    /// TCP connections accepted, excluding MPTCP.
    pub tcp_connections: u64,
    /// MPTCP connections accepted.
    pub mptcp_connections: u64,
    /// QUIC connections accepted, counted before their handshake.
    pub quic_connections: u64,
    /// SCTP associations accepted.
    pub sctp_associations: u64,
    /// Connections closed at once because a limit on connections was reached.
    pub connections_refused: u64,
    /// TLS and QUIC handshakes that completed.
    pub handshakes: u64,
    /// TLS or QUIC handshakes that failed or took too long.
    pub handshakes_failed: u64,
    /// Connections closed because they were idle, stalled, or slow with a request's head.
    pub timed_out: u64,
    /// Requests over HTTP/1.0.
    pub http10_requests: u64,
    /// Requests over HTTP/1.1.
    pub http11_requests: u64,
    /// Requests over HTTP/2.
    pub http2_requests: u64,
    /// Requests over HTTP/3.
    pub http3_requests: u64,
    /// Bytes of response bodies handed to the protocol.
    pub body_bytes_sent: u64,
    /// Bytes of request bodies read.
    pub body_bytes_received: u64,
    /// Requests refused because a limit on requests was reached.
    pub requests_refused: u64,
    /// Responses over HTTP/2 and HTTP/3 that were aborted because the peer read too little.
    pub responses_stalled: u64,
    /// Requests currently in flight.
    pub requests_in_flight: u64,
    /// Bytes of responses currently buffered for peers.
    pub buffered_bytes: u64,
    /// Files currently open for the rest of a response.
    pub open_files: u64,
}

impl Stats {
    /// Returns the number of requests over all versions.
    pub const fn requests(&self) -> u64 {
        self.http10_requests + self.http11_requests + self.http2_requests + self.http3_requests
    }
}

impl std::ops::Add for Stats {
    type Output = Self;

    /// Adds the counters of two servers.
    fn add(self, other: Self) -> Self {
        Self {
            connections_open: self.connections_open + other.connections_open,
            tcp_open: self.tcp_open + other.tcp_open,
            mptcp_open: self.mptcp_open + other.mptcp_open,
            quic_open: self.quic_open + other.quic_open,
            sctp_open: self.sctp_open + other.sctp_open,
            tcp_connections: self.tcp_connections + other.tcp_connections,
            mptcp_connections: self.mptcp_connections + other.mptcp_connections,
            quic_connections: self.quic_connections + other.quic_connections,
            sctp_associations: self.sctp_associations + other.sctp_associations,
            connections_refused: self.connections_refused + other.connections_refused,
            handshakes: self.handshakes + other.handshakes,
            handshakes_failed: self.handshakes_failed + other.handshakes_failed,
            timed_out: self.timed_out + other.timed_out,
            http10_requests: self.http10_requests + other.http10_requests,
            http11_requests: self.http11_requests + other.http11_requests,
            http2_requests: self.http2_requests + other.http2_requests,
            http3_requests: self.http3_requests + other.http3_requests,
            body_bytes_sent: self.body_bytes_sent + other.body_bytes_sent,
            body_bytes_received: self.body_bytes_received + other.body_bytes_received,
            requests_refused: self.requests_refused + other.requests_refused,
            responses_stalled: self.responses_stalled + other.responses_stalled,
            requests_in_flight: self.requests_in_flight + other.requests_in_flight,
            buffered_bytes: self.buffered_bytes + other.buffered_bytes,
            open_files: self.open_files + other.open_files,
        }
    }
}

/// The live counters behind [`Stats`].
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) tcp_connections: AtomicU64,
    pub(super) mptcp_connections: AtomicU64,
    pub(super) quic_connections: AtomicU64,
    pub(super) sctp_associations: AtomicU64,
    pub(super) connections_refused: AtomicU64,
    pub(super) handshakes: AtomicU64,
    pub(super) handshakes_failed: AtomicU64,
    pub(super) timed_out: AtomicU64,
    http10_requests: AtomicU64,
    http11_requests: AtomicU64,
    http2_requests: AtomicU64,
    http3_requests: AtomicU64,
    pub(super) body_bytes_sent: AtomicU64,
    pub(super) body_bytes_received: AtomicU64,
    pub(super) requests_refused: AtomicU64,
    pub(super) responses_stalled: AtomicU64,
}

impl Counters {
    /// Adds one to a counter.
    pub(super) fn count(counter: &AtomicU64) {
        counter.fetch_add(1, Relaxed);
    }

    /// Counts a request by its version.
    pub(super) fn request(&self, version: Version) {
        Self::count(match version {
            Version::HTTP_3 => &self.http3_requests,
            Version::HTTP_2 => &self.http2_requests,
            Version::HTTP_11 => &self.http11_requests,
            _ => &self.http10_requests,
        });
    }

    /// Returns the current counters.
    pub(super) fn snapshot(&self, open: OpenByTransport, budget: &Budget) -> Stats {
        Stats {
            connections_open: (open.tcp + open.mptcp + open.quic + open.sctp) as u64,
            tcp_open: open.tcp as u64,
            mptcp_open: open.mptcp as u64,
            quic_open: open.quic as u64,
            sctp_open: open.sctp as u64,
            tcp_connections: self.tcp_connections.load(Relaxed),
            mptcp_connections: self.mptcp_connections.load(Relaxed),
            quic_connections: self.quic_connections.load(Relaxed),
            sctp_associations: self.sctp_associations.load(Relaxed),
            connections_refused: self.connections_refused.load(Relaxed),
            handshakes: self.handshakes.load(Relaxed),
            handshakes_failed: self.handshakes_failed.load(Relaxed),
            timed_out: self.timed_out.load(Relaxed),
            http10_requests: self.http10_requests.load(Relaxed),
            http11_requests: self.http11_requests.load(Relaxed),
            http2_requests: self.http2_requests.load(Relaxed),
            http3_requests: self.http3_requests.load(Relaxed),
            body_bytes_sent: self.body_bytes_sent.load(Relaxed),
            body_bytes_received: self.body_bytes_received.load(Relaxed),
            requests_refused: self.requests_refused.load(Relaxed),
            responses_stalled: self.responses_stalled.load(Relaxed),
            requests_in_flight: budget.requests() as u64,
            buffered_bytes: budget.bytes() as u64,
            open_files: budget.files() as u64,
        }
    }
}
