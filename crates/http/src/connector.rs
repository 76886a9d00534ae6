//! Connectors for other HTTP clients: eyas races to connect, and the client speaks HTTP over the
//! winner.
//!
//! | client | how |
//! | --- | --- |
//! | hyper-util's `Client` | use [`Connector`] as its connector; ALPN decides whether it speaks HTTP/2 |
//! | tonic | pass a [`Connector`] for HTTP/2 only to `Endpoint::connect_with_connector` |
//! | ureq | `Connector::into_ureq` returns an agent (feature `ureq`) |
//! | reqwest | does not accept a transport: its `connector_layer` must return a connection that reqwest itself opened. Use an `eyas_proxy::Proxy` in the same process, which races to each destination |
//!
//! A client that supports HTTP/1.1 and 2 cannot use QUIC, so the race is over TCP, MPTCP and SCTP.
//! For HTTP/3, use [`Client`](crate::Client).
//!
//! ```no_run
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use eyas_http::{Body, connector::Connector};
//! use hyper_util::{client::legacy::Client, rt::TokioExecutor};
//!
//! let connector = Connector::new(eyas::Endpoint::builder().build()?);
//! let client = Client::builder(TokioExecutor::new()).build::<_, Body>(connector);
//! let response = client.get("https://example.com/".parse()?).await?;
//! if let Some(info) = response.extensions().get::<eyas::ConnectionInfo>() {
//!     println!("{:?} over {} to {}", response.version(), info.transport, info.remote);
//! }
//! # Ok(())
//! # }
//! ```

use std::{
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

use eyas::{
    Endpoint, Security,
    race::{policy::Policy, target::Target},
};
use http::Uri;
use tower_service::Service;
use url::Url;

use crate::{
    Error, Kind, Versions,
    destination::{self, destination, is_stream, target},
    error::connect_error,
};

mod stream;
#[cfg(feature = "ureq")]
mod ureq;

pub use stream::Stream;

/// Races to the host of a URI and returns the winning stream, with TLS if the scheme is `https`. It
/// is a [`tower_service::Service`], for clients that take one. Cheap to clone.
#[derive(Clone, Debug)]
#[must_use]
pub struct Connector {
    endpoint: Endpoint,
    race: Policy,
    versions: Versions,
    always_tls: bool,
}

impl Connector {
    /// Creates a connector that uses this endpoint: its resolver, its trust, its memory.
    pub fn new(endpoint: Endpoint) -> Self {
        Self { endpoint, race: Policy::default(), versions: Versions::ALL, always_tls: false }
    }

    /// Sets the parameters of races. Only the transports that carry a byte stream are used: TCP
    /// (the default), MPTCP and SCTP.
    pub fn race(mut self, policy: Policy) -> Self {
        self.race = policy;
        self
    }

    /// Sets the versions of HTTP that the client supports, which are offered by ALPN. The default
    /// is HTTP/1.1 and 2. HTTP/3 has no effect here.
    pub fn versions(mut self, versions: Versions) -> Self {
        self.versions = versions;
        self
    }

    /// Uses TLS for `http` URIs too, with the default port 443. For clients that would add TLS of
    /// their own to `https` connections, as tonic does when built with TLS.
    pub fn always_tls(mut self) -> Self {
        self.always_tls = true;
        self
    }

    /// Races to the host of this `http` or `https` URI. Dropping the future closes everything.
    ///
    /// # Errors
    /// [`Kind::Url`] if the URI has no host; [`Kind::Dns`], [`Kind::Connect`],
    /// [`Kind::ConnectTimeout`], [`Kind::Tls`] or [`Kind::Certificate`] if no connection could be
    /// made: the error lists every candidate with its cause of failure.
    pub async fn connect(&self, uri: &Uri) -> Result<Stream, Error> {
        let url = destination::parse(&uri.to_string())?;
        self.race_to(&url).await.map_err(|error| error.with_url(&url))
    }

    async fn race_to(&self, url: &Url) -> Result<Stream, Error> {
        let target = self.target(url)?;
        let mut policy = self.race.clone();
        policy.transports.retain(|transport| is_stream(*transport));
        if policy.transports.is_empty() || !self.versions.over_streams() {
            let what = "no transport is allowed that carries HTTP/1.1 or HTTP/2; allow TCP";
            return Err(Error::new(Kind::Connect, what).with_advice());
        }
        let connecting = self.endpoint.preconnection(target).policy(policy).connect();
        let connection = connecting.await.map_err(connect_error)?;
        let info = connection.info();
        let is_http2 = info.alpn.as_deref() == Some("h2");
        if info.security != Security::None && !self.versions.http1 && !is_http2 {
            let what = "the peer does not support HTTP/2, and HTTP/1.1 is not allowed";
            return Err(Error::new(Kind::Tls, what));
        }
        let stream = connection.into_stream();
        stream
            .map(Stream::new)
            .map_err(|_| Error::new(Kind::Closed, "the connection closed before it was used"))
    }

    fn target(&self, url: &Url) -> Result<Target, Error> {
        let (host, port, https) = destination(url)?;
        let port = match url.port() {
            None if self.always_tls => 443,
            _ => port,
        };
        let target = target(host, port, https || self.always_tls, self.versions);
        Ok(target.named_as(url.host_str().unwrap_or_default()))
    }
}

impl Service<Uri> for Connector {
    type Response = Stream;
    type Error = Error;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, Error>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Error>> {
        // The endpoint limits the attempts in flight.
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let this = self.clone();
        Box::pin(async move { this.connect(&uri).await })
    }
}
