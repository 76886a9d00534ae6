//! HTTP/1 requests to a proxy: CONNECT (RFC 9110 §9.3.6), CONNECT-UDP (RFC 9298 §3.2), and requests with a
//! whole URL (RFC 9112 §3.2.2).
//!
//! A connection serves one request: it is forwarded with `Connection: close`, so that neither side can take
//! data after it for another request.

use std::borrow::Cow;

use ::http::HeaderValue;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::{BufMut, Bytes, BytesMut};
use eyas::race::target::parse_port;

use super::{
    AwaitingAuthentication, ClientCredentials, Destination, HandshakeProtocol, HandshakeRequest,
    MAX_HEAD, MessageRead, RefusedRequest, RequestRefusal,
};
use crate::body::BodyDelimiter;
use crate::connect_udp::{self, PROTOCOL};
use crate::proxy_status::{PROXY_STATUS, field_value};
use crate::pseudonym;

/// The limit on the header fields of one request.
const MAX_FIELDS: usize = 100;

/// Fields that concern only the connection to the proxy (RFC 9110 §7.6.1), in addition to those that
/// `Connection` names.
const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "proxy-connection",
    "keep-alive",
    "proxy-authorization",
    "proxy-authenticate",
    "te",
    "upgrade",
    "host",
];

pub(super) fn read(
    bytes: &[u8],
    requires_user: bool,
    hops: &mut Option<HeaderValue>,
) -> MessageRead {
    let Some(length) = head_length(bytes) else {
        return match bytes.len() < MAX_HEAD {
            true => MessageRead::Partial,
            false => refused(RequestRefusal::TooLong),
        };
    };
    let parsed = match parsed(&bytes[..length]) {
        Ok(parsed) => parsed,
        Err(why) => return refused(why),
    };
    *hops = parsed.hops;
    match (requires_user, parsed.credentials, parsed.request) {
        (true, None, _) => refused(RequestRefusal::NoUser),
        (true, Some(credentials), request) => MessageRead::Authenticate(
            length,
            credentials,
            AwaitingAuthentication::Http(Box::new(request)),
        ),
        (false, _, Ok((protocol, request))) => MessageRead::Request(length, protocol, request),
        (false, _, Err(why)) => refused(why),
    }
}

/// A well-formed head.
struct ParsedHead {
    credentials: Option<ClientCredentials>,
    /// The proxies that the request has passed.
    hops: Option<HeaderValue>,
    /// The request, or why it is refused to everyone.
    request: Result<(HandshakeProtocol, HandshakeRequest), RequestRefusal>,
}

fn refused(why: RequestRefusal) -> MessageRead {
    MessageRead::Refused(refusal(&RefusedRequest::from(why.clone())), why)
}

/// Returns the length of the head with its empty line, if it is complete and not too long. A line may end
/// without a CR (RFC 9112 §2.2): the head is sent on with both.
fn head_length(bytes: &[u8]) -> Option<usize> {
    let head = &bytes[..bytes.len().min(MAX_HEAD)];
    let ends = head.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1);
    let empty_line = |from: usize| match head[from..] {
        [b'\n', ..] => Some(from + 1),
        [b'\r', b'\n', ..] => Some(from + 2),
        _ => None,
    };
    ends.filter_map(empty_line).next()
}

fn parsed(head: &[u8]) -> Result<ParsedHead, RequestRefusal> {
    let mut fields = [httparse::EMPTY_HEADER; MAX_FIELDS];
    let mut parsed = httparse::Request::new(&mut fields);
    match parsed.parse(head) {
        Ok(httparse::Status::Complete(length)) if length == head.len() => {}
        Err(httparse::Error::TooManyHeaders) => return Err(RequestRefusal::TooLong),
        Ok(_) => {
            return Err(RequestRefusal::Malformed(
                "a line of its request has an invalid ending".to_owned(),
            ));
        }
        Err(cause) => {
            return Err(RequestRefusal::Malformed(format!("its request is not HTTP: {cause}")));
        }
    }
    let via = parsed.headers.iter().filter(|field| field.name.eq_ignore_ascii_case("via"));
    Ok(ParsedHead {
        credentials: credentials(only(parsed.headers, "proxy-authorization")),
        hops: pseudonym::combined(via.map(|field| field.value)),
        request: request(&parsed),
    })
}

fn request(
    parsed: &httparse::Request<'_, '_>,
) -> Result<(HandshakeProtocol, HandshakeRequest), RequestRefusal> {
    let (method, target) = (parsed.method.unwrap_or_default(), parsed.path.unwrap_or_default());
    if method == "CONNECT" {
        return Ok((
            HandshakeProtocol::Connect,
            HandshakeRequest::Connect(connect_target(target)?),
        ));
    }
    if asks_for_udp(parsed.headers) {
        if method != "GET" || body(parsed.version, parsed.headers)? != BodyDelimiter::none() {
            let why = "CONNECT-UDP requires GET without a body";
            return Err(RequestRefusal::Malformed(why.to_owned()));
        }
        let destination = connect_udp::destination(path(target))?;
        return Ok((HandshakeProtocol::ConnectUdp, HandshakeRequest::ConnectUdp(destination)));
    }
    let (destination, authority, path) = absolute(target)?;
    let body = body(parsed.version, parsed.headers)?;
    let head = rewritten(method, &path, &authority, parsed.headers);
    Ok((HandshakeProtocol::Http, HandshakeRequest::Forward { destination, head, body }))
}

/// Returns the Basic credentials (RFC 7617) of a field `Proxy-Authorization`.
pub fn credentials(field: Option<&[u8]>) -> Option<ClientCredentials> {
    let text = std::str::from_utf8(field?).ok()?;
    let (scheme, coded) = text.trim().split_once(' ')?;
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let mut name = STANDARD.decode(coded.trim()).ok()?;
    let colon = name.iter().position(|byte| *byte == b':')?;
    let password = name.split_off(colon + 1);
    name.pop();
    Some(ClientCredentials { name, password })
}

/// Parses the target of a CONNECT (RFC 9110 §9.3.6).
pub fn connect_target(target: &str) -> Result<Destination, RequestRefusal> {
    let (host, port) = target.rsplit_once(':').ok_or_else(|| no_port(target))?;
    let port = parse_port(port).ok_or_else(|| no_port(target))?;
    Destination::parse(host, port)
}

/// Returns whether the request is to upgrade to CONNECT-UDP (RFC 9110 §7.8, RFC 9298 §3.2).
fn asks_for_udp(fields: &[httparse::Header<'_>]) -> bool {
    let is = |text: &[u8], name: &str| text.trim_ascii().eq_ignore_ascii_case(name.as_bytes());
    let mut named = fields
        .iter()
        .filter(|field| field.name.eq_ignore_ascii_case("connection"))
        .flat_map(|field| field.value.split(|byte| *byte == b','));
    named.any(|name| is(name, "upgrade"))
        && only(fields, "upgrade").is_some_and(|to| is(to, PROTOCOL))
}

/// Returns the path of a target, which may be a whole URL (RFC 9112 §3.2).
fn path(target: &str) -> &str {
    let path = match target.split_once("://") {
        Some((_, rest)) if !target.starts_with('/') => {
            rest.find('/').map_or("", |start| &rest[start..])
        }
        _ => target,
    };
    path.split(['?', '#']).next().unwrap_or_default()
}

fn no_port(target: &str) -> RequestRefusal {
    RequestRefusal::Malformed(format!("CONNECT requires host:port, not {target:?}"))
}

/// Returns the destination of a URL, the authority that names it, and the path.
fn absolute(target: &str) -> Result<(Destination, String, String), RequestRefusal> {
    let Some((scheme, rest)) = target.split_once("://") else {
        let why = "this is a proxy: requests need an absolute URL, such as http://example.org/";
        return Err(RequestRefusal::Malformed(why.to_owned()));
    };
    if !scheme.eq_ignore_ascii_case("http") {
        return Err(RequestRefusal::Unsupported(format!(
            "{scheme}:// goes through a proxy by CONNECT"
        )));
    }
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let authority = authority.rsplit_once('@').map_or(authority, |(_, authority)| authority);
    let path = path.split('#').next().unwrap_or_default();
    let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
    let (host, port) = match authority.rsplit_once(':') {
        // In brackets a colon belongs to the address.
        Some((host, port)) if !port.ends_with(']') => {
            let not_a_port = || RequestRefusal::Malformed(format!("{port:?} is not a port"));
            let number = (!port.is_empty()).then(|| parse_port(port).ok_or_else(not_a_port));
            (host, number.transpose()?)
        }
        _ => (authority, None),
    };
    let to = Destination::parse(host, port.unwrap_or(80))?;
    // As it was understood, not as it was written: destination and proxy must not read it differently.
    let host = to.given_host();
    let host = without_zone(&host);
    let authority = port.map_or_else(|| host.to_string(), |port| format!("{host}:{port}"));
    Ok((to, authority, path))
}

/// Removes the zone of an address, which means something on this host only, and is not sent.
fn without_zone(authority: &str) -> Cow<'_, str> {
    match (authority.find('%'), authority.find(']')) {
        (Some(zone), Some(end)) if authority.starts_with('[') && zone < end => {
            format!("{}{}", &authority[..zone], &authority[end..]).into()
        }
        _ => authority.into(),
    }
}

/// Returns the value of a field that occurs exactly once.
fn only<'a>(fields: &[httparse::Header<'a>], name: &str) -> Option<&'a [u8]> {
    let mut found = fields.iter().filter(|field| field.name.eq_ignore_ascii_case(name));
    let value = found.next()?.value;
    found.next().is_none().then_some(value)
}

/// Returns the framing of the body (RFC 9112 §6.3). Ambiguous framing is refused (§11.2).
fn body(
    version: Option<u8>,
    fields: &[httparse::Header<'_>],
) -> Result<BodyDelimiter, RequestRefusal> {
    let values = |name: &'static str| {
        fields.iter().filter(move |field| field.name.eq_ignore_ascii_case(name)).map(|f| f.value)
    };
    let malformed = |why: &str| Err(RequestRefusal::Malformed(why.to_owned()));
    let mut codings = values("transfer-encoding");
    let mut lengths = values("content-length");
    match (codings.next(), lengths.next()) {
        (None, None) => Ok(BodyDelimiter::none()),
        (Some(_), Some(_)) => malformed("its body has a length and a transfer coding"),
        // RFC 9112 §6.1: the framing of such a message is faulty.
        (Some(_), None) if version == Some(0) => malformed("HTTP/1.0 has no transfer codings"),
        (Some(coding), None) => {
            match codings.next().is_none() && coding.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                true => Ok(BodyDelimiter::chunked()),
                false => {
                    let why = "no transfer coding but chunked is supported".to_owned();
                    Err(RequestRefusal::Unsupported(why))
                }
            }
        }
        (None, Some(length)) => {
            let text = std::str::from_utf8(length.trim_ascii()).unwrap_or_default();
            let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
            match text.parse() {
                Ok(length) if is_number && lengths.next().is_none() => {
                    Ok(BodyDelimiter::of_length(length))
                }
                _ => malformed("the length of its body is not a single number"),
            }
        }
    }
}

/// Returns the head for the destination (RFC 9112 §3.2.1, RFC 9110 §7.6.1).
fn rewritten(method: &str, path: &str, authority: &str, fields: &[httparse::Header<'_>]) -> Bytes {
    let named: Vec<String> = fields
        .iter()
        .filter(|field| field.name.eq_ignore_ascii_case("connection"))
        .flat_map(|field| field.value.split(|byte| *byte == b','))
        .map(|name| String::from_utf8_lossy(name.trim_ascii()).to_ascii_lowercase())
        // Without these the destination could not find the end of the request.
        .filter(|name| name != "content-length" && name != "transfer-encoding")
        .collect();
    let mut head = BytesMut::new();
    head.put_slice(format!("{method} {path} HTTP/1.1\r\nHost: {authority}\r\n").as_bytes());
    for field in fields {
        let name = field.name.to_ascii_lowercase();
        if HOP_BY_HOP.contains(&name.as_str()) || named.contains(&name) {
            continue;
        }
        head.put_slice(field.name.as_bytes());
        head.put_slice(b": ");
        head.put_slice(field.value);
        head.put_slice(b"\r\n");
    }
    head.put_slice(b"Connection: close\r\n\r\n");
    head.freeze()
}

/// Returns the response to a CONNECT that is granted.
pub(super) fn established() -> Bytes {
    Bytes::from_static(b"HTTP/1.1 200 Connection established\r\n\r\n")
}

/// Returns the response to a CONNECT-UDP that is granted.
pub(super) fn switching() -> Bytes {
    let (field, value) = connect_udp::CAPSULE_PROTOCOL;
    let value = value.to_str().unwrap_or_default();
    Bytes::from(format!(
        "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {PROTOCOL}\r\n\
         {field}: {value}\r\n\r\n"
    ))
}

/// Returns a response with the reason, in plain text and in `Proxy-Status`.
pub(super) fn refusal(refused: &RefusedRequest) -> Bytes {
    let ((status, reason), why) = (refused.http(), &refused.why);
    let proxy_status = field_value(refused.error, &why.to_string());
    let text = format!("eyas proxy: {why}\n");
    let challenge = match why {
        RequestRefusal::NoUser => "Proxy-Authenticate: Basic realm=\"eyas proxy\"\r\n",
        _ => "",
    };
    let retry = why.retry_after().map(|seconds| format!("Retry-After: {seconds}\r\n"));
    let retry = retry.unwrap_or_default();
    Bytes::from(format!(
        "HTTP/1.1 {status} {reason}\r\nContent-Type: text/plain; charset=utf-8\r\n\
         Content-Length: {}\r\n{PROXY_STATUS}: {proxy_status}\r\n{challenge}{retry}\
         Connection: close\r\n\r\n{text}",
        text.len()
    ))
}
