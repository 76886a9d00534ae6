//! The state that all requests of a gateway share.

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};

use eyas::Endpoint;
use eyas_relay::pseudonym::ProxyPseudonym;
use http::HeaderValue;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::failure::UpstreamFailure;
use crate::forwarded::TrustedNetwork;
use crate::limits::GatewayLimits;
use crate::notices::NoticeReceiver;
use crate::pool::UpstreamPool;
use crate::stats::GatewayCounters;
use crate::upgrade::UpgradeProtocols;
use crate::upstream::Upstream;

/// The state that all requests share.
#[derive(Debug)]
pub(crate) struct SharedGateway {
    pub(crate) upstream: Upstream,
    /// The endpoint with the present trust in the upstream.
    pub(crate) endpoint: RwLock<Endpoint>,
    pub(crate) limits: GatewayLimits,
    pub(crate) trusted: Vec<TrustedNetwork>,
    pub(crate) proxy_protocol: bool,
    /// The upgrades that pass beside WebSocket.
    pub(crate) upgrades: UpgradeProtocols,
    /// Whether targets with octets that are not ASCII are refused.
    pub(crate) refuses_raw_targets: bool,
    pub(crate) pseudonym: ProxyPseudonym,
    pub(crate) pool: Arc<UpstreamPool>,
    /// Whether connections to an `https` upstream may use HTTP/3.
    pub(crate) allows_http3: bool,
    /// Whether the last connection was one that many requests share.
    pub(crate) is_multiplexed: AtomicBool,
    /// The turn of who opens a connection for all, and when the last one began that failed.
    pub(crate) dialling: tokio::sync::Mutex<Option<(Instant, UpstreamFailure)>>,
    /// One permit for each connection to the upstream.
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) counters: Arc<GatewayCounters>,
    pub(crate) notices: NoticeReceiver,
}

impl SharedGateway {
    /// Returns whether a client is a trusted proxy.
    pub(crate) fn trusts(&self, client: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(client))
    }

    pub(crate) fn endpoint(&self) -> Endpoint {
        self.endpoint.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn authority(&self) -> HeaderValue {
        self.upstream.authority()
    }
}
