//! DNS servers over TLS (RFC 7858) and over HTTPS (RFC 8484).

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use futures_util::future::BoxFuture;
use hickory_resolver::PoolContext;
use hickory_resolver::config::{ConnectionConfig, NameServerConfig};
use hickory_resolver::net::NetError;
use hickory_resolver::net::runtime::RuntimeProvider;
use hickory_resolver::net::tls::{TlsClientStream, tls_client_connect_with_bind_addr};
use hickory_resolver::net::xfer::BufDnsStreamHandle;
use rustls_pki_types::ServerName;
use url::{Host, Url};

use super::runtime::Runtime;
use super::system::System;
use crate::Error;

/// A DoH server, as specified by its URL.
#[derive(Clone, Debug)]
pub(super) struct HttpsServer {
    host: Host,
    port: u16,
    path: Arc<str>,
}

impl fmt::Display for HttpsServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "https://{}:{}{}", self.host, self.port, self.path)
    }
}

impl HttpsServer {
    pub(super) fn parse(url: &str) -> Result<Self, Error> {
        // Do not show a password.
        let shown = if url.contains('@') { "the URL of the DNS server" } else { url };
        let unusable = |why: &str| Error::Resolver(format!("{shown}: {why}"));
        let parsed = Url::parse(url).map_err(|error| unusable(&error.to_string()))?;
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(unusable(
                "it has a user or a password, which would not be sent: leave it out",
            ));
        }
        if parsed.scheme() != "https" {
            return Err(unusable("the scheme must be https"));
        }
        let host = parsed.host().ok_or_else(|| unusable("there is no host"))?.to_owned();
        let path = if parsed.path() == "/" { "/dns-query" } else { parsed.path() };
        Ok(Self { host, port: parsed.port().unwrap_or(443), path: path.into() })
    }

    /// Finds the server's address, as this host does if the URL has a name.
    pub(super) async fn address(&self, system: &System) -> Option<NameServerConfig> {
        let (ip, name): (IpAddr, String) = match &self.host {
            Host::Ipv4(v4) => ((*v4).into(), v4.to_string()),
            Host::Ipv6(v6) => ((*v6).into(), v6.to_string()),
            Host::Domain(name) => (system.address(name).await?, name.clone()),
        };
        let mut connection = ConnectionConfig::https(name.into(), Some(Arc::clone(&self.path)));
        connection.port = self.port;
        Some(NameServerConfig::new(ip, true, vec![connection]))
    }
}

pub(super) fn tls_server(address: SocketAddr, name: &str) -> NameServerConfig {
    let mut connection = ConnectionConfig::tls(name.into());
    connection.port = address.port();
    NameServerConfig::new(address.ip(), true, vec![connection])
}

/// A DNS message stream over TLS.
type Tls = TlsClientStream<<Runtime as RuntimeProvider>::Tcp>;

/// Returns such a stream, which is connected when it is first polled, and the sender of its
/// queries.
pub(super) fn over_tls(
    server: SocketAddr,
    local: Option<SocketAddr>,
    name: &str,
    pool: &PoolContext,
    runtime: &Runtime,
) -> Result<(BoxFuture<'static, Result<Tls, NetError>>, BufDnsStreamHandle), NetError> {
    let name = ServerName::try_from(name).map_err(|error| NetError::from(error.to_string()))?;
    let mut tls = pool.tls.clone();
    // A DNS server on its own port needs no server name.
    tls.enable_sni = false;
    let (name, tls) = (name.to_owned(), Arc::new(tls));
    Ok(tls_client_connect_with_bind_addr(server, local, name, tls, runtime.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_refused_and_not_shown() {
        for url in ["https://ada:secret@dns.example/", "https://ada:secret@dns example/"] {
            let error = HttpsServer::parse(url).expect_err("it cannot be used").to_string();
            assert!(!error.contains("secret") && error.contains("DNS server"), "{error}");
        }
        let error = HttpsServer::parse("http://dns.example/").expect_err("not protected");
        assert!(error.to_string().contains("http://dns.example/: the scheme must be https"));
    }
}
