//! The paths of the connection below a session, as far as its transport knows them.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use eyas::SctpStreams;
use eyas::race::candidate::Transport;
use eyas::{Connection, ConnectionInfo, quinn};
use eyas_sctp_tokio::protocol::endpoint::PathStatus;

#[cfg(any(target_os = "linux", target_os = "android"))]
mod linux;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
mod other;

#[cfg(any(target_os = "linux", target_os = "android"))]
use linux as platform;
#[cfg(not(any(target_os = "linux", target_os = "android")))]
use other as platform;

use platform::{of_tcp, tcp_signs};

/// A snapshot of a path. The counts are of data that this end sends.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct PathReading {
    /// Our address, if it is known.
    pub local: Option<IpAddr>,
    /// The other end's address and port; the port is 0 for SCTP directly over IP.
    pub remote: SocketAddr,
    /// `active`, `inactive`, `potentially-failed` or `unconfirmed`. The path of a transport with a single one is
    /// `active`.
    pub state: &'static str,
    /// Whether it is the primary path.
    pub is_primary: bool,
    /// The smoothed round trip, once measured.
    pub rtt: Option<Duration>,
    /// The congestion window, in bytes.
    pub window: Option<u64>,
    /// Bytes that have arrived, as far as this end knows.
    pub delivered: u64,
    /// Bytes that were lost, or assumed to be lost.
    pub lost: u64,
}

/// A handle for reading the paths of a connection.
#[derive(Clone, Debug)]
pub(crate) struct ConnectionPaths {
    source: PathSource,
    info: Arc<ConnectionInfo>,
    /// The proxy, if the connection leads through one.
    proxy: Option<Arc<str>>,
}

#[derive(Clone, Debug)]
enum PathSource {
    Sctp(SctpStreams),
    Quic(quinn::Connection),
    /// Another descriptor of its socket.
    Tcp(Arc<socket2::Socket>),
    /// A transport that reports nothing.
    None,
}

impl ConnectionPaths {
    pub(crate) fn from_connection(connection: &Connection) -> Self {
        let source = match (connection.sctp_streams(), connection.quic(), connection.tcp()) {
            (Some(streams), ..) => PathSource::Sctp(streams),
            (_, Some(quic), _) => PathSource::Quic(quic.clone()),
            (.., Some(tcp)) => {
                let socket = socket2::SockRef::from(tcp).try_clone();
                socket.map_or(PathSource::None, |socket| PathSource::Tcp(Arc::new(socket)))
            }
            _ => PathSource::None,
        };
        Self { source, info: connection.shared_info(), proxy: None }
    }

    /// Returns the paths of a stream through a proxy. What the transport to the proxy reports tells nothing about
    /// the server.
    pub(crate) fn proxied(info: Arc<ConnectionInfo>, proxy: String) -> Self {
        Self { source: PathSource::None, info, proxy: Some(proxy.into()) }
    }

    /// Returns the proxy, if the connection leads through one.
    pub(crate) fn proxy(&self) -> Option<&str> {
        self.proxy.as_deref()
    }

    pub(crate) fn transport(&self) -> Transport {
        self.info.transport
    }

    pub(crate) fn remote(&self) -> SocketAddr {
        self.info.remote
    }

    /// Returns the connection, if it is QUIC.
    pub(crate) fn quic(&self) -> Option<&quinn::Connection> {
        match &self.source {
            PathSource::Quic(quic) => Some(quic),
            _ => None,
        }
    }

    /// Returns why the connection is closed, if it is and the transport knows more than its streams.
    pub(crate) fn close_reason(&self) -> Option<String> {
        match self.quic()?.close_reason()? {
            // A stateless reset (RFC 9000 §10.3).
            quinn::ConnectionError::Reset => {
                Some("it has lost the connection, as after a restart".to_owned())
            }
            reason => Some(reason.to_string()),
        }
    }

    /// Returns the streams of the association, if it is SCTP.
    pub(crate) fn sctp(&self) -> Option<&SctpStreams> {
        match &self.source {
            PathSource::Sctp(streams) => Some(streams),
            _ => None,
        }
    }

    /// Returns a count that grows with the acknowledgements of the other end, if they are visible, and the
    /// round-trip time.
    pub(crate) fn acknowledgements(&self) -> (Option<u64>, Option<Duration>) {
        let (count, rtt) = match &self.source {
            PathSource::Sctp(streams) => {
                let Some(status) = streams.association().status() else { return (None, None) };
                let rtt = status.paths.iter().filter_map(|path| path.smoothed_rtt).max();
                (Some(status.paths.iter().map(|path| path.delivered).sum()), rtt)
            }
            PathSource::Quic(quic) => (Some(quic.stats().frame_rx.acks), Some(quic.rtt())),
            // Of MPTCP's subflows only the first would be visible.
            PathSource::Tcp(socket) if self.info.transport == Transport::Tcp => tcp_signs(socket),
            PathSource::Tcp(_) | PathSource::None => (None, None),
        };
        (count, rtt.or(self.info.rtt))
    }

    pub(crate) fn read(&self) -> Vec<PathReading> {
        let only = PathReading {
            local: self.info.local.map(|local| local.ip()),
            remote: self.info.remote,
            state: "active",
            is_primary: true,
            rtt: self.info.rtt,
            window: None,
            delivered: 0,
            lost: 0,
        };
        match &self.source {
            PathSource::Sctp(streams) => {
                let Some(status) = streams.association().status() else { return Vec::new() };
                let read = |path: &PathStatus| of_sctp(path, path.id == status.primary);
                status.paths.iter().map(read).collect()
            }
            PathSource::Quic(quic) => vec![of_quic(quic, only)],
            PathSource::Tcp(socket) => vec![of_tcp(socket, only)],
            PathSource::None => vec![only],
        }
    }
}

fn of_sctp(path: &PathStatus, is_primary: bool) -> PathReading {
    PathReading {
        local: path.local,
        remote: path.remote,
        state: path.state.name(),
        is_primary,
        rtt: path.smoothed_rtt,
        window: Some(path.congestion_window as u64),
        delivered: path.delivered,
        lost: path.lost,
    }
}

fn of_quic(quic: &quinn::Connection, only: PathReading) -> PathReading {
    let stats = quic.stats();
    PathReading {
        // Both may have changed since the connection was established.
        local: quic.local_ip().or(only.local),
        remote: quic.remote_address(),
        rtt: Some(stats.path.rtt),
        window: Some(stats.path.cwnd),
        delivered: stats.udp_tx.bytes.saturating_sub(stats.path.lost_bytes),
        lost: stats.path.lost_bytes,
        ..only
    }
}
