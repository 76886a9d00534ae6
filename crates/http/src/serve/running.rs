//! A server that runs, and how it stops.

use std::{net::SocketAddr, sync::Arc, time::Duration};

use eyas::sctp::SctpListener;
use http::HeaderValue;

use super::{ServerIdentity, Stats, sctp, shared::Shared, stream_server::StreamServer};

/// How long a stopped server stays to tell its QUIC peers.
const FAREWELL_TIME: Duration = Duration::from_secs(1);

/// A server that runs. Dropping it stops the server at once.
#[derive(Debug)]
pub struct Running {
    pub(super) shared: Arc<Shared>,
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) identity: Option<ServerIdentity>,
    pub(super) endpoints: Vec<quinn::Endpoint>,
    pub(super) sctp: sctp::Bound,
    pub(super) metrics: Option<SocketAddr>,
    pub(super) streams: StreamServer,
}

impl Running {
    /// The first address it listens on, with the port that was chosen.
    pub fn local_addr(&self) -> SocketAddr {
        self.addresses[0]
    }

    /// All addresses it listens on.
    pub fn local_addrs(&self) -> &[SocketAddr] {
        &self.addresses
    }

    /// Its certificate and key; none if it serves without TLS.
    pub fn identity(&self) -> Option<&ServerIdentity> {
        self.identity.as_ref()
    }

    /// The `Alt-Svc` field of its responses over HTTP/1 and HTTP/2, if they have one.
    pub fn alt_svc(&self) -> Option<&HeaderValue> {
        self.shared.alt_svc.as_ref()
    }

    /// What accepts SCTP, if the server does: its ports, and what it has counted.
    pub fn sctp(&self) -> Option<&SctpListener> {
        self.sctp.listener.as_deref()
    }

    /// Why SCTP inside UDP, or SCTP at all, is not served, if it was to be: the port is taken, and by
    /// whom, or what the system says.
    pub fn sctp_missing(&self) -> Option<&str> {
        self.sctp.missing.as_deref()
    }

    /// Where its metrics are, if it tells them.
    pub fn metrics_addr(&self) -> Option<SocketAddr> {
        self.metrics
    }

    /// What serves streams that somebody else has accepted. It keeps what the server is made of, and serves
    /// nothing any more once that has stopped.
    pub fn streams(&self) -> StreamServer {
        self.streams.clone()
    }

    /// What it has done so far.
    pub fn stats(&self) -> Stats {
        self.shared.stats()
    }

    /// Takes no new connections, tells the peers to go elsewhere (`Connection: close`, GOAWAY),
    /// lets running responses finish for at most `grace`, then closes what is left. Returns how
    /// many connections had to be cut.
    pub async fn shutdown(self, grace: Duration) -> usize {
        self.shared.drain.cancel();
        self.shared.tasks.close();
        let cut = match tokio::time::timeout(grace, self.shared.tasks.wait()).await {
            Ok(()) => 0,
            Err(_) => self.shared.admission.open(),
        };
        self.shared.abort.cancel();
        self.shared.tasks.wait().await;
        for endpoint in &self.endpoints {
            endpoint.close(h3_no_error(), b"the server has stopped");
            // So that the peers hear of it.
            let _ = tokio::time::timeout(FAREWELL_TIME, endpoint.wait_idle()).await;
        }
        cut
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.shared.drain.cancel();
        self.shared.abort.cancel();
        self.shared.tasks.close();
        for endpoint in &self.endpoints {
            endpoint.close(h3_no_error(), b"the server has stopped");
        }
    }
}

fn h3_no_error() -> quinn::VarInt {
    quinn::VarInt::from_u64(h3::error::Code::H3_NO_ERROR.value()).unwrap_or_default()
}
