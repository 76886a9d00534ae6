//! Chooses the proxy for a URL, by curl's rules.
//!
//! A proxy that is configured and cannot be used is an error of each request that it is for: a
//! direct connection would bypass what the user asked for.

use std::{env::VarError, fmt, net::IpAddr};

use eyas::zone::parse_host;
use ipnet::IpNet;
use percent_encoding::percent_decode_str;

use super::proxy::{ProxyAddress, ProxyProtocol};
use super::proxy_url_error::ProxyUrlError;
use crate::{Error, Kind};

/// The proxies by URL: `http`, `https` or `socks5` (RFC 1928); a `socks5` proxy resolves names
/// itself, as `socks5h` does in curl. A URL without a scheme is `http`.
///
/// Requests through a proxy use TCP only, because the proxy connects to the peer and cannot be
/// asked to race. [`crate::Response::connection`] says so in its reasons.
///
/// A URL that is not valid, or names another kind of proxy, is an error of each request that it is
/// for ([`Kind::Proxy`]); nothing then connects directly.
pub struct Proxy {
    http: Option<Configured>,
    https: Option<Configured>,
    exceptions: Exceptions,
}

/// A proxy as it was configured, and where.
#[derive(Clone)]
struct Configured {
    text: Result<String, VarError>,
    by: Option<&'static str>,
}

impl Proxy {
    /// Uses no proxy, whatever the environment says.
    pub fn none() -> Self {
        Self { http: None, https: None, exceptions: Exceptions::default() }
    }

    /// Uses the proxies of `http_proxy`, of `https_proxy` or `HTTPS_PROXY`, and for either of them
    /// otherwise `all_proxy` or `ALL_PROXY`, except for the hosts of `no_proxy` or `NO_PROXY`, as
    /// they are set now. An empty variable counts as one that is not set, and lower case comes
    /// first. `HTTP_PROXY` is ignored, as curl does: in CGI programs a client can set it.
    pub fn from_env() -> Self {
        let variable = |name: &'static str| Some((name, std::env::var(name)));
        Self::from_variables(variable)
    }

    fn from_variables(
        variable: impl Fn(&'static str) -> Option<(&'static str, Result<String, VarError>)>,
    ) -> Self {
        let first = |names: &[&'static str]| {
            names.iter().find_map(|name| match variable(name)? {
                (_, Err(VarError::NotPresent)) => None,
                (_, Ok(text)) if text.is_empty() => None,
                (name, text) => Some(Configured { text, by: Some(name) }),
            })
        };
        let no_proxy = first(&["no_proxy", "NO_PROXY"]).and_then(|it| it.text.ok());
        Self {
            http: first(&["http_proxy", "all_proxy", "ALL_PROXY"]),
            https: first(&["https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY"]),
            exceptions: Exceptions::parse(&no_proxy.unwrap_or_default()),
        }
    }

    /// Uses this proxy for everything except the hosts in `no_proxy`: names with their subdomains,
    /// addresses, networks, `*`; separated by commas or blanks. An empty URL means no proxy.
    pub fn all(proxy: impl Into<String>, no_proxy: impl Into<String>) -> Self {
        let text = proxy.into();
        let proxy = (!text.is_empty()).then_some(Configured { text: Ok(text), by: None });
        Self { http: proxy.clone(), https: proxy, exceptions: Exceptions::parse(&no_proxy.into()) }
    }

    /// Replaces the exceptions, which are written as those of [`all`](Self::all).
    #[must_use]
    pub fn with_exceptions(self, no_proxy: impl Into<String>) -> Self {
        Self { exceptions: Exceptions::parse(&no_proxy.into()), ..self }
    }

    /// Returns the exceptions of the environment, for [`all`](Self::all): `no_proxy`, otherwise
    /// `NO_PROXY`.
    pub fn no_proxy_from_env() -> String {
        let variable = |name| std::env::var(name).ok().filter(|text| !text.is_empty());
        variable("no_proxy").or_else(|| variable("NO_PROXY")).unwrap_or_default()
    }

    /// Returns whether every proxy can be used.
    ///
    /// # Errors
    /// [`Kind::Proxy`], as a request would return it.
    pub fn check(&self) -> Result<(), Error> {
        let all = self.http.iter().chain(&self.https);
        all.map(Configured::address).collect::<Result<Vec<_>, _>>().map(drop)
    }

    /// Returns the URL of the proxy for TLS with this port of a host, if there is one: with its
    /// scheme and credentials, and without a path. The host is written as in a URL.
    ///
    /// # Errors
    /// [`Kind::Proxy`] if the proxy cannot be used, as a request would return it.
    pub fn url_for(&self, host: &str, port: u16) -> Result<Option<String>, Error> {
        let Some(address) = self.for_origin(true, host, port)? else { return Ok(None) };
        // It was parsed.
        let text = self.https.as_ref().and_then(|configured| configured.text.as_ref().ok());
        let text = text.map(String::as_str).unwrap_or_default();
        let (_, rest) = text.split_once("://").unwrap_or(("", text));
        let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
        let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
        let at = if user.is_empty() { "" } else { "@" };
        let (scheme, host, port) = (address.protocol.scheme(), &address.host, address.port);
        Ok(Some(format!("{scheme}://{user}{at}{host}:{port}")))
    }

    /// Returns the proxy for an origin.
    pub(super) fn for_origin(
        &self,
        https: bool,
        host: &str,
        port: u16,
    ) -> Result<Option<ProxyAddress>, Error> {
        let configured = if https { &self.https } else { &self.http };
        match configured {
            Some(configured) if !self.exceptions.contain(host, port) => {
                configured.address().map(Some)
            }
            _ => Ok(None),
        }
    }
}

impl Default for Proxy {
    fn default() -> Self {
        Self::from_env()
    }
}

/// Shows no password.
impl fmt::Debug for Proxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = |proxy: &Option<Configured>| {
            proxy.as_ref().map(|proxy| proxy.address().map(|address| address.name()))
        };
        f.debug_struct("Proxy")
            .field("http", &name(&self.http))
            .field("https", &name(&self.https))
            .field("exceptions", &self.exceptions)
            .finish()
    }
}

impl Configured {
    fn address(&self) -> Result<ProxyAddress, Error> {
        let parsed = match &self.text {
            Ok(text) => parse(text),
            Err(_) => Err(ProxyUrlError::NotText),
        };
        parsed.map_err(|error| {
            let what = match self.by {
                Some(variable) => format!("the proxy URL in {variable} {error}"),
                None => format!("the proxy URL {error}"),
            };
            Error::new(Kind::Proxy, what)
        })
    }
}

/// Parses the URL of a proxy.
fn parse(text: &str) -> Result<ProxyAddress, ProxyUrlError> {
    if text.trim().is_empty() {
        return Err(ProxyUrlError::Blank);
    }
    if let Some(letter) = text.chars().find(|letter| letter.is_whitespace() || letter.is_control())
    {
        return Err(ProxyUrlError::NotEncoded(letter));
    }
    let (protocol, rest) = match text.split_once("://") {
        Some((scheme, rest)) => (protocol(scheme)?, rest),
        None => (ProxyProtocol::Http, text),
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    if !text.contains("://") && rest[..end].ends_with(':') {
        return Err(ProxyUrlError::NoScheme);
    }
    if rest[end..].contains('@') {
        return Err(ProxyUrlError::InCredentials(rest.as_bytes()[end]));
    }
    let (user, host_and_port) = match rest[..end].rsplit_once('@') {
        Some((user, _)) if user.contains('@') => {
            return Err(ProxyUrlError::AtInCredentials);
        }
        Some((user, host)) => (Some(user), host),
        None => (None, &rest[..end]),
    };
    let (host, port) = host_and_port_of(host_and_port)?;
    let credentials = user.map(|user| {
        let (name, password) = user.split_once(':').unwrap_or((user, ""));
        [name, password].map(|part| percent_decode_str(part).collect::<Vec<u8>>())
    });
    ProxyAddress::new(protocol, host, port, credentials)
}

fn protocol(scheme: &str) -> Result<ProxyProtocol, ProxyUrlError> {
    match scheme.to_ascii_lowercase().as_str() {
        "http" => Ok(ProxyProtocol::Http),
        "https" => Ok(ProxyProtocol::Https),
        "socks5" | "socks5h" => Ok(ProxyProtocol::Socks5),
        // What stands before "://" may be a part of a password.
        other if other.contains([':', '@']) => Err(ProxyUrlError::NotUrl),
        other => Err(ProxyUrlError::Protocol(other.to_owned())),
    }
}

fn host_and_port_of(text: &str) -> Result<(String, Option<u16>), ProxyUrlError> {
    let (host, port) = match text.strip_prefix('[').map(|rest| rest.split_once(']')) {
        Some(Some((host, rest))) if rest.is_empty() || rest.starts_with(':') => {
            (&text[..host.len() + 2], rest.strip_prefix(':'))
        }
        Some(_) => return Err(ProxyUrlError::Brackets),
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        None | Some("") => None,
        // Not a sign, which parsing a number would accept.
        Some(port) => {
            match port.bytes().all(|digit| digit.is_ascii_digit()).then(|| port.parse()) {
                Some(Ok(port @ 1..)) => Some(port),
                _ => return Err(ProxyUrlError::Port),
            }
        }
    };
    if host.is_empty() {
        return Err(ProxyUrlError::NoHost);
    }
    // Internationalised names become their A-labels.
    let host = match url::Host::parse(host) {
        Ok(url::Host::Domain(name)) => name,
        Ok(url::Host::Ipv4(address)) => address.to_string(),
        Ok(url::Host::Ipv6(address)) => format!("[{address}]"),
        // A zone, which that crate does not know.
        Err(_) if host.starts_with('[') && host.contains('%') => match parse_host(host) {
            Ok(host) => host.to_string(),
            Err(error) => return Err(ProxyUrlError::Zone(error)),
        },
        Err(error) => return Err(ProxyUrlError::Host(error)),
    };
    Ok((host, port))
}

/// The hosts that are reached without a proxy.
#[derive(Clone, Debug, Default)]
struct Exceptions(Vec<Exception>);

#[derive(Clone, Debug)]
enum Exception {
    Everything,
    /// A domain with its subdomains, at this port alone if one is named.
    Domain(String, Option<u16>),
    Network(IpNet, Option<u16>),
}

impl Exceptions {
    fn parse(text: &str) -> Self {
        let words = text.split(|letter: char| letter == ',' || letter.is_whitespace());
        Self(words.filter(|word| !word.is_empty()).map(Exception::parse).collect())
    }

    /// Returns whether a host, as it is written in a URL, is one of them.
    fn contain(&self, host: &str, port: u16) -> bool {
        let name = host.strip_suffix('.').unwrap_or(host);
        let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
        let address = bare.split('%').next().and_then(|bare| bare.parse::<IpAddr>().ok());
        let address = address.map(|address| address.to_canonical());
        self.0.iter().any(|exception| match (exception, address) {
            (Exception::Everything, _) => true,
            (Exception::Network(network, at), Some(address)) => {
                network.contains(&address) && at.is_none_or(|at| at == port)
            }
            (Exception::Domain(domain, at), None) => {
                let end = name.len().checked_sub(domain.len());
                let is_within = end.is_some_and(|end| {
                    name.is_char_boundary(end)
                        && name[end..].eq_ignore_ascii_case(domain)
                        && (end == 0 || name[..end].ends_with('.'))
                });
                is_within && at.is_none_or(|at| at == port)
            }
            _ => false,
        })
    }
}

impl Exception {
    fn parse(word: &str) -> Self {
        if word == "*" {
            return Self::Everything;
        }
        let network =
            |text: &str| text.parse().ok().or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
        // An IPv6 address in brackets, before its prefix length or port.
        if let Some((address, rest)) = word.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        {
            let port = rest.strip_prefix(':').and_then(|port| port.parse().ok());
            let prefix = if port.is_some() { "" } else { rest };
            if let Some(network) = network(&format!("{address}{prefix}")) {
                return Self::Network(network, port);
            }
        }
        if let Some(network) = network(word) {
            return Self::Network(network, None);
        }
        let (host, port) = match word.rsplit_once(':').map(|(host, port)| (host, port.parse())) {
            Some((host, Ok(port))) => (host, Some(port)),
            _ => (word, None),
        };
        if let Some(network) = network(host) {
            return Self::Network(network, port);
        }
        // As in curl, a leading dot means nothing; Windows writes "*." for it.
        let domain = host.strip_prefix('*').filter(|rest| rest.starts_with('.')).unwrap_or(host);
        let domain = domain.strip_prefix('.').unwrap_or(domain);
        let domain = domain.strip_suffix('.').unwrap_or(domain);
        let domain = match url::Host::parse(domain) {
            Ok(url::Host::Domain(name)) => name,
            _ => domain.to_owned(),
        };
        Self::Domain(domain, port)
    }
}

#[cfg(test)]
#[path = "proxies/tests.rs"]
mod tests;
