//! Another proxy, through which destinations are reached by CONNECT or CONNECT-UDP (RFC 9298). An `https` proxy is
//! used over whichever of HTTP/3 (RFC 9114 §4.4), HTTP/2 (RFC 9113 §8.5) and HTTP/1.1 (RFC 9110 §9.3.6) works
//! best, an `http` proxy over unencrypted HTTP/1.1.

pub mod lanes;

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bytes::Bytes;
use eyas::printable::printable;
use eyas::race::candidate::{Security, Transport};
use eyas::race::policy::Policy;
use eyas::race::target::{Target, TargetError, TargetHost, parse_port};
use eyas::zone::{in_url, parse_host};
use eyas::{Endpoint, RaceRecording};
use eyas_http::{EarlyAnswer, InformationalLimit, Versions};
use http::header::{CONNECTION, HOST, PROXY_AUTHORIZATION, UPGRADE};
use http::{HeaderValue, Method, Request, Response, StatusCode, Uri};
use http_body_util::{BodyExt as _, Empty};
use hyper::client::conn::http1::Builder;
use hyper_util::rt::TokioIo;
use percent_encoding::percent_decode_str;
use thiserror::Error;
use tokio::time::timeout;

use crate::connect_udp::{self, CAPSULE_PROTOCOL, PROTOCOL};
use crate::destination::{Destination, RefusedRequest, RequestRefusal};
use crate::destination_stream::DestinationStream;
use crate::handshake::MAX_HEAD;
use crate::proxy_status::ErrorType;

/// The limit on the text that is read of a refusal, in bytes.
const MAX_TEXT: usize = 512;
/// The time for the text of a refusal to arrive after its head.
const TEXT_TIME: Duration = Duration::from_secs(1);

/// The kind of tunnel that is requested from another proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TunnelKind {
    /// A byte stream to a destination, by CONNECT.
    Bytes,
    /// Datagrams to a destination, by CONNECT-UDP.
    Datagrams,
}

impl TunnelKind {
    const fn name(self) -> &'static str {
        match self {
            Self::Bytes => "CONNECT",
            Self::Datagrams => "CONNECT-UDP",
        }
    }

    /// Returns whether a response over HTTP/1.1 grants it.
    fn is_granted<B>(self, response: &Response<B>) -> bool {
        match self {
            Self::Bytes => response.status().is_success(),
            Self::Datagrams => {
                response.status() == StatusCode::SWITCHING_PROTOCOLS
                    && connect_udp::asks_for_udp(response.headers())
            }
        }
    }
}

/// An upstream proxy and the credentials for it.
#[derive(Clone)]
pub struct UpstreamProxy {
    host: TargetHost,
    /// Whether its name is absolute.
    absolute: bool,
    port: u16,
    is_secure: bool,
    /// The HTTP versions over TLS.
    versions: Versions,
    /// Whether SCTP takes part in the race.
    sctp: bool,
    /// The credentials, which are marked as sensitive.
    authorization: Option<HeaderValue>,
}

/// The error of parsing a [`UpstreamProxy`].
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ViaError {
    /// It is not a URL.
    #[error("it is not a URL; one is https://NAME:PASSWORD@HOST:PORT")]
    Url,
    /// Its host is none that this host can reach.
    #[error(transparent)]
    Host(TargetError),
    /// Its scheme is not supported.
    #[error("{0}:// is not supported for other proxies: use http:// or https://")]
    Scheme(String),
    /// It has a path or a query.
    #[error("it contains more than a scheme, a host and a port")]
    Path,
}

impl UpstreamProxy {
    /// Parses a URL such as `https://NAME:PASSWORD@proxy.example:8443`, in which reserved characters of name and
    /// password are percent-encoded (RFC 3986 §2.1).
    ///
    /// # Errors
    /// If it is not the URL of a supported proxy.
    pub fn parse(url: &str) -> Result<Self, ViaError> {
        let (url, zoned) = without_zone(url)?;
        let uri: Uri = url.parse().map_err(|_| ViaError::Url)?;
        let is_secure = match uri.scheme_str() {
            Some("http") => false,
            Some("https") => true,
            Some(other) => return Err(ViaError::Scheme(other.to_owned())),
            None => return Err(ViaError::Url),
        };
        if uri.path_and_query().is_some_and(|path| path != "/") {
            return Err(ViaError::Path);
        }
        let authority = uri.authority().ok_or(ViaError::Url)?;
        let absolute = authority.host().ends_with('.');
        let host = match zoned {
            Some(host) => host,
            None => TargetHost::parse(authority.host()).map_err(|_| ViaError::Url)?,
        };
        let (user, place) = match authority.as_str().rsplit_once('@') {
            Some((user, place)) => (Some(user), place),
            None => (None, authority.as_str()),
        };
        let port = match place.strip_prefix(authority.host()).and_then(|it| it.strip_prefix(':')) {
            Some(port) => parse_port(port).filter(|port| *port != 0).ok_or(ViaError::Url)?,
            None if is_secure => 443,
            None => 80,
        };
        let authorization = user.map(authorization).transpose()?;
        let (versions, sctp) = (Versions::ALL, false);
        Ok(Self { host, absolute, port, is_secure, versions, sctp, authorization })
    }

    /// Sets the HTTP versions for an `https` proxy. All are allowed by default.
    #[must_use]
    pub fn versions(mut self, versions: Versions) -> Self {
        self.versions = versions;
        self
    }

    /// Also tries to reach an `https` proxy over SCTP: HTTP/1.1, with an association for each destination.
    #[must_use]
    pub fn sctp(mut self, sctp: bool) -> Self {
        self.sctp = sctp;
        self
    }

    fn destination(&self) -> Destination {
        Destination { host: self.host.clone(), absolute: self.absolute, port: self.port }
    }

    /// Returns the authority for requests to the proxy, without a default port (RFC 9110 §4.2.3), and without a zone,
    /// which means nothing to it.
    fn authority(&self) -> String {
        let mut place = self.destination();
        if let TargetHost::Literal(_, zone) = &mut place.host {
            *zone = 0;
        }
        match (self.is_secure, self.port) {
            (true, 443) | (false, 80) => place.given_host(),
            _ => place.to_string(),
        }
    }

    fn origin(&self) -> String {
        let scheme = if self.is_secure { "https" } else { "http" };
        format!("{scheme}://{}", self.authority())
    }

    /// Reaches a destination through an `http` proxy.
    async fn reach(
        &self,
        endpoint: &Endpoint,
        policy: Policy,
        (request, (kind, to)): (Request<()>, (TunnelKind, &Destination)),
        race: &mut Option<RaceRecording>,
    ) -> Result<DestinationStream, RefusedRequest> {
        let deadline = policy.deadline;
        let transports: Vec<Transport> = policy.transports.clone();
        let target = Target::plain(self.host.clone(), self.port, transports, Security::None);
        let target = Target { absolute: self.absolute, ..target };
        let mut initiation = endpoint.preconnection(target).policy(policy).initiate();
        *race = Some(initiation.recording());
        let unreachable = |error| {
            RefusedRequest::from_race(&error, format!("cannot reach the proxy {self}: {error}"))
        };
        let connection = initiation.usable().await.map_err(unreachable)?;
        initiation.detach();
        let info = connection.shared_info();
        let gone = |_| {
            let text = format!("the proxy {self} closed the connection at once");
            RefusedRequest::new(ErrorType::ConnectionTerminated, RequestRefusal::Failed(text))
        };
        let stream = connection.into_stream().map_err(gone)?;
        let upgrading = timeout(deadline, self.upgrade(stream, request, (kind, to))).await;
        let late = |_| {
            let text =
                format!("the proxy {self} did not answer the {} in {deadline:?}", kind.name());
            RefusedRequest::new(ErrorType::ConnectionReadTimeout, RequestRefusal::TimedOut(text))
        };
        let stream = Box::new(TokioIo::new(upgrading.map_err(late)??));
        Ok(DestinationStream::Via { stream, info, datagrams: None, _permit: None })
    }

    async fn upgrade(
        &self,
        stream: eyas::ByteStream,
        request: Request<()>,
        (kind, to): (TunnelKind, &Destination),
    ) -> Result<hyper::upgrade::Upgraded, RefusedRequest> {
        let broke = |error: hyper::Error| {
            let error_type = match error.is_parse() {
                true => ErrorType::HttpProtocolError,
                false => ErrorType::ConnectionTerminated,
            };
            let text = format!("the proxy {self} does not answer: {error}");
            RefusedRequest::new(error_type, RequestRefusal::Failed(text))
        };
        let mut builder = Builder::new();
        builder.max_buf_size(MAX_HEAD);
        let stream = EarlyAnswer::new(stream);
        let input_end = stream.input_end();
        let handshake = builder.handshake(TokioIo::new(stream));
        let (mut sender, connection) = handshake.await.map_err(broke)?;
        // It ends with the upgraded stream, and the request gets its error.
        tokio::spawn(async move { drop(connection.with_upgrades().await) });
        let mut request = request.map(|()| Empty::<Bytes>::new());
        let host = match kind {
            TunnelKind::Bytes => to.to_string(),
            TunnelKind::Datagrams => self.authority(),
        };
        let host = HeaderValue::try_from(host);
        let host = host.map_err(|error| RequestRefusal::Malformed(error.to_string()))?;
        request.headers_mut().insert(HOST, host);
        if kind == TunnelKind::Datagrams {
            let path = request.uri().path_and_query().cloned();
            *request.uri_mut() = path.map_or_else(Uri::default, Uri::from);
            let fields = request.headers_mut();
            fields.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            fields.insert(UPGRADE, HeaderValue::from_static(PROTOCOL));
        }
        let interims = Arc::new(InformationalLimit::ending(&input_end));
        let counted = Arc::clone(&interims);
        hyper::ext::on_informational(&mut request, move |response| {
            // The exchange ends with the error.
            let _ = counted.count(response.headers());
        });
        let too_many = |too_many| {
            let text = format!("the proxy {self} does not answer: {too_many}");
            RefusedRequest::new(ErrorType::HttpProtocolError, RequestRefusal::Failed(text))
        };
        let response = interims.apply(sender.send_request(request)).await;
        let mut response = response.map_err(too_many)?.map_err(broke)?;
        if !kind.is_granted(&response) {
            let text = timeout(TEXT_TIME, response.body_mut().frame()).await.ok().flatten();
            let text = text.and_then(Result::ok).and_then(|frame| frame.into_data().ok());
            let text = text.unwrap_or_default();
            let text = &text[..text.len().min(MAX_TEXT)];
            return Err(self.refusal(response.status(), (kind, to), text));
        }
        hyper::upgrade::on(&mut response).await.map_err(broke)
    }

    /// Returns the request for a destination. For datagrams its target is this proxy (RFC 9298 §3); the form
    /// depends on the HTTP version.
    fn request(
        &self,
        (kind, to): (TunnelKind, &Destination),
    ) -> Result<Request<()>, RequestRefusal> {
        let mut request = match kind {
            TunnelKind::Bytes => Request::builder().method(Method::CONNECT).uri(to.to_string()),
            TunnelKind::Datagrams => {
                let (field, value) = CAPSULE_PROTOCOL;
                let uri = format!("{}{}", self.origin(), connect_udp::path(to));
                Request::builder().method(Method::GET).uri(uri).header(field, value)
            }
        };
        if let Some(authorization) = &self.authorization {
            request = request.header(PROXY_AUTHORIZATION, authorization);
        }
        request.body(()).map_err(|error| RequestRefusal::Malformed(error.to_string()))
    }

    /// Returns the meaning of a status, with the first line of the response's body.
    fn refusal(
        &self,
        status: StatusCode,
        (kind, to): (TunnelKind, &Destination),
        body: &[u8],
    ) -> RefusedRequest {
        let mut text =
            format!("the proxy {self} answered the {} to {to} with {status}", kind.name());
        let line =
            String::from_utf8_lossy(body.split(|byte| *byte == b'\n').next().unwrap_or(body));
        // The text may be printed to a terminal.
        let line = printable(line.trim());
        // Many proxies answer with a page for browsers.
        if !line.is_empty() && !line.starts_with('<') {
            text.push_str(": ");
            text.push_str(&line);
        }
        match status {
            StatusCode::PROXY_AUTHENTICATION_REQUIRED => {
                let next = match &self.authorization {
                    None => "put NAME:PASSWORD@ before its host",
                    Some(_) => "it does not accept this NAME:PASSWORD",
                };
                let text = format!("{text}: {next}");
                RefusedRequest::new(
                    ErrorType::ProxyConfigurationError,
                    RequestRefusal::Failed(text),
                )
            }
            StatusCode::FORBIDDEN => RequestRefusal::NotAllowed(text).into(),
            StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::UPGRADE_REQUIRED
            | StatusCode::NOT_IMPLEMENTED
                if kind == TunnelKind::Datagrams =>
            {
                RequestRefusal::Unsupported(format!("{text}: it may not support UDP (RFC 9298)"))
                    .into()
            }
            StatusCode::GATEWAY_TIMEOUT => RequestRefusal::TimedOut(text).into(),
            StatusCode::BAD_GATEWAY | StatusCode::SERVICE_UNAVAILABLE => {
                RequestRefusal::HostUnreachable(text).into()
            }
            _ => {
                RefusedRequest::new(ErrorType::DestinationUnavailable, RequestRefusal::Failed(text))
            }
        }
    }
}

/// Returns Basic credentials (RFC 7617) from the part of a URL before its host.
fn authorization(user: &str) -> Result<HeaderValue, ViaError> {
    let (name, password) = user.split_once(':').unwrap_or((user, ""));
    let mut pair: Vec<u8> = percent_decode_str(name).collect();
    pair.push(b':');
    pair.extend(percent_decode_str(password));
    let value = format!("Basic {}", BASE64_STANDARD.encode(pair));
    let mut value = HeaderValue::try_from(value).map_err(|_| ViaError::Url)?;
    value.set_sensitive(true);
    Ok(value)
}

impl fmt::Display for UpstreamProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = if self.is_secure { "https" } else { "http" };
        write!(f, "{scheme}://{}", self.destination())
    }
}

impl fmt::Debug for UpstreamProxy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "UpstreamProxy({self})")
    }
}

/// Takes the zone of a link-local address out of a URL, for a parser that knows none (RFC 6874), and returns the host
/// that has it.
fn without_zone(url: &str) -> Result<(Cow<'_, str>, Option<TargetHost>), ViaError> {
    let authority = url.find("://").map_or(0, |at| at + 3);
    let Some(at) = in_url(url, authority) else { return Ok((url.into(), None)) };
    let host = parse_host(&url[at.clone()]).map_err(ViaError::Host)?;
    let address = match host {
        TargetHost::Literal(ip, _) => TargetHost::Literal(ip, 0),
        TargetHost::Name(_) => return Err(ViaError::Url),
    };
    Ok((format!("{}{address}{}", &url[..at.start], &url[at.end..]).into(), Some(host)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_names_a_proxy_and_its_credentials() {
        let via =
            UpstreamProxy::parse("https://ada:love%3Alace@proxy.example:8443").expect("a proxy");
        assert_eq!((via.to_string().as_str(), via.is_secure), ("https://proxy.example:8443", true));
        let field = via.authorization.as_ref().expect("credentials");
        assert_eq!(field, &format!("Basic {}", BASE64_STANDARD.encode("ada:love:lace")));
        assert!(!format!("{via:?} {field:?}").contains("QWRh"), "{via:?} {field:?}");
        for (url, expected) in [
            ("http://a", "http://a:80"),
            ("https://a/", "https://a:443"),
            ("http://[::1]:7", "http://[::1]:7"),
        ] {
            assert_eq!(UpstreamProxy::parse(url).expect(url).to_string(), expected);
        }
    }

    //= rfc9297 §3.4
    //# `Capsule-Protocol: ?1` on requests
    #[test]
    fn a_request_for_datagrams_names_the_destination_in_its_path() {
        let to = Destination::parse("2001:db8::1", 53).expect("an address");
        for (url, origin) in [
            ("https://a.test", "https://a.test"),
            ("http://a.test:443", "http://a.test:443"),
            ("https://[::1]:7", "https://[::1]:7"),
        ] {
            let via = UpstreamProxy::parse(url).expect("a proxy");
            let request = via.request((TunnelKind::Datagrams, &to)).expect("a request");
            let path = "/.well-known/masque/udp/2001%3Adb8%3A%3A1/53/";
            assert_eq!(request.uri().to_string(), format!("{origin}{path}"));
            assert_eq!(request.headers()["capsule-protocol"], "?1");
        }
    }

    #[test]
    fn a_zone_selects_the_interface_and_is_not_sent() {
        for (url, shown, authority) in [
            ("http://[fe80::1%25lo]", "http://[fe80::1%1]:80", "[fe80::1]"),
            ("https://a%40b:c@[fe80::1%lo]:8443/", "https://[fe80::1%1]:8443", "[fe80::1]:8443"),
            ("http://[fe80::1%1]:81", "http://[fe80::1%1]:81", "[fe80::1]:81"),
            ("https://a.test.", "https://a.test.:443", "a.test."),
        ] {
            let via = UpstreamProxy::parse(url).expect(url);
            assert_eq!((via.to_string().as_str(), via.authority().as_str()), (shown, authority));
            assert_eq!(via.authorization.is_some(), url.contains("@["), "{url}");
        }
        let error = UpstreamProxy::parse("http://[fe80::1%25nosuch0]").expect_err("there is none");
        assert_eq!(error, ViaError::Host(TargetError::Interface("nosuch0".to_owned())));
    }

    #[test]
    fn an_unusable_proxy_is_refused() {
        for (url, why) in [
            ("proxy.example", ViaError::Url),
            ("http://", ViaError::Url),
            ("http://a:0", ViaError::Url),
            ("http://a:99999", ViaError::Url),
            ("socks5://a", ViaError::Scheme("socks5".to_owned())),
            ("http://a/path", ViaError::Path),
        ] {
            assert_eq!(UpstreamProxy::parse(url).expect_err(url), why, "{url}");
        }
    }
}
