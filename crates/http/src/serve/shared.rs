//! The state shared by all connections of a server.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering::Relaxed},
};

use http::{HeaderValue, Method, Request, Version};
use hyper::ext::Protocol;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use super::{
    Limits, Stats, access::AccessLog, admission::Admission, balancers::Balancers, budget::Budget,
    fault::FaultConfig, limits::CLOSING_TIME, notices::Notices, service::AnyApplication,
    stats::Counters, workers::Workers,
};

/// The state shared by all connections of a server.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) application: AnyApplication,
    pub(super) limits: Limits,
    pub(super) admission: Arc<Admission>,
    pub(super) budget: Arc<Budget>,
    pub(super) counters: Arc<Counters>,
    /// The number of QUIC handshakes in progress.
    pub(super) handshakes: AtomicUsize,
    /// Cancelled when no new work is accepted.
    pub(super) drain: CancellationToken,
    /// Cancelled when everything must end immediately.
    pub(super) abort: CancellationToken,
    pub(super) tasks: TaskTracker,
    pub(super) workers: Workers,
    pub(super) alt_svc: Option<HeaderValue>,
    pub(super) early_data: bool,
    /// Whether CONNECT over HTTP/2 and HTTP/3 opens tunnels.
    pub(super) tunnels: bool,
    /// The protocols that extended CONNECT is offered for over HTTP/2 and HTTP/3; `*` stands for all.
    pub(super) extended_connect: Vec<String>,
    pub(super) fault: Option<FaultConfig>,
    pub(super) access_log: Option<AccessLog>,
    pub(super) notices: Option<Notices>,
    pub(super) balancers: Option<Balancers>,
}

impl Shared {
    /// Returns the counters so far.
    pub(super) fn stats(&self) -> Stats {
        self.counters.snapshot(self.admission.open_by_transport(), &self.budget)
    }

    /// Returns whether extended CONNECT is offered for this protocol.
    pub(super) fn offers(&self, protocol: &Protocol) -> bool {
        let is_same = |name: &String| name == "*" || name.eq_ignore_ascii_case(protocol.as_str());
        self.extended_connect.iter().any(is_same)
    }

    /// Returns whether this opens a tunnel over HTTP/2 or HTTP/3, as CONNECT does if tunnels are
    /// enabled, and extended CONNECT where it is offered. Over HTTP/1 it is an upgrade.
    pub(super) fn is_tunnel<B>(&self, request: &Request<B>) -> bool {
        request.method() == Method::CONNECT
            && matches!(request.version(), Version::HTTP_2 | Version::HTTP_3)
            && (self.tunnels || request.extensions().get::<Protocol>().is_some())
    }

    /// Resolves when handshakes that are still in progress end, because the server stops.
    pub(super) async fn handshakes_end(&self) {
        let closing = async {
            self.drain.cancelled().await;
            tokio::time::sleep(CLOSING_TIME).await;
        };
        tokio::select! {
            () = closing => {}
            () = self.abort.cancelled() => {}
        }
    }

    /// Counts a QUIC handshake as in progress until the returned guard is dropped.
    pub(super) fn handshake(&self) -> impl Drop + use<'_> {
        struct InProgress<'a>(&'a AtomicUsize);
        impl Drop for InProgress<'_> {
            fn drop(&mut self) {
                self.0.fetch_sub(1, Relaxed);
            }
        }
        self.handshakes.fetch_add(1, Relaxed);
        InProgress(&self.handshakes)
    }
}
