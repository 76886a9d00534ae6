//! Maps a URL to its origin, connections and proxy.

use eyas::race::target::{Target, TargetHost};
use http::Uri;
use url::{Position, Url};

use super::{
    Inner,
    proxy::{ProxyAddress, ProxyProtocol},
};
use crate::{
    Error, Kind, Versions, alt_svc,
    destination::{destination, target},
    pool::Key,
    zoned_url::sent_host,
};

/// What must be known about a URL to send a request to it.
pub(super) struct Route {
    pub(super) key: Key,
    pub(super) host: TargetHost,
    pub(super) uri: Uri,
    pub(super) proxy: Option<ProxyAddress>,
}

impl Route {
    pub(super) fn new(inner: &Inner, url: &Url) -> Result<Self, Error> {
        let refuse = |why: String| Error::new(Kind::Url, why);
        let (host, port, https) = destination(url)?;
        let (scheme, sent) = (url.scheme(), sent_host(url));
        let text = format!("{scheme}://{sent}{}", &url[Position::AfterHost..Position::AfterQuery]);
        let uri: Uri =
            text.parse().map_err(|error: http::uri::InvalidUri| refuse(error.to_string()))?;
        let name = url.host_str().unwrap_or_default();
        let proxy = inner.config.proxy.for_origin(https, name, port)?;
        let key = Key {
            https,
            host: url.host_str().unwrap_or_default().into(),
            port,
            proxy: proxy.as_ref().map(|proxy| proxy.name().into()),
        };
        Ok(Self { key, host, uri, proxy })
    }

    /// Returns the target, for these versions of HTTP.
    pub(super) fn target(&self, versions: Versions) -> Target {
        target(self.host.clone(), self.key.port, self.key.https, versions).named_as(&self.key.host)
    }

    /// Returns the origin, as used for alternative services.
    pub(super) fn origin(&self) -> alt_svc::Origin {
        alt_svc::Origin { host: self.key.host.to_string(), port: self.key.port }
    }

    /// Returns `host:port`, as in a request to a proxy, where a zone of this host means nothing.
    pub(super) fn authority(&self) -> String {
        format!("{}:{}", self.uri.host().unwrap_or_default(), self.key.port)
    }

    /// Returns whether the request itself is sent to the proxy, rather than through a tunnel.
    pub(super) fn is_forwarded(&self) -> bool {
        let speaks_http = |proxy: &ProxyAddress| proxy.protocol != ProxyProtocol::Socks5;
        !self.key.https && self.proxy.as_ref().is_some_and(speaks_http)
    }
}
