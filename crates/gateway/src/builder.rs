//! The configuration of a gateway.

use std::sync::{Arc, PoisonError};

use eyas::{Endpoint, MemoryStore, SecurityParameters};
use eyas_relay::pseudonym::ProxyPseudonym;
use thiserror::Error;
use tokio::sync::Semaphore;

use crate::forwarded::TrustedNetwork;
use crate::limits::GatewayLimits;
use crate::notices::NoticeReceiver;
use crate::pool::UpstreamPool;
use crate::service::Gateway;
use crate::shared::SharedGateway;
use crate::upgrade::UpgradeProtocols;
use crate::upstream::Upstream;

type BuilderObserver = Box<dyn Fn(String) + Send + Sync>;

/// Why a gateway could not be built.
#[derive(Debug, Error)]
#[error("{0}")]
pub struct GatewayError(String);

/// Builds a [`Gateway`]; see [`Gateway::builder`].
pub struct GatewayBuilder {
    upstream: Upstream,
    limits: GatewayLimits,
    trusted: Vec<TrustedNetwork>,
    proxy_protocol: bool,
    allows_http3: bool,
    upgrades: UpgradeProtocols,
    refuses_raw_targets: bool,
    security: Option<SecurityParameters>,
    memory: Option<MemoryStore>,
    notices: Option<BuilderObserver>,
}

impl Gateway {
    /// Returns a builder of a gateway to this upstream.
    pub fn builder(upstream: Upstream) -> GatewayBuilder {
        GatewayBuilder {
            upstream,
            limits: GatewayLimits::default(),
            trusted: Vec::new(),
            proxy_protocol: false,
            allows_http3: true,
            upgrades: UpgradeProtocols::default(),
            refuses_raw_targets: false,
            security: None,
            memory: None,
            notices: None,
        }
    }
}

impl GatewayBuilder {
    /// Sets the limits of the upstream.
    pub fn limits(mut self, limits: GatewayLimits) -> Self {
        self.limits = limits;
        self
    }

    /// Trusts the `Forwarded`, `X-Forwarded-*` and `X-Real-IP` fields of clients in this network,
    /// and appends to them; may be called repeatedly. Those of other clients are removed.
    pub fn trust(mut self, network: TrustedNetwork) -> Self {
        self.trusted.push(network);
        self
    }

    /// Begins each connection to the upstream with the client's address, using version 2 of the
    /// PROXY protocol. Each connection then serves only one client.
    pub fn proxy_protocol(mut self, proxy_protocol: bool) -> Self {
        self.proxy_protocol = proxy_protocol;
        self
    }

    /// Sets whether HTTP/3 takes part in the race to an `https` upstream. By default it does.
    pub fn http3(mut self, http3: bool) -> Self {
        self.allows_http3 = http3;
        self
    }

    /// Lets requests of any method switch to this protocol (`Upgrade`, RFC 9110 §7.8) where the
    /// upstream accepts it, over HTTP/1.1; `*` stands for all; may be called repeatedly. WebSockets
    /// always pass, and other versions of HTTP never, because their requests would not be checked.
    pub fn upgrade(mut self, protocol: impl Into<String>) -> Self {
        self.upgrades.allow(protocol.into());
        self
    }

    /// Answers requests whose target has octets that are not ASCII with 400. By default they are
    /// percent-encoded.
    pub fn refuse_raw_targets(mut self, refuse: bool) -> Self {
        self.refuses_raw_targets = refuse;
        self
    }

    /// Sets the trust in an `https` upstream. The default is the platform's roots.
    pub fn security(mut self, security: SecurityParameters) -> Self {
        self.security = Some(security);
        self
    }

    /// Sets the memory of the races to the upstream. The default lasts as long as the gateway.
    pub fn memory(mut self, memory: MemoryStore) -> Self {
        self.memory = Some(memory);
        self
    }

    /// Sets a function that is called with a line when the upstream did not respond, at most once
    /// in 5 s for each kind of reason.
    pub fn notices(mut self, observer: impl Fn(String) + Send + Sync + 'static) -> Self {
        self.notices = Some(Box::new(observer));
        self
    }

    /// Builds the gateway. It connects to its upstream on demand.
    ///
    /// # Errors
    /// If the trusted roots cannot be used, or with the PROXY protocol to an `h2c` or `h3` upstream.
    pub fn build(self) -> Result<Gateway, GatewayError> {
        if self.proxy_protocol && self.upstream.has_no_http1() {
            // Its connections serve many clients.
            let text =
                format!("the PROXY protocol needs HTTP/1.1, which {} excludes", self.upstream);
            return Err(GatewayError(text));
        }
        let limits = self.limits;
        let connections = limits.connections.clamp(1, Semaphore::MAX_PERMITS);
        let endpoint = endpoint(connections, self.security, self.memory.unwrap_or_default())?;
        let pool = UpstreamPool::new(limits.idle_connections, limits.keep_time);
        let is_multiplexed = self.upstream.has_no_http1();
        Ok(Gateway::new(SharedGateway {
            upstream: self.upstream,
            endpoint: endpoint.into(),
            limits,
            trusted: self.trusted,
            proxy_protocol: self.proxy_protocol,
            upgrades: self.upgrades,
            refuses_raw_targets: self.refuses_raw_targets,
            pseudonym: ProxyPseudonym::new(),
            pool: Arc::new(pool),
            allows_http3: self.allows_http3,
            is_multiplexed: is_multiplexed.into(),
            dialling: tokio::sync::Mutex::default(),
            permits: Arc::new(Semaphore::new(connections)),
            counters: Arc::default(),
            notices: NoticeReceiver::new(self.notices),
        }))
    }
}

/// Returns the endpoint that connects to the upstream, with at most this many connections.
fn endpoint(
    connections: usize,
    security: Option<SecurityParameters>,
    memory: MemoryStore,
) -> Result<Endpoint, GatewayError> {
    let mut builder = Endpoint::builder().max_attempts_in_flight(connections).memory(memory);
    if let Some(security) = security {
        builder = builder.security(security);
    }
    builder.build().map_err(|error| GatewayError(error.to_string()))
}

impl Gateway {
    /// Trusts an `https` upstream in this way from the next connection to it on; connections that are
    /// open are still used.
    ///
    /// # Errors
    /// If the trusted roots cannot be used; the former trust then stays.
    pub fn replace_security(&self, security: SecurityParameters) -> Result<(), GatewayError> {
        let shared = self.shared();
        let connections = shared.limits.connections.clamp(1, Semaphore::MAX_PERMITS);
        let memory = shared.endpoint().memory().clone();
        let endpoint = endpoint(connections, Some(security), memory)?;
        *shared.endpoint.write().unwrap_or_else(PoisonError::into_inner) = endpoint;
        Ok(())
    }
}

impl std::fmt::Debug for GatewayBuilder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("GatewayBuilder").field("upstream", &self.upstream).finish_non_exhaustive()
    }
}
