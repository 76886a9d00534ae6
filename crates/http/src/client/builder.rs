//! What a client is made of.

use std::time::Duration;

use eyas::{Endpoint, SecurityParameters, race::policy::Policy};
use http::{HeaderMap, HeaderValue, header::USER_AGENT};
use rustls_pki_types::CertificateDer;

use super::{Client, HttpPolicy, Proxy, limits::Limits};
use crate::{Error, Kind, PoolLimits, Versions};

/// How long a request waits for an alternative, as browsers wait while they know no round trip.
const ALTERNATIVE_WAIT: Duration = Duration::from_millis(300);

/// Settles what a [`Client`] is made of.
#[derive(Debug)]
#[must_use]
pub struct ClientBuilder {
    pub(super) endpoint: Option<Endpoint>,
    added_roots: Vec<CertificateDer<'static>>,
    pub(super) config: Config,
}

#[derive(Debug)]
pub(super) struct Config {
    pub(super) policy: HttpPolicy,
    pub(super) race: Policy,
    pub(super) versions: Versions,
    pub(super) limits: Limits,
    pub(super) allow_downgrade: bool,
    pub(super) decompress: bool,
    pub(super) cookies: bool,
    pub(super) early_data: bool,
    pub(super) proxy: Proxy,
    pub(super) pool: PoolLimits,
    pub(super) alternative_wait: Duration,
    pub(super) max_body: Option<u64>,
    pub(super) tunnels: bool,
    pub(super) headers: HeaderMap,
}

impl Default for ClientBuilder {
    fn default() -> Self {
        let agent = HeaderValue::from_static(concat!("eyas/", env!("CARGO_PKG_VERSION")));
        Self {
            endpoint: None,
            added_roots: Vec::new(),
            config: Config {
                policy: HttpPolicy::default(),
                race: Policy::default(),
                versions: Versions::ALL,
                limits: Limits::default(),
                allow_downgrade: false,
                decompress: true,
                cookies: false,
                early_data: false,
                proxy: Proxy::from_env(),
                pool: PoolLimits::default(),
                alternative_wait: ALTERNATIVE_WAIT,
                max_body: None,
                tunnels: false,
                headers: HeaderMap::from_iter([(USER_AGENT, agent)]),
            },
        }
    }
}

impl ClientBuilder {
    /// The endpoint whose sockets, resolver, trust and memory are used; one with the defaults
    /// unless given.
    pub fn endpoint(mut self, endpoint: Endpoint) -> Self {
        self.endpoint = Some(endpoint);
        self
    }

    /// Trusts this root beside those of the platform ([`eyas::certificates_from_pem`] reads files of
    /// them). For an [endpoint](Self::endpoint) of one's own its
    /// [security parameters](eyas::SecurityParameters) say whom to trust, so there is no client with
    /// both.
    pub fn add_root(mut self, root: CertificateDer<'static>) -> Self {
        self.added_roots.push(root);
        self
    }

    /// In which order HTTP/3 and the older versions are tried; [`HttpPolicy::Race`] unless said.
    pub fn policy(mut self, policy: HttpPolicy) -> Self {
        self.config.policy = policy;
        self
    }

    /// The values that races run by, such as delays, address family and deadline. Its transports
    /// are an upper bound: what the [versions](Self::versions) do not need is left out.
    pub fn race(mut self, policy: Policy) -> Self {
        self.config.race = policy;
        self
    }

    /// The versions of HTTP that may be spoken; all unless said.
    pub fn versions(mut self, versions: Versions) -> Self {
        self.config.versions = versions;
        self
    }

    /// How many redirects are followed: 10 unless said. With 0 a redirect is a response like any
    /// other.
    pub fn redirects(mut self, limit: usize) -> Self {
        self.config.limits.redirects = limit;
        self
    }

    /// Lets a redirect lead from `https` to `http`. Off unless asked.
    pub fn allow_downgrade(mut self, allow: bool) -> Self {
        self.config.allow_downgrade = allow;
        self
    }

    /// Whether responses may come compressed (gzip, br, zstd, deflate) and are decompressed while
    /// they are read (feature `compression`). On unless said.
    #[cfg(feature = "compression")]
    pub fn decompress(mut self, decompress: bool) -> Self {
        self.config.decompress = decompress;
        self
    }

    /// Whether cookies are kept and sent back (feature `cookies`). Off unless asked.
    #[cfg(feature = "cookies")]
    pub fn cookies(mut self, cookies: bool) -> Self {
        self.config.cookies = cookies;
        self
    }

    /// Whether requests of safe methods may go out as 0-RTT data, to origins that were reached
    /// over HTTP/3 before; HTTP/1 and 2 send none. The endpoint must be
    /// [made for it](eyas::SecurityParameters::with_early_data). An attacker can replay what goes
    /// out so. Off unless asked.
    pub fn early_data(mut self, early_data: bool) -> Self {
        self.config.early_data = early_data;
        self
    }

    /// Which proxies are used; those of the environment unless said.
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.config.proxy = proxy;
        self
    }

    /// Bounds of the connection pool.
    pub fn pool(mut self, limits: PoolLimits) -> Self {
        self.config.pool = limits;
        self
    }

    /// How long a request may wait for its connection; without a limit the race's own deadline
    /// holds.
    pub fn connect_timeout(mut self, limit: Duration) -> Self {
        self.config.limits.connect = Some(limit);
        self
    }

    /// How long an exchange may take in all, from the call to the last byte of the body.
    pub fn total_timeout(mut self, limit: Duration) -> Self {
        self.config.limits.total = Some(limit);
        self
    }

    /// How long the peer may be silent, before the response and between chunks of its body.
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.config.limits.idle = Some(limit);
        self
    }

    /// How long a request waits for an alternative service that was announced before it goes to the
    /// origin (RFC 7838 §2.4), with [`HttpPolicy::AltSvc`]: 300 ms unless said. The attempt goes on,
    /// and later requests use it.
    pub fn alternative_wait(mut self, limit: Duration) -> Self {
        self.config.alternative_wait = limit;
        self
    }

    /// The largest response body that is handed over, in bytes after decompression. A few bytes
    /// can decompress to very many: set this where the server is not trusted.
    pub fn max_body(mut self, bytes: u64) -> Self {
        self.config.max_body = Some(bytes);
        self
    }

    /// Makes connections for [`Client::connect`]: each stream of HTTP/2 has a window of its own alone, so that
    /// one that nobody reads does not stop the others. Off unless asked.
    pub fn tunnels(mut self, tunnels: bool) -> Self {
        self.config.tunnels = tunnels;
        self
    }

    /// Header fields that every request gets unless it has its own.
    pub fn default_headers(mut self, headers: HeaderMap) -> Self {
        self.config.headers.extend(headers);
        self
    }

    /// Makes the client. Nothing is connected yet.
    ///
    /// # Errors
    /// [`Kind::Tls`] if no endpoint was given and one with the defaults cannot be made, or if one was
    /// given and roots, too;
    /// [`Kind::Request`] if no version of HTTP is allowed.
    pub fn build(self) -> Result<Client, Error> {
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
        Ok(Client::new(endpoint, self.config))
    }
}

/// An endpoint with the defaults that trusts these roots, too.
fn trusting(roots: Vec<CertificateDer<'static>>) -> Result<Endpoint, eyas::Error> {
    let security =
        roots.into_iter().fold(SecurityParameters::platform(), SecurityParameters::with_added_root);
    Endpoint::builder().security(security).build()
}
