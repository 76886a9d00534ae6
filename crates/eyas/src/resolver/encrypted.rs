//! DNS servers over TLS (RFC 7858), QUIC (RFC 9250) and HTTPS (RFC 8484), as the caller names them.

use std::borrow::Cow;
use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use eyas_race::target::{TargetError, TargetHost as RaceHost};
use rustls::ClientConfig;
use rustls_pki_types::ServerName;
use url::{Host, Url};

use super::encryption::SharedResolverMemory;
use super::name_servers::QueryTransport;
#[cfg(feature = "quic")]
use super::name_servers::alternative::DohServer;
#[cfg(not(feature = "quic"))]
use super::name_servers::https::HttpsServer;
#[cfg(feature = "quic")]
use super::name_servers::quic::QuicServer;
use super::name_servers::tls::TlsServer;
use super::system::SystemResolver;
use crate::zone::{in_url, parse_host, with_scope};
use crate::{Error, SecurityParameters};

/// The URL of a DoH server.
#[derive(Clone, Debug)]
pub(super) struct HttpsUrl {
    host: Host,
    /// The interface of a link-local address; 0 is none.
    zone: u32,
    port: u16,
    path: Arc<str>,
}

impl fmt::Display for HttpsUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "https://{}:{}{}", self.host, self.port, self.path)
    }
}

impl HttpsUrl {
    pub(super) fn parse(url: &str) -> Result<Self, Error> {
        // Do not show a password.
        let shown = if url.contains('@') { "the URL of the DNS server" } else { url };
        let unusable = |why: &str| Error::Resolver(format!("{shown}: {why}"));
        let (without_zone, zone) =
            without_zone(url).map_err(|error| unusable(&error.to_string()))?;
        let parsed = Url::parse(&without_zone).map_err(|error| unusable(&error.to_string()))?;
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
        Ok(Self { host, zone, port: parsed.port().unwrap_or(443), path: path.into() })
    }

    pub(super) fn has_name(&self) -> bool {
        matches!(self.host, Host::Domain(_))
    }

    /// Returns the server at each of its addresses, which this host resolves if the URL has a name.
    pub(super) async fn servers(
        &self,
        system: &SystemResolver,
        security: &SecurityParameters,
        memory: &SharedResolverMemory,
    ) -> Result<Vec<QueryTransport>, Error> {
        let (addresses, name): (Vec<IpAddr>, String) = match &self.host {
            Host::Ipv4(v4) => (vec![(*v4).into()], v4.to_string()),
            Host::Ipv6(v6) => (vec![(*v6).into()], v6.to_string()),
            Host::Domain(name) => (system.addresses(name).await, name.clone()),
        };
        if addresses.is_empty() {
            return Err(Error::Resolver(format!("{self}: its host has no address")));
        }
        let config = security.client_config(security.server_verifier()?)?;
        let mut servers = Vec::new();
        for address in addresses {
            let address = with_scope(address, self.port, self.zone);
            let server = server(address, &name, &self.path, config.clone(), memory).await;
            servers.push(server.ok_or_else(|| {
                Error::Resolver(format!("{self}: its host is no name of a server"))
            })?);
        }
        Ok(servers)
    }
}

/// Returns the server at one of its addresses.
#[cfg(feature = "quic")]
async fn server(
    address: SocketAddr,
    name: &str,
    path: &str,
    config: ClientConfig,
    memory: &SharedResolverMemory,
) -> Option<QueryTransport> {
    let server = DohServer::new(address, name, path, config, Arc::clone(memory)).await;
    server.map(QueryTransport::from)
}

/// Returns the server at one of its addresses.
#[cfg(not(feature = "quic"))]
#[expect(clippy::unused_async, reason = "with QUIC the memory is asked")]
async fn server(
    address: SocketAddr,
    name: &str,
    path: &str,
    config: ClientConfig,
    _memory: &SharedResolverMemory,
) -> Option<QueryTransport> {
    HttpsServer::new(address, name, path, config).map(QueryTransport::from)
}

/// Takes the zone of a link-local address out of a URL, and returns its interface.
fn without_zone(url: &str) -> Result<(Cow<'_, str>, u32), TargetError> {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let Some(at) = in_url(url, authority) else { return Ok((url.into(), 0)) };
    match parse_host(&url[at.clone()])? {
        RaceHost::Literal(ip, zone) => {
            let address = RaceHost::Literal(ip, 0);
            Ok((format!("{}{address}{}", &url[..at.start], &url[at.end..]).into(), zone))
        }
        RaceHost::Name(_) => Ok((url.into(), 0)),
    }
}

/// Returns the DoT server at this address, whose certificate must be valid for this name.
pub(super) fn over_tls(
    address: SocketAddr,
    name: &str,
    security: &SecurityParameters,
) -> Result<QueryTransport, Error> {
    let config = security.client_config(security.server_verifier()?)?;
    Ok(TlsServer::new(address, server_name(name)?, config).into())
}

/// Returns the DoQ server at this address, whose certificate must be valid for this name.
#[cfg(feature = "quic")]
pub(super) fn over_quic(
    address: SocketAddr,
    name: &str,
    security: &SecurityParameters,
) -> Result<QueryTransport, Error> {
    let config = security.client_config(security.server_verifier()?)?;
    let server = QuicServer::new(address, &server_name(name)?, config);
    let unusable = || Error::Security("QUIC needs TLS13_AES_128_GCM_SHA256".to_owned());
    server.map(QueryTransport::from).ok_or_else(unusable)
}

fn server_name(name: &str) -> Result<ServerName<'static>, Error> {
    ServerName::try_from(name.to_owned())
        .map_err(|error| Error::Resolver(format!("{name:?}: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_zone_selects_the_interface() {
        for url in ["https://[fe80::1%25lo]/q", "https://[fe80::1%lo]/q", "https://[fe80::1%1]/q"] {
            let parsed = HttpsUrl::parse(url).expect(url);
            assert_eq!((parsed.zone, &*parsed.path), (1, "/q"), "{url}");
            assert_eq!(parsed.host.to_string(), "[fe80::1]", "it is no part of a certificate");
        }
        let error = HttpsUrl::parse("https://[fe80::1%25nosuch0]/").expect_err("there is none");
        assert!(error.to_string().contains("no interface nosuch0"), "{error}");
    }

    #[test]
    fn a_password_is_refused_and_not_shown() {
        for url in ["https://ada:secret@dns.example/", "https://ada:secret@dns example/"] {
            let error = HttpsUrl::parse(url).expect_err("it cannot be used").to_string();
            assert!(!error.contains("secret") && error.contains("DNS server"), "{error}");
        }
        let error = HttpsUrl::parse("http://dns.example/").expect_err("not protected");
        assert!(error.to_string().contains("http://dns.example/: the scheme must be https"));
    }
}
