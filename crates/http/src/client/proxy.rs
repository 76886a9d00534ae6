//! Tunnels through a proxy (RFC 9110 §9.3.6).

use std::{
    future::{Ready, ready},
    task::{Context, Poll},
    time::Duration,
};

use eyas::ByteStream;
use http::{HeaderValue, Method, Request, Uri, header::PROXY_AUTHORIZATION};
use hyper::upgrade::Upgraded;
use hyper_util::{client::legacy::connect::proxy::SocksV5, rt::TokioIo};
use tokio::io::{AsyncRead, AsyncWrite};
use tower_service::Service;

use super::{credentials, proxy_url_error::ProxyUrlError};
use crate::{Body, Error, Kind, protocol::Http1};

/// How long a proxy may take to answer a CONNECT: 30 s.
pub(super) const CONNECT_TIMEOUT: Duration = Duration::from_secs(30);

/// The address, protocol and credentials of a proxy.
pub(super) struct ProxyAddress {
    pub(super) host: String,
    pub(super) port: u16,
    /// The credentials for SOCKS.
    user: Option<(String, String)>,
    pub(super) protocol: ProxyProtocol,
    /// The credentials for HTTP proxies.
    pub(super) authorization: Option<HeaderValue>,
}

/// The protocol of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProxyProtocol {
    Http,
    Https,
    Socks5,
}

impl ProxyProtocol {
    pub(super) const fn scheme(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
            Self::Socks5 => "socks5",
        }
    }

    const fn port(self) -> u16 {
        match self {
            Self::Http => 80,
            Self::Https => 443,
            Self::Socks5 => 1080,
        }
    }
}

impl ProxyAddress {
    /// Creates an address; the credentials are a name and a password.
    pub(super) fn new(
        protocol: ProxyProtocol,
        host: String,
        port: Option<u16>,
        credentials: Option<[Vec<u8>; 2]>,
    ) -> Result<Self, ProxyUrlError> {
        let mut address = Self {
            host,
            port: port.unwrap_or(protocol.port()),
            user: None,
            protocol,
            authorization: None,
        };
        let Some([name, password]) = credentials else { return Ok(address) };
        match protocol {
            ProxyProtocol::Http | ProxyProtocol::Https => {
                let value = credentials::basic(&name, &password);
                let value = value.ok_or(ProxyUrlError::ColonInUser)?;
                address.authorization = Some(value);
            }
            ProxyProtocol::Socks5 => {
                let text = |part| String::from_utf8(part);
                let pair = text(name).and_then(|name| Ok((name, text(password)?)));
                let pair = pair.map_err(|_| ProxyUrlError::CredentialsNotUtf8)?;
                address.user = Some(pair);
            }
        }
        Ok(address)
    }

    /// Returns the name that distinguishes its connections; contains no password.
    pub(super) fn name(&self) -> String {
        format!("{}://{}:{}", self.protocol.scheme(), self.host, self.port)
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
    *request.uri_mut() = authority.parse().map_err(|_| {
        Error::new(Kind::Url, format!("{authority:?} cannot be requested from a proxy"))
    })?;
    if let Some(authorization) = &proxy.authorization {
        request.headers_mut().insert(PROXY_AUTHORIZATION, authorization.clone());
    }
    let mut response = tokio::time::timeout(CONNECT_TIMEOUT, connection.exchange(request))
        .await
        .map_err(|_| Error::new(Kind::Proxy, "the proxy did not answer the CONNECT"))?
        .map_err(|failure| as_proxy(failure.error))?;
    if !response.status().is_success() {
        let detail =
            format!("the proxy answered the CONNECT to {authority} with {}", response.status());
        return Err(Error::new(Kind::Proxy, detail).with_status(response.status()));
    }
    let upgraded = hyper::upgrade::on(&mut response).await;
    upgraded.map(TokioIo::new).map_err(|error| Error::from_source(Kind::Proxy, error))
}

/// Asks the SOCKS proxy at the other end of `stream` for a tunnel to `authority`.
pub(super) async fn socks5(
    stream: ByteStream,
    authority: &str,
    proxy: &ProxyAddress,
) -> Result<ByteStream, Error> {
    let uri = |text: &str| {
        text.parse::<Uri>().map_err(|_| {
            Error::new(Kind::Url, format!("{authority:?} cannot be requested from a proxy"))
        })
    };
    let destination = uri(&format!("http://{authority}/"))?;
    let mut socks = SocksV5::new(uri(&format!("http://{}/", proxy.host))?, Opened(Some(stream)));
    if let Some((name, password)) = &proxy.user {
        socks = socks.with_auth(name.clone(), password.clone());
    }
    let opened = tokio::time::timeout(CONNECT_TIMEOUT, socks.call(destination)).await;
    opened
        .map_err(|_| Error::new(Kind::Proxy, "the proxy did not complete the SOCKS handshake"))?
        .map(TokioIo::into_inner)
        .map_err(|error| Error::new(Kind::Proxy, error.to_string()))
}

/// A connector that returns a connection that is already open.
struct Opened(Option<ByteStream>);

impl Service<Uri> for Opened {
    type Response = TokioIo<ByteStream>;
    type Error = std::io::Error;
    type Future = Ready<Result<Self::Response, Self::Error>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        ready(self.0.take().map(TokioIo::new).ok_or(std::io::ErrorKind::NotConnected.into()))
    }
}

fn as_proxy(error: Error) -> Error {
    error.with_kind(Kind::Proxy)
}
