//! The HTTP client, which sends requests over the best transport that works.
//!
//! | module | purpose |
//! | --- | --- |
//! | `builder` | configuration of a client |
//! | `request`, `response` | the convenience API |
//! | `credentials` | the `Authorization` field |
//! | `request_url` | defaults of a request |
//! | `exchange` | redirects, cookies, decompression, timeouts |
//! | `lease` | the connection for a request, from the pool or a new one |
//! | `limits` | time and redirect limits |
//! | `attempt` | one request on one connection, and when it may be retried on another |
//! | `reused` | a request on a connection that was used before, and the race beside it |
//! | `route` | maps a URL to its origin, connections and proxy |
//! | `connect`, `dial` | connecting to a target: the race and its late switch |
//! | `direct` | connections without a pool |
//! | `early` | requests as 0-RTT data |
//! | `alternatives` | when an alternative service is tried |
//! | `proxies`, `proxy`, `proxied` | choosing a proxy, and connecting through it |
//! | `stats` | counters |
//! | `unix_socket` | connecting to a socket of the file system |
//! | `tunnel` | tunnels by CONNECT, over any version |

mod alternatives;
mod attempt;
mod builder;
mod connect;
mod cookies;
mod credentials;
#[cfg_attr(not(feature = "compression"), path = "client/decode/none.rs")]
mod decode;
mod dial;
mod direct;
mod early;
mod exchange;
mod guard;
mod lease;
mod limits;
mod policy;
mod proxied;
mod proxies;
mod proxy;
mod proxy_url_error;
mod redirect;
mod report;
mod request;
mod request_url;
mod response;
mod reused;
mod route;
mod stats;
mod tunnel;
mod unix_socket;

use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll},
    time::Duration,
};

use eyas::Endpoint;
use http::{Method, Request};
use tokio::time::Instant;
use tower_service::Service;

#[cfg(feature = "cookies")]
pub use self::cookies::CookieJar;
pub use self::{
    builder::ClientBuilder,
    cookies::CookieStore,
    direct::{Direct, DirectConnection},
    policy::HttpPolicy,
    proxies::Proxy,
    redirect::Redirect,
    report::{Reuse, ReuseVerdict},
    request::RequestBuilder,
    response::Response,
    stats::ClientStats,
    tunnel::{Connected, Tunnel},
};
use self::{builder::Config, dial::Dialler};
use crate::{
    Body, Error, alt_svc,
    connection_report::ConnectionReport,
    destination,
    pool::{Key, Pool},
    protocol::Sender,
};

/// An HTTP client. Cheap to clone; clones share connections, cookies and everything learnt.
///
/// Dropping the future of a request cancels it. Dropping the last clone closes all connections,
/// except those with a response in progress.
#[derive(Clone)]
pub struct Client(Arc<Inner>);

struct Inner {
    dialler: Arc<Dialler>,
    config: Config,
    pool: Pool,
    alt_svc: Mutex<alt_svc::Cache>,
    dialling: alternatives::Dialling,
    known: early::Known,
    counters: stats::Counters,
    /// Whether changes of network are already being watched.
    is_watching_network: AtomicBool,
    /// The epoch of the times in the cache of alternative services.
    epoch: Instant,
}

impl Inner {
    fn alternatives(&self) -> MutexGuard<'_, alt_svc::Cache> {
        self.alt_svc.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn now(&self) -> Duration {
        self.epoch.elapsed()
    }

    /// Records a new connection.
    fn note(&self, key: &Key, report: &ConnectionReport, sender: &Sender) {
        if self.config.early_data
            && let Sender::Http3(http3) = sender
        {
            self.known.learn(key, report, http3);
        }
    }

    fn network_changed(&self) {
        self.alternatives().network_changed();
        self.known.clear();
        self.pool.clear();
    }

    /// Watches for changes of network, from the first connection on.
    fn watch_network(self: &Arc<Self>) {
        if self.is_watching_network.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut changes = self.dialler.endpoint.network_changes();
        let weak = Arc::downgrade(self);
        self.pool.spawn(async move {
            while changes.next().await.is_some() {
                let Some(inner) = weak.upgrade() else { return };
                inner.network_changed();
            }
        });
    }
}

impl Client {
    /// Returns a builder with the defaults: racing, all versions, redirects, decompression, and the
    /// proxies of the environment.
    pub fn builder() -> ClientBuilder {
        ClientBuilder::default()
    }

    fn with_config(endpoint: Endpoint, config: Config) -> Self {
        let dialler = Dialler {
            endpoint,
            race: config.race.clone(),
            versions: config.versions,
            policy: config.policy,
            tunnels: config.tunnels,
            http2_prior_knowledge: config.http2_prior_knowledge,
            unix_socket: config.unix_socket.clone(),
        };
        Self(Arc::new(Inner {
            dialler: Arc::new(dialler),
            pool: Pool::new(config.pool.clone()),
            alt_svc: Mutex::default(),
            dialling: alternatives::Dialling::default(),
            known: early::Known::default(),
            counters: stats::Counters::default(),
            is_watching_network: AtomicBool::new(false),
            epoch: Instant::now(),
            config,
        }))
    }

    /// Creates a client with the defaults of [`builder`](Self::builder).
    ///
    /// # Panics
    /// If the default endpoint cannot be built, which [`ClientBuilder::build`] reports as an error.
    pub fn new() -> Self {
        Self::builder().build().expect("the default endpoint can be built")
    }

    /// Creates a GET request.
    pub fn get(&self, url: impl AsRef<str>) -> RequestBuilder {
        self.request(Method::GET, url)
    }

    /// Creates a HEAD request.
    pub fn head(&self, url: impl AsRef<str>) -> RequestBuilder {
        self.request(Method::HEAD, url)
    }

    /// Creates a POST request.
    pub fn post(&self, url: impl AsRef<str>) -> RequestBuilder {
        self.request(Method::POST, url)
    }

    /// Creates a PUT request.
    pub fn put(&self, url: impl AsRef<str>) -> RequestBuilder {
        self.request(Method::PUT, url)
    }

    /// Creates a PATCH request.
    pub fn patch(&self, url: impl AsRef<str>) -> RequestBuilder {
        self.request(Method::PATCH, url)
    }

    /// Creates a DELETE request.
    pub fn delete(&self, url: impl AsRef<str>) -> RequestBuilder {
        self.request(Method::DELETE, url)
    }

    /// Creates a request with any method.
    pub fn request(&self, method: Method, url: impl AsRef<str>) -> RequestBuilder {
        RequestBuilder::new(self.clone(), method, url.as_ref())
    }

    /// Notifies the client that the host has moved to another network: idle connections are closed,
    /// requests in flight continue as long as they can, nothing is sent as early data until an
    /// origin is reached again, and only alternative services with `persist` are kept. The client does this by itself where the kernel reports such moves.
    pub fn network_changed(&self) {
        self.0.network_changed();
    }

    /// Returns the counters of its requests and of its pool. Those of its races are the endpoint's
    /// ([`Endpoint::races`], [`Endpoint::attempts`]).
    pub fn stats(&self) -> ClientStats {
        self.0.counters.stats(self.0.pool.open())
    }

    /// Returns the endpoint that makes its connections.
    pub fn endpoint(&self) -> &Endpoint {
        &self.0.dialler.endpoint
    }

    /// Returns the number of malformed `Alt-Svc` fields.
    pub fn malformed_alt_svc(&self) -> u64 {
        self.0.alternatives().malformed()
    }

    fn inner(&self) -> &Arc<Inner> {
        &self.0
    }
}

impl Default for Client {
    fn default() -> Self {
        Self::new()
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("config", &self.0.config).finish_non_exhaustive()
    }
}

/// The response carries its [`eyas::ConnectionInfo`] and its [`url::Url`] as extensions.
impl Service<Request<Body>> for Client {
    type Response = http::Response<Body>;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        // The pool delays requests where its limits require it.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let inner = Arc::clone(&self.0);
        Box::pin(async move {
            let url = destination::parse(&request.uri().to_string())?;
            let limits = inner.config.limits;
            let answered = exchange::run(&inner, request, url.clone(), limits).await;
            let (mut response, exchanged) = answered.map_err(|error| error.with_url(&url))?;
            response.extensions_mut().insert(exchanged.report.info().clone());
            response.extensions_mut().insert(exchanged.url);
            Ok(response)
        })
    }
}
