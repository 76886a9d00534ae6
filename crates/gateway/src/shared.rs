//! The state that all requests of a gateway share.

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};

use eyas::Endpoint;
use eyas_relay::pseudonym::Pseudonym;
use http::HeaderValue;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::failure::Failure;
use crate::forwarded::Network;
use crate::limits::Limits;
use crate::notices::Notices;
use crate::pool::Pool;
use crate::stats::Counters;
use crate::upgrade::Protocols;
use crate::upstream::Upstream;

/// The state that all requests share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) upstream: Upstream,
    /// The endpoint with the present trust in the upstream.
    pub(crate) endpoint: RwLock<Endpoint>,
    pub(crate) limits: Limits,
    pub(crate) trusted: Vec<Network>,
    pub(crate) proxy_protocol: bool,
    /// The upgrades that pass beside WebSocket.
    pub(crate) upgrades: Protocols,
    /// Whether targets with octets that are not ASCII are refused.
    pub(crate) refuses_raw_targets: bool,
    pub(crate) pseudonym: Pseudonym,
    pub(crate) pool: Arc<Pool>,
    /// Whether connections to an `https` upstream may use HTTP/3.
    pub(crate) allows_http3: bool,
    /// Whether the last connection was one that many requests share.
    pub(crate) is_multiplexed: AtomicBool,
    /// The turn of who opens a connection for all, and when the last one began that failed.
    pub(crate) dialling: tokio::sync::Mutex<Option<(Instant, Failure)>>,
    /// One permit for each connection to the upstream.
    pub(crate) permits: Arc<Semaphore>,
    pub(crate) counters: Arc<Counters>,
    pub(crate) notices: Notices,
}

impl Shared {
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
