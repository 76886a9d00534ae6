//! What of a request is refused before the upstream hears of it.
//!
//! A request that two programs could read in two ways is answered 400: whoever is in the middle must
//! not choose (RFC 9112 §11). Much of it the parsers of the three versions refuse already; what they
//! let through for the sake of old clients, or because it is harmless where it ends, is refused here,
//! whatever the version.

use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header, request};

use super::fields;

/// Why a request is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Objection {
    pub(super) status: StatusCode,
    pub(super) text: &'static str,
}

/// A request as it is understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Ask {
    /// Path and query, as they came.
    pub(super) target: String,
    /// The host that is asked, with its port; none in HTTP/1.0 without `Host`.
    pub(super) host: Option<HeaderValue>,
    /// How the end of its body is known.
    pub(super) framing: Framing,
    /// Whether the client waits for 100 Continue before it sends its body.
    pub(super) expects_continue: bool,
    /// Whether the client reads trailers.
    pub(super) takes_trailers: bool,
}

/// How the end of a body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Framing {
    /// It has this many bytes.
    Length(u64),
    /// It ends when it ends: chunked, or by the end of its stream.
    Open,
    /// HTTP/1 without a field about it: there is none.
    Nothing,
}

const fn bad(text: &'static str) -> Objection {
    Objection { status: StatusCode::BAD_REQUEST, text }
}

const fn refused(status: StatusCode, text: &'static str) -> Objection {
    Objection { status, text }
}

/// Reads the head of a request strictly. `is_tunnel` says that a CONNECT is one with a protocol.
pub(super) fn read(head: &request::Parts, is_tunnel: bool) -> Result<Ask, Objection> {
    match head.method {
        Method::CONNECT if !is_tunnel => {
            return Err(refused(StatusCode::NOT_IMPLEMENTED, "Tunnels are not supported."));
        }
        // It would show the fields that were added on the way (RFC 9110 §9.3.8).
        Method::TRACE => {
            return Err(refused(StatusCode::METHOD_NOT_ALLOWED, "TRACE is not supported."));
        }
        _ => {}
    }
    let is_http1 = matches!(head.version, Version::HTTP_10 | Version::HTTP_11);
    check_values(&head.headers)?;
    check_hops(&head.headers, is_http1)?;
    if is_tunnel && head.headers.contains_key(header::CONTENT_LENGTH) {
        return Err(bad("A tunnel must not have a Content-Length."));
    }
    Ok(Ask {
        target: target(head)?,
        host: host(head, is_http1)?,
        framing: framing(head, is_http1)?,
        expects_continue: !is_tunnel && expects_continue(head)?,
        takes_trailers: fields::lists(&head.headers, &header::TE, "trailers"),
    })
}

/// RFC 9113 §8.2.1, RFC 9114 §4.2: HTTP/1 would cut this space off.
fn check_values(headers: &HeaderMap) -> Result<(), Objection> {
    let is_space = |byte: Option<&u8>| matches!(byte, Some(b' ' | b'\t'));
    let is_odd = |value: &HeaderValue| {
        let bytes = value.as_bytes();
        is_space(bytes.first()) || is_space(bytes.last())
    };
    match headers.values().any(is_odd) {
        true => Err(bad("The value of a field begins or ends with space.")),
        false => Ok(()),
    }
}

/// What is about one connection HTTP/1 alone has (RFC 9113 §8.2.2, RFC 9114 §4.2).
fn check_hops(headers: &HeaderMap, is_http1: bool) -> Result<(), Objection> {
    if headers.get_all(header::CONNECTION).iter().any(|value| value.to_str().is_err()) {
        return Err(bad("Connection lists names."));
    }
    if is_http1 {
        return Ok(());
    }
    for name in ["connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"] {
        if headers.contains_key(name) {
            return Err(bad("HTTP/2 and HTTP/3 must not have connection-specific fields."));
        }
    }
    let mut codings = headers.get_all(header::TE).iter();
    match codings.any(|value| !value.as_bytes().eq_ignore_ascii_case(b"trailers")) {
        true => Err(bad("TE says nothing but trailers in HTTP/2 and HTTP/3.")),
        false => Ok(()),
    }
}

/// Path and query (RFC 9112 §3.2.1), or `*`.
fn target(head: &request::Parts) -> Result<String, Objection> {
    const ODD: Objection = bad("The request target is not a path.");
    if let Some(scheme) = head.uri.scheme_str()
        && !matches!(scheme, "http" | "https")
    {
        return Err(bad("Only http and https are supported."));
    }
    let text = match head.uri.path_and_query() {
        Some(text) if !text.as_str().is_empty() => text.as_str(),
        // An absolute form without a path, or extended CONNECT without one.
        _ if head.uri.authority().is_some() && head.method != Method::CONNECT => "/",
        _ => return Err(ODD),
    };
    // The parser cuts a fragment off, lets others through that no URL has, and knows `*`.
    if text == "*" && head.method == Method::OPTIONS {
        return Ok(text.to_owned());
    }
    let is_plain = |byte: u8| byte.is_ascii_graphic() && byte != b'#';
    match text.starts_with('/') && text.bytes().all(is_plain) {
        true => Ok(text.to_owned()),
        false => Err(ODD),
    }
}

/// The host that is asked (RFC 9112 §3.2, RFC 9113 §8.3.1, RFC 9114 §4.3.1).
fn host(head: &request::Parts, is_http1: bool) -> Result<Option<HeaderValue>, Objection> {
    let mut fields = head.headers.get_all(header::HOST).iter();
    let (field, another) = (fields.next(), fields.next());
    if another.is_some() {
        return Err(bad("A request must have one Host field."));
    }
    let authority = head.uri.authority().map(Authority::as_str);
    let host = match (authority, field) {
        (Some(authority), Some(field)) => {
            if !field.as_bytes().eq_ignore_ascii_case(authority.as_bytes()) {
                return Err(bad("Host and the request target name different hosts."));
            }
            field.clone()
        }
        (Some(authority), None) => {
            HeaderValue::try_from(authority).map_err(|_| bad("The host is invalid."))?
        }
        (None, Some(field)) => field.clone(),
        (None, None) if head.version == Version::HTTP_10 => return Ok(None),
        (None, None) if is_http1 => {
            return Err(bad("An HTTP/1.1 request must have one Host field."));
        }
        (None, None) => return Err(bad("The request has no host.")),
    };
    let parsed = Authority::try_from(host.as_bytes()).ok();
    let makes_sense = |authority: &Authority| {
        let (text, host) = (authority.as_str(), authority.host());
        let port_is_one = text.len() == host.len() || authority.port_u16().is_some();
        !host.is_empty() && !text.contains('@') && !text.contains(['"', '\\']) && port_is_one
    };
    match parsed.is_some_and(|authority| makes_sense(&authority)) {
        true => Ok(Some(host)),
        false => Err(bad("The host is invalid.")),
    }
}

/// RFC 9112 §6.3.
fn framing(head: &request::Parts, is_http1: bool) -> Result<Framing, Objection> {
    let length = length(&head.headers)?;
    let mut codings = head.headers.get_all(header::TRANSFER_ENCODING).iter();
    let (coding, another) = (codings.next(), codings.next());
    match (coding, length) {
        (None, Some(length)) => Ok(Framing::Length(length)),
        (None, None) if is_http1 => Ok(Framing::Nothing),
        (None, None) => Ok(Framing::Open),
        (Some(_), Some(_)) => Err(bad("Content-Length and Transfer-Encoding contradict.")),
        (Some(_), None) if head.version == Version::HTTP_10 => {
            Err(bad("HTTP/1.0 does not support Transfer-Encoding."))
        }
        (Some(coding), None) => {
            match another.is_none() && coding.as_bytes().eq_ignore_ascii_case(b"chunked") {
                true => Ok(Framing::Open),
                false => Err(refused(
                    StatusCode::NOT_IMPLEMENTED,
                    "The only supported transfer coding is chunked.",
                )),
            }
        }
    }
}

/// One field, of digits alone (RFC 9110 §8.6).
fn length(headers: &HeaderMap) -> Result<Option<u64>, Objection> {
    const ODD: Objection = bad("Content-Length must be one number.");
    let mut values = headers.get_all(header::CONTENT_LENGTH).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() || !value.as_bytes().iter().all(u8::is_ascii_digit) {
        return Err(ODD);
    }
    let length = value.to_str().ok().and_then(|value| value.parse().ok());
    length.map(Some).ok_or(ODD)
}

fn expects_continue(head: &request::Parts) -> Result<bool, Objection> {
    let mut expectations = head.headers.get_all(header::EXPECT).iter().peekable();
    // RFC 9110 §10.1.1: HTTP/1.0 knows no interim responses.
    if expectations.peek().is_none() || head.version == Version::HTTP_10 {
        return Ok(false);
    }
    match expectations.all(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue")) {
        true => Ok(true),
        false => Err(refused(
            StatusCode::EXPECTATION_FAILED,
            "The only supported expectation is 100-continue.",
        )),
    }
}

#[cfg(test)]
mod tests;
