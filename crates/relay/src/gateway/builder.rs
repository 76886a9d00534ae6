//! What a gateway is told before it begins.

use std::sync::Arc;

use eyas::{Endpoint, SecurityParameters};
use thiserror::Error;
use tokio::sync::Semaphore;

use super::forwarded::Network;
use super::limits::Limits;
use super::notices::Notices;
use super::pool::Pool;
use super::service::Gateway;
use super::shared::Shared;
use super::upstream::Upstream;
use super::via::Pseudonym;

type Observer = Box<dyn Fn(String) + Send + Sync>;

/// Why there is no gateway.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct GatewayError(String);

/// A gateway before its start: see [`Gateway::builder`].
pub struct GatewayBuilder {
    upstream: Upstream,
    limits: Limits,
    trusted: Vec<Network>,
    proxy_protocol: bool,
    security: Option<SecurityParameters>,
    notices: Option<Observer>,
}

impl Gateway {
    /// A gateway to this upstream.
    pub fn builder(upstream: Upstream) -> GatewayBuilder {
        GatewayBuilder {
            upstream,
            limits: Limits::default(),
            trusted: Vec::new(),
            proxy_protocol: false,
            security: None,
            notices: None,
        }
    }
}

impl GatewayBuilder {
    /// What the upstream may take.
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Believes the `Forwarded`, `X-Forwarded-*` and `X-Real-IP` of clients in this network, and adds to
    /// them; may be called again. Those of all others are left out.
    pub fn trust(mut self, network: Network) -> Self {
        self.trusted.push(network);
        self
    }

    /// Begins each connection to the upstream with the client's address, by version 2 of the PROXY
    /// protocol. Connections then serve one client each.
    pub fn proxy_protocol(mut self, proxy_protocol: bool) -> Self {
        self.proxy_protocol = proxy_protocol;
        self
    }

    /// Whom to trust as an upstream by `https`; the platform's roots unless told otherwise.
    pub fn security(mut self, security: SecurityParameters) -> Self {
        self.security = Some(security);
        self
    }

    /// Is called with a line when the upstream did not answer, once in 5 s for each kind of reason.
    pub fn notices(mut self, observer: impl Fn(String) + Send + Sync + 'static) -> Self {
        self.notices = Some(Box::new(observer));
        self
    }

    /// The gateway. It connects to its upstream when it is asked.
    ///
    /// # Errors
    /// If the roots that are to be trusted cannot be used.
    pub fn build(self) -> Result<Gateway, GatewayError> {
        let limits = self.limits;
        let connections = limits.connections.clamp(1, Semaphore::MAX_PERMITS);
        let mut endpoint = Endpoint::builder().max_attempts_in_flight(connections);
        if let Some(security) = self.security {
            endpoint = endpoint.security(security);
        }
        let endpoint = endpoint.build().map_err(|error| GatewayError(error.to_string()))?;
        let pool = Pool::new(limits.idle_connections, limits.keep_time);
        Ok(Gateway::new(Shared {
            upstream: self.upstream,
            endpoint,
            limits,
            trusted: self.trusted,
            proxy_protocol: self.proxy_protocol,
            pseudonym: Pseudonym::new(),
            pool: Arc::new(pool),
            places: Arc::new(Semaphore::new(connections)),
            counters: Arc::default(),
            notices: Notices::new(self.notices),
        }))
    }
}

impl std::fmt::Debug for GatewayBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GatewayBuilder").field("upstream", &self.upstream).finish_non_exhaustive()
    }
}
