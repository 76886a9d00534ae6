//! The state that all requests of a gateway share.

use std::net::IpAddr;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError, RwLock};

use eyas::Endpoint;
use http::HeaderValue;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use super::failure::Failure;
use super::forwarded::Network;
use super::limits::Limits;
use super::notices::Notices;
use super::pool::Pool;
use super::stats::Counters;
use super::upgrade::Protocols;
use super::upstream::Upstream;
use crate::pseudonym::Pseudonym;

/// The state that all requests share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) upstream: Upstream,
    /// The endpoint with the present trust in the upstream.
    pub(super) endpoint: RwLock<Endpoint>,
    pub(super) limits: Limits,
    pub(super) trusted: Vec<Network>,
    pub(super) proxy_protocol: bool,
    /// The upgrades that pass beside WebSocket.
    pub(super) upgrades: Protocols,
    /// Whether targets with octets that are not ASCII are refused.
    pub(super) refuses_raw_targets: bool,
    pub(super) pseudonym: Pseudonym,
    pub(super) pool: Arc<Pool>,
    /// Whether connections to an `https` upstream may use HTTP/3.
    pub(super) allows_http3: bool,
    /// Whether the last connection was one that many requests share.
    pub(super) is_multiplexed: AtomicBool,
    /// The turn of who opens a connection for all, and when the last one began that failed.
    pub(super) dialling: tokio::sync::Mutex<Option<(Instant, Failure)>>,
    /// One permit for each connection to the upstream.
    pub(super) permits: Arc<Semaphore>,
    pub(super) counters: Arc<Counters>,
    pub(super) notices: Notices,
}

impl Shared {
    /// Returns whether a client is a trusted proxy.
    pub(super) fn trusts(&self, client: IpAddr) -> bool {
        self.trusted.iter().any(|network| network.contains(client))
    }

    pub(super) fn endpoint(&self) -> Endpoint {
        self.endpoint.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(super) fn authority(&self) -> HeaderValue {
        self.upstream.authority()
    }
}
