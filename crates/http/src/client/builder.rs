//! Configuration of a client.

use std::{path::Path, sync::Arc, time::Duration};

use eyas::{Endpoint, SecurityParameters, race::policy::Policy};
use http::{HeaderMap, HeaderValue, header::USER_AGENT};
use rustls_pki_types::CertificateDer;

use super::{Client, CookieStore, HttpPolicy, Proxy, cookies::Cookies, limits::Limits};
use crate::{Error, Kind, PoolLimits, Versions};

/// How long a request waits for an alternative: as long as browsers wait before they have measured
/// a round trip.
const ALTERNATIVE_WAIT: Duration = Duration::from_millis(300);

/// Builds a [`Client`].
#[derive(Debug)]
#[must_use]
pub struct ClientBuilder {
    pub(super) endpoint: Option<Endpoint>,
    added_roots: Vec<CertificateDer<'static>>,
    /// Why the client cannot be built.
    refused: Option<Error>,
    pub(super) config: Config,
}

#[derive(Debug)]
pub(super) struct Config {
    pub(super) policy: HttpPolicy,
    pub(super) race: Policy,
    pub(super) versions: Versions,
    pub(super) limits: Limits,
    pub(super) allow_downgrade: bool,
    pub(super) referer_of_redirects: bool,
    pub(super) decompress: bool,
    pub(super) cookies: Option<Cookies>,
    pub(super) early_data: bool,
    pub(super) proxy: Proxy,
    pub(super) pool: PoolLimits,
    pub(super) alternative_wait: Duration,
    pub(super) max_body: Option<u64>,
    pub(super) tunnels: bool,
    pub(super) http2_prior_knowledge: bool,
    pub(super) unix_socket: Option<Arc<Path>>,
    pub(super) headers: HeaderMap,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        let agent = HeaderValue::from_static(concat!("eyas/", env!("CARGO_PKG_VERSION")));
        Self {
            endpoint: None,
            added_roots: Vec::new(),
            refused: None,
            config: Config {
                policy: HttpPolicy::default(),
                race: Policy::default(),
                versions: Versions::ALL,
                limits: Limits::default(),
                allow_downgrade: false,
                referer_of_redirects: false,
                decompress: true,
                cookies: None,
                early_data: false,
                proxy: Proxy::from_env(),
                pool: PoolLimits::default(),
                alternative_wait: ALTERNATIVE_WAIT,
                max_body: None,
                tunnels: false,
                http2_prior_knowledge: false,
                unix_socket: None,
                headers: HeaderMap::from_iter([(USER_AGENT, agent)]),
            },
        }
    }
}

impl ClientBuilder {
    /// Sets the endpoint, whose sockets, resolver, trust and memory are used. The default is an
    /// endpoint with the default configuration.
    pub fn endpoint(mut self, endpoint: Endpoint) -> Self {
        self.endpoint = Some(endpoint);
        self
    }

    /// Trusts this root in addition to those of the platform ([`eyas::certificates_from_pem`] reads
    /// files of roots). Cannot be combined with [`endpoint`](Self::endpoint), because an endpoint
    /// has its own [security parameters](eyas::SecurityParameters).
    pub fn add_root(mut self, root: CertificateDer<'static>) -> Self {
        self.added_roots.push(root);
        self
    }

    /// Sets how HTTP/3 and the older versions are tried. The default is [`HttpPolicy::Race`].
    pub fn policy(mut self, policy: HttpPolicy) -> Self {
        self.config.policy = policy;
        self
    }

    /// Sets the parameters of races, such as delays, address family and deadline. Its transports
    /// are an upper bound: those that the [versions](Self::versions) do not need are not used.
    pub fn race(mut self, policy: Policy) -> Self {
        self.config.race = policy;
        self
    }

    /// Sets the versions of HTTP that may be used. The default is all.
    pub fn versions(mut self, versions: Versions) -> Self {
        self.config.versions = versions;
        self
    }

    /// Sets the maximum number of redirects to follow. The default is 10. With 0, redirects are
    /// returned like any other response.
    pub fn redirects(mut self, limit: usize) -> Self {
        self.config.limits.redirects = limit;
        self
    }

    /// Allows redirects from `https` to `http`. Off by default.
    pub fn allow_downgrade(mut self, allow: bool) -> Self {
        self.config.allow_downgrade = allow;
        self
    }

    /// Sets whether a request that a redirect leads to names the page that redirected, in `Referer`
    /// (RFC 9110 §10.1.3). Off by default: a field that the caller has set is sent unchanged.
    pub fn referer_of_redirects(mut self, set: bool) -> Self {
        self.config.referer_of_redirects = set;
        self
    }

    /// Sets whether compressed responses (gzip, br, zstd, deflate) are requested and decompressed
    /// as they are read (feature `compression`). On by default.
    #[cfg(feature = "compression")]
    pub fn decompress(mut self, decompress: bool) -> Self {
        self.config.decompress = decompress;
        self
    }

    /// Sets whether cookies are stored and sent (feature `cookies`). Off by default.
    #[cfg(feature = "cookies")]
    pub fn cookies(mut self, cookies: bool) -> Self {
        self.config.cookies = cookies.then(Cookies::empty);
        self
    }

    /// Keeps cookies in a store of the caller. Once a redirect is followed, the store decides about
    /// the `Cookie` field, even if the caller has set one for the request.
    pub fn cookie_store(mut self, store: Arc<dyn CookieStore>) -> Self {
        self.config.cookies = Some(Cookies::of_caller(store));
        self
    }

    /// Sets whether requests with safe methods may be sent as 0-RTT data, to origins that were
    /// reached over HTTP/3 before; HTTP/1 and 2 never send early data. The endpoint must [enable
    /// early data](eyas::SecurityParameters::with_early_data). An attacker can replay early data.
    /// Off by default.
    pub fn early_data(mut self, early_data: bool) -> Self {
        self.config.early_data = early_data;
        self
    }

    /// Sets the proxies. The default is the environment's.
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.config.proxy = proxy;
        self
    }

    /// Sets the limits of the connection pool.
    pub fn pool(mut self, limits: PoolLimits) -> Self {
        self.config.pool = limits;
        self
    }

    /// Sets how long a request may wait for its connection. Without a limit, the race's deadline
    /// applies.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.config.limits.connect = Some(limit);
        self
    }

    /// Sets the time limit of a whole exchange, from the call to the last byte of the body.
    pub fn timeout(mut self, limit: Duration) -> Self {
        self.config.limits.total = Some(limit);
        self
    }

    /// Sets how long the peer may be silent, before the response and between chunks of its body.
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.config.limits.idle = Some(limit);
        self
    }

    /// Sets how long a request waits for an announced alternative service before it goes to the
    /// origin (RFC 7838 §2.4), with [`HttpPolicy::AltSvc`]. The default is 300 ms. The attempt
    /// continues, and later requests use its connection.
    pub fn alternative_wait(mut self, limit: Duration) -> Self {
        self.config.alternative_wait = limit;
        self
    }

    /// Sets the maximum size of a response body, in bytes after decompression. A few bytes can
    /// decompress to very many: set this for servers that are not trusted.
    pub fn max_body(mut self, bytes: u64) -> Self {
        self.config.max_body = Some(bytes);
        self
    }

    /// Optimises connections for [`Client::connect`]: each HTTP/2 stream is limited only by its own
    /// flow-control window, so that an unread stream does not block the others. Off by default.
    pub fn tunnels(mut self, tunnels: bool) -> Self {
        self.config.tunnels = tunnels;
        self
    }

    /// Starts HTTP/2 right away on connections without TLS, to servers that are known to support it
    /// (RFC 9113 §3.3); such a server answers nothing else. Off by default: `http` URLs then use
    /// HTTP/1.1.
    pub fn http2_prior_knowledge(mut self, known: bool) -> Self {
        self.config.http2_prior_knowledge = known;
        self
    }

    /// Connects to this socket of the file system, whatever the host of a URL is. Nothing is then raced,
    /// and no proxy is used.
    pub fn unix_socket(mut self, path: impl AsRef<Path>) -> Self {
        self.config.unix_socket = Some(path.as_ref().into());
        self
    }

    /// Sets the `User-Agent` field of every request that does not set it itself, in place of that
    /// of eyas. A value that is not valid in a field is an error of [`build`](Self::build).
    pub fn user_agent(mut self, agent: impl TryInto<HeaderValue>) -> Self {
        match agent.try_into() {
            Ok(agent) => _ = self.config.headers.insert(USER_AGENT, agent),
            Err(_) => {
                self.refused = Some(Error::new(Kind::Request, "the user agent is no field value"));
            }
        }
        self
    }

    /// Sets header fields that are added to every request that does not set them itself.
    pub fn default_headers(mut self, headers: HeaderMap) -> Self {
        self.config.headers.extend(headers);
        self
    }

    /// Builds the client. No connection is made yet.
    ///
    /// # Errors
    /// [`Kind::Tls`] if no endpoint was given and the default one cannot be built, or if both an
    /// endpoint and roots were given; [`Kind::Request`] if no version of HTTP is allowed, or the
    /// user agent is not valid.
    pub fn build(self) -> Result<Client, Error> {
        if let Some(error) = self.refused {
            return Err(error);
        }
        if !self.config.versions.over_streams() && !self.config.versions.http3 {
            return Err(Error::new(Kind::Request, "no version of HTTP is allowed"));
        }
        let endpoint = match self.endpoint {
            Some(_) if !self.added_roots.is_empty() => {
                let what = "both an endpoint and roots were given; give the endpoint the roots";
                return Err(Error::new(Kind::Tls, what).with_advice());
            }
            Some(endpoint) => endpoint,
            None => {
                trusting(self.added_roots).map_err(|error| Error::from_source(Kind::Tls, error))?
            }
        };
        Ok(Client::with_config(endpoint, self.config))
    }
}

/// Returns a default endpoint that also trusts these roots.
fn trusting(roots: Vec<CertificateDer<'static>>) -> Result<Endpoint, eyas::Error> {
    let security =
        roots.into_iter().fold(SecurityParameters::platform(), SecurityParameters::with_added_root);
    Endpoint::builder().security(security).build()
}
