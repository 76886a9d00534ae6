//! The description of a load.

use std::net::IpAddr;
use std::time::Duration;

use bytes::Bytes;
use eyas::race::candidate::Transport;
use eyas::race::policy::{Policy, PolicyError};
use eyas::{Endpoint, EndpointBuilder, MemoryStore, SecurityParameters};
use eyas_http::Versions;
use http::{HeaderMap, HeaderValue, Method, header::ACCEPT, header::USER_AGENT};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::arrivals::{ArrivalProcess, LoadExtent};
use super::load_tally::LoadTally;

/// The use of connections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectionUse {
    /// Each request opens and closes its own.
    PerRequest,
    /// They are kept open, and opened as needed.
    Persistent {
        /// The maximum number of connections; further requests wait.
        max_connections: usize,
        /// Concurrent requests on an HTTP/2 or HTTP/3 connection.
        streams: usize,
    },
}

/// The parameters of a load.
#[derive(Clone, Debug)]
pub struct Load {
    /// The destination: an `http` or `https` URL.
    pub url: Url,
    /// Paths to request instead of the URL's, one chosen at random for each request.
    pub objects: Vec<String>,
    /// The arrival process.
    pub arrivals: ArrivalProcess,
    /// A closed loop in place of the arrivals: this many clients, each of which sends a request once
    /// the last one has ended. Times are then measured from sending.
    pub clients: Option<usize>,
    /// When arrivals end.
    pub extent: LoadExtent,
    /// How long requests in flight at the end of [`LoadExtent::duration`] may take before they are
    /// cancelled and count as unfinished; `None` is as long as their timeout.
    pub patience: Option<Duration>,
    /// Requests that arrive before this time are sent but not counted.
    pub warm_up: Duration,
    /// The use of connections.
    pub connections: ConnectionUse,
    /// The allowed versions of HTTP.
    pub versions: Versions,
    /// HTTP/1.0 with its Keep-Alive option (RFC 2068 §19.7.1) where HTTP/1 is spoken.
    pub http1_0: bool,
    /// The endpoint: security, resolver, memory, local addresses. Each thread has an endpoint of
    /// its own; the memory is shared.
    pub endpoint: EndpointBuilder,
    /// The race for a connection. With a single transport there is no race.
    pub race: Policy,
    /// The share of connections, 0 to 1, for which the memory is made to know the outcome: they go
    /// straight to it, the others race. Without [`outcomes`](Self::outcomes) the outcome is that of
    /// the last race.
    pub hit_rate: f64,
    /// The transports that should win, one chosen at random for each connection; if empty,
    /// whichever wins. A race waits for the chosen one as long as a policy allows
    /// ([`Policy::grace`]).
    pub outcomes: Vec<Transport>,
    /// Whether only the transports race, and the race ends before TLS (Papastergiou et al. 2016):
    /// each connection whose outcome is unknown goes straight to it, and in addition a handshake of
    /// every other transport of the race is completed and closed. Requires
    /// [`outcomes`](Self::outcomes).
    pub races_below_tls: bool,
    /// The method of every request.
    pub method: Method,
    /// Header fields of every request.
    pub headers: HeaderMap,
    /// The body of every request; empty is none.
    pub body: Bytes,
    /// The time limit of a request, up to the last byte of its response.
    pub timeout: Duration,
    /// The maximum number of requests in flight; further ones are dropped.
    pub max_in_flight: usize,
    /// The number of threads; each arrival is handled by one of them.
    pub threads: usize,
    /// The seed of the arrivals, hits, outcomes and objects.
    pub seed: u64,
}

impl Load {
    /// Returns the defaults: ten requests per second for ten seconds, each on its own connection,
    /// by a race without memory and without resumption.
    pub fn new(url: Url) -> Self {
        let agent = HeaderValue::from_static(concat!("eyas/", env!("CARGO_PKG_VERSION")));
        let any = HeaderValue::from_static("*/*");
        Self {
            url,
            objects: Vec::new(),
            arrivals: ArrivalProcess::poisson(10.0),
            clients: None,
            extent: LoadExtent::lasting(Duration::from_secs(10)),
            patience: None,
            warm_up: Duration::ZERO,
            connections: ConnectionUse::PerRequest,
            versions: Versions::ALL,
            http1_0: false,
            endpoint: Endpoint::builder()
                .security(SecurityParameters::platform().without_resumption())
                .memory(MemoryStore::none()),
            race: Policy::default(),
            hit_rate: 0.0,
            outcomes: Vec::new(),
            races_below_tls: false,
            method: Method::GET,
            headers: HeaderMap::from_iter([(USER_AGENT, agent), (ACCEPT, any)]),
            body: Bytes::new(),
            timeout: Duration::from_secs(30),
            max_in_flight: 4_096,
            threads: 1,
            seed: 1,
        }
    }

    /// Uses these local addresses in turn.
    #[must_use]
    pub fn from_addresses(mut self, addresses: impl IntoIterator<Item = IpAddr>) -> Self {
        self.endpoint = self.endpoint.local_addresses(addresses);
        self
    }

    pub(super) fn check(&self) -> Result<(), LoadError> {
        if self.extent.duration.is_some_and(|duration| duration.is_zero()) {
            return Err(LoadError::NoTime);
        }
        if self.clients.is_none() && !self.arrivals.rate.is_usable() {
            return Err(LoadError::Rate);
        }
        if self.extent.duration.is_none() && self.extent.requests.is_none() {
            return Err(LoadError::Endless);
        }
        if !(0.0..=1.0).contains(&self.hit_rate) {
            return Err(LoadError::HitRate(self.hit_rate));
        }
        if self.extent.duration.is_some_and(|duration| duration <= self.warm_up) {
            return Err(LoadError::WarmUp);
        }
        if self.races_below_tls && self.outcomes.is_empty() {
            return Err(LoadError::NoOutcome);
        }
        self.race.clone().validated()?;
        Ok(())
    }
}

/// Why a load cannot be run.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadError {
    /// The rate is 0, negative, or not a number.
    #[error("no request would ever arrive: give a rate above 0, such as 100 a second")]
    Rate,
    /// The duration is 0.
    #[error("the load lasts no time: give it a duration above 0")]
    NoTime,
    /// There is neither a duration nor a number of requests.
    #[error("the load has no end: give it a duration or a number of requests")]
    Endless,
    /// The hit rate is not between 0 and 1.
    #[error("a hit rate of {0} is not a share: give a number from 0 to 1")]
    HitRate(f64),
    /// A race of transports only needs an outcome.
    #[error("a race that ends below TLS needs to know its outcomes: name at least one transport")]
    NoOutcome,
    /// The warm-up leaves nothing to measure.
    #[error("the warm-up takes all the time: make it shorter than the load")]
    WarmUp,
    /// An object cannot be requested.
    #[error("cannot request this object: {0}")]
    Object(String),
    /// The policy is invalid.
    #[error("{0}")]
    Race(#[from] PolicyError),
    /// The URL cannot be used.
    #[error("{0}")]
    Url(#[from] eyas_http::Error),
    /// The endpoint cannot be built.
    #[error("{0}")]
    Endpoint(#[from] eyas::Error),
    /// A thread or timer cannot be created.
    #[error("cannot start: {0}")]
    Machine(#[from] std::io::Error),
}

/// Stops a load early; the results so far are still returned. Clones stop the same load.
#[derive(Clone, Debug, Default)]
pub struct LoadStop(pub(super) CancellationToken);

impl LoadStop {
    /// Starts no further requests and cancels those in flight.
    pub fn stop(&self) {
        self.0.cancel();
    }

    /// Returns whether the load has been stopped.
    pub fn is_requested(&self) -> bool {
        self.0.is_cancelled()
    }
}

/// The progress of a load, reported every second.
#[derive(Debug)]
pub struct LoadProgress<'a> {
    /// The time since the start.
    pub elapsed: Duration,
    /// The time covered by the tally.
    pub interval: Duration,
    /// What happened since the last report, without the warm-up.
    pub tally: &'a LoadTally,
    /// What happened so far.
    pub total: &'a LoadTally,
    /// Requests in flight.
    pub in_flight: usize,
    /// Whether the load is still warming up.
    pub is_warming_up: bool,
}
