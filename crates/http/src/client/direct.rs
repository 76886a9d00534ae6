//! Connections without a pool: the caller decides what is sent on a connection, and when it ends.
//! For load generators, and for servers that talk to a single peer.

use std::sync::Arc;

use eyas::{
    ConnectionInfo, Endpoint,
    race::{policy::Policy, target::Target},
};
use http::{Request, Response, Version};
use url::Url;

use super::{HttpPolicy, dial::Dialler};
use crate::{
    Body, Error, Versions,
    connection_report::ConnectionReport,
    destination::{self, destination, target},
    protocol::{SendFailure, Sender},
};

/// Opens connections to one origin. There is no pool, proxy, redirect, cookie, decompression or
/// retry: requests are sent exactly as given. Cheap to clone.
///
/// ```no_run
/// # async fn example() -> Result<(), eyas_http::Error> {
/// use eyas_http::{Body, Direct, Versions};
///
/// let endpoint = eyas::Endpoint::builder().build().expect("trust");
/// let direct = Direct::new(endpoint, "https://example.com/", Versions::ALL)?;
/// let mut connection = direct.open(&Default::default()).await?;
/// let request = http::Request::get("https://example.com/").body(Body::empty()).expect("valid");
/// let response = connection.send(request).await?;
/// println!("{} over {}", response.status(), connection.info().transport);
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct Direct(Arc<Inner>);

struct Inner {
    dialler: Dialler,
    target: Target,
    url: Url,
}

impl Direct {
    /// Connects to the origin of this `http` or `https` URL, with one of these versions.
    ///
    /// # Errors
    /// [`Kind::Url`](crate::Kind::Url) if the URL is invalid.
    pub fn new(
        endpoint: Endpoint,
        url: impl AsRef<str>,
        versions: Versions,
    ) -> Result<Self, Error> {
        let url = destination::parse(url.as_ref())?;
        let (host, port, https) = destination(&url)?;
        let target =
            target(host, port, https, versions).named_as(url.host_str().unwrap_or_default());
        let policy = HttpPolicy::Race;
        let dialler = Dialler {
            endpoint,
            race: Policy::default(),
            versions,
            policy,
            tunnels: false,
            http2_prior_knowledge: false,
            unix_socket: None,
        };
        Ok(Self(Arc::new(Inner { dialler, target, url })))
    }

    /// Races to open a connection, and returns the first that is ready. The policy's transports are
    /// an upper bound: those that the versions do not need are not used. The rest of the race only
    /// feeds the memory.
    ///
    /// # Errors
    /// The same as for a request of [`Client`](crate::Client) that finds no connection.
    pub async fn open(&self, race: &Policy) -> Result<DirectConnection, Error> {
        let opened = self.0.dialler.connect_unpooled(self.0.target.clone(), race).await;
        let (sender, report) = opened.map_err(|error| error.with_url(&self.0.url))?;
        Ok(DirectConnection { sender, report: Arc::new(report), direct: self.clone() })
    }
}

impl std::fmt::Debug for Direct {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Direct").field("target", &self.0.target).finish_non_exhaustive()
    }
}

/// A connection that belongs to its caller alone. Dropping it and all responses on it closes it.
pub struct DirectConnection {
    sender: Sender,
    report: Arc<ConnectionReport>,
    direct: Direct,
}

impl DirectConnection {
    /// Returns the details of the connection, including its timings.
    pub fn info(&self) -> &ConnectionInfo {
        self.report.info()
    }

    /// Returns the version of HTTP of the connection; HTTP/1.0 is chosen per request.
    pub fn version(&self) -> Version {
        self.sender.version()
    }

    /// Returns another handle to the same connection, if its version supports concurrent requests.
    pub fn share(&self) -> Option<Self> {
        let sender = self.sender.share()?;
        Some(Self { sender, report: Arc::clone(&self.report), direct: self.direct.clone() })
    }

    /// Returns whether the connection is known to be unusable for another request.
    pub fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Waits until the connection can take another request; returns `false` if it has ended
    /// instead. HTTP/1 takes the next request once the previous response has been read to its end.
    pub async fn ready(&mut self) -> bool {
        match &mut self.sender {
            Sender::Http1(sender) => sender.is_reusable().await,
            shared => !shared.is_closed(),
        }
    }

    /// Sends a request with an absolute URI and waits for the head of its response. On an HTTP/1
    /// connection, a request with version HTTP/1.0 is sent as such.
    ///
    /// # Errors
    /// Names the candidate and the cause. Nothing is retried.
    pub async fn send(&mut self, request: Request<Body>) -> Result<Response<Body>, Error> {
        match self.sender.send(request).await {
            Ok(response) => {
                self.report.first_byte_seen();
                Ok(response)
            }
            Err(SendFailure { error, .. }) => {
                if self.sender.is_closed() {
                    self.report.failed(&error);
                }
                Err(error.with_candidate(&*self.report).with_url(&self.direct.0.url))
            }
        }
    }
}

impl std::fmt::Debug for DirectConnection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DirectConnection").field("info", self.info()).finish_non_exhaustive()
    }
}
