//! Proxies: which one stands before a URL, and the tunnel through it (RFC 9110 §9.3.6).

use std::time::Duration;

use http::{HeaderValue, Method, Request, Uri, header::PROXY_AUTHORIZATION};
use hyper::upgrade::Upgraded;
use hyper_util::{
    client::proxy::matcher::{Intercept, Matcher},
    rt::TokioIo,
};
use tokio::io::{AsyncRead, AsyncWrite};

use crate::{Body, Error, Kind, protocol::Http1};

/// How long a proxy may take to answer a CONNECT: 30 s.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// Which proxy stands before which URL.
///
/// A request through a proxy uses TCP alone: it is the proxy that reaches the peer, and it cannot
/// be asked to race. [`crate::Response::connection`] says so in its reasons.
#[derive(Debug)]
pub struct Proxy(Option<Matcher>);

impl Proxy {
    /// No proxy, whatever the environment says.
    pub fn none() -> Self {
        Self(None)
    }

    /// What `HTTP_PROXY`, `HTTPS_PROXY`, `ALL_PROXY` and `NO_PROXY` say, in either case, as read
    /// now. In a CGI program `HTTP_PROXY` is ignored, for a client could set it there.
    pub fn from_env() -> Self {
        Self(Some(Matcher::from_env()))
    }

    /// This proxy for everything but what `no_proxy` lists (names with their subdomains,
    /// addresses, networks, `*`; separated by commas).
    pub fn all(proxy: impl Into<String>, no_proxy: impl Into<String>) -> Self {
        Self(Some(Matcher::builder().all(proxy.into()).no(no_proxy.into()).build()))
    }

    pub(super) fn before(&self, uri: &Uri) -> Option<Intercept> {
        self.0.as_ref()?.intercept(uri)
    }
}

impl Default for Proxy {
    fn default() -> Self {
        Self::from_env()
    }
}

/// Where a proxy is.
pub(super) struct ProxyAddress {
    pub(super) host: String,
    pub(super) port: u16,
    pub(super) tls: bool,
    pub(super) authorization: Option<HeaderValue>,
}

impl ProxyAddress {
    pub(super) fn of(intercept: &Intercept) -> Result<Self, Error> {
        let uri = intercept.uri();
        let tls = match uri.scheme_str() {
            Some("http") | None => false,
            Some("https") => true,
            Some(other) => {
                let detail = format!("{other} proxies are not supported, http and https are");
                return Err(Error::new(Kind::Proxy, detail));
            }
        };
        let host = uri
            .host()
            .filter(|host| !host.is_empty())
            .ok_or_else(|| Error::new(Kind::Proxy, "the proxy's URL has no host"))?;
        Ok(Self {
            host: host.to_owned(),
            port: uri.port_u16().unwrap_or(if tls { 443 } else { 80 }),
            tls,
            authorization: intercept.basic_auth().cloned(),
        })
    }

    /// The name under which its connections are kept apart; holds no password.
    pub(super) fn name(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        format!("{scheme}://{}:{}", self.host, self.port)
    }
}

/// Asks the proxy at the other end of `stream` for a tunnel to `authority`.
pub(super) async fn tunnel<S>(
    stream: S,
    authority: &str,
    proxy: &ProxyAddress,
) -> Result<TokioIo<Upgraded>, Error>
where
    S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
{
    let mut connection = Http1::start(stream, true).await.map_err(as_proxy)?;
    let mut request = Request::new(Body::empty());
    *request.method_mut() = Method::CONNECT;
    *request.uri_mut() = authority
        .parse()
        .map_err(|_| Error::new(Kind::Url, format!("{authority:?} cannot be asked of a proxy")))?;
    if let Some(authorization) = &proxy.authorization {
        request.headers_mut().insert(PROXY_AUTHORIZATION, authorization.clone());
    }
    let mut response = tokio::time::timeout(CONNECT_TIMEOUT, connection.exchange(request))
        .await
        .map_err(|_| Error::new(Kind::Proxy, "it did not answer the CONNECT"))?
        .map_err(|failure| as_proxy(failure.error))?;
    if !response.status().is_success() {
        let detail = format!("it answered the CONNECT to {authority} with {}", response.status());
        return Err(Error::new(Kind::Proxy, detail));
    }
    let upgraded = hyper::upgrade::on(&mut response).await;
    upgraded.map(TokioIo::new).map_err(|error| Error::from_source(Kind::Proxy, error))
}

fn as_proxy(error: Error) -> Error {
    error.with_kind(Kind::Proxy)
}
