//! Rejects requests before the upstream sees them.
//!
//! A request that two programs could interpret differently is answered 400, since a program in the middle must
//! not choose an interpretation (RFC 9112 §11). The parsers of the three versions already reject many of them;
//! what they accept for the sake of old clients, or because it is harmless at the final recipient, is rejected
//! here in all versions.

use eyas_http::serve::malformed::{self, Malformed};
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, StatusCode, Version, header, request};
use percent_encoding::{AsciiSet, percent_encode};

use crate::fields;

/// Why a request is rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RequestRejection {
    pub(crate) status: StatusCode,
    pub(crate) text: &'static str,
}

/// The interpretation of a valid request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ValidRequest {
    /// Path and query, unchanged.
    pub(crate) target: String,
    /// The requested host, with its port; `None` in HTTP/1.0 without `Host`.
    pub(crate) host: Option<HeaderValue>,
    /// The framing of its body.
    pub(crate) framing: BodyFraming,
    /// Whether the client waits for 100 Continue before it sends its body.
    pub(crate) expects_continue: bool,
    /// Whether the client accepts trailers.
    pub(crate) accepts_trailers: bool,
}

/// The framing of a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyFraming {
    /// It has this many bytes.
    Length(u64),
    /// Its length is not announced: it is chunked, or ends with its stream.
    Open,
    /// There is no body, as in HTTP/1 without a field about it.
    Nothing,
}

impl From<Malformed> for RequestRejection {
    fn from(malformed: Malformed) -> Self {
        bad(malformed.0)
    }
}

const fn bad(text: &'static str) -> RequestRejection {
    RequestRejection { status: StatusCode::BAD_REQUEST, text }
}

const fn refused(status: StatusCode, text: &'static str) -> RequestRejection {
    RequestRejection { status, text }
}

/// Validates the head of a request. `is_tunnel` is set for an extended CONNECT.
pub(crate) fn validate(
    head: &request::Parts,
    is_tunnel: bool,
) -> Result<ValidRequest, RequestRejection> {
    match head.method {
        Method::CONNECT if !is_tunnel => {
            return Err(refused(StatusCode::NOT_IMPLEMENTED, "Tunnels are not supported."));
        }
        // It would disclose the fields that were added on the way (RFC 9110 §9.3.8).
        Method::TRACE => {
            return Err(refused(StatusCode::METHOD_NOT_ALLOWED, "TRACE is not supported."));
        }
        _ => {}
    }
    let is_http1 = matches!(head.version, Version::HTTP_10 | Version::HTTP_11);
    check_values(&head.headers)?;
    check_hops(head)?;
    if is_tunnel && head.headers.contains_key(header::CONTENT_LENGTH) {
        return Err(bad("A tunnel must not have a Content-Length."));
    }
    Ok(ValidRequest {
        target: target(head)?,
        host: host(head, is_http1)?,
        framing: framing(head, is_http1)?,
        expects_continue: !is_tunnel && expects_continue(head)?,
        accepts_trailers: fields::list_contains(&head.headers, &header::TE, "trailers"),
    })
}

/// Rejects values with leading or trailing space (RFC 9113 §8.2.1, RFC 9114 §4.2), which HTTP/1 would remove.
fn check_values(headers: &HeaderMap) -> Result<(), RequestRejection> {
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

/// Rejects connection-specific fields in HTTP/2 and HTTP/3 (RFC 9113 §8.2.2, RFC 9114 §4.2).
fn check_hops(head: &request::Parts) -> Result<(), RequestRejection> {
    if head.headers.get_all(header::CONNECTION).iter().any(|value| value.to_str().is_err()) {
        return Err(bad("Connection must be a list of names."));
    }
    Ok(malformed::check_connection_fields(head.version, &head.headers)?)
}

/// Returns path and query (RFC 9112 §3.2.1), or `*`.
fn target(head: &request::Parts) -> Result<String, RequestRejection> {
    const INVALID: RequestRejection = bad("The request target is not a path.");
    if let Some(scheme) = head.uri.scheme_str()
        && !matches!(scheme, "http" | "https")
    {
        return Err(bad("Only http and https are supported."));
    }
    let text = match head.uri.path_and_query() {
        // RFC 9112 §3.2.1: an empty path, as in http://a?x, is sent as "/". `:path` has one (RFC 9113 §8.3.1).
        Some(text)
            if text.as_str().starts_with('?')
                && head.uri.authority().is_some()
                && !matches!(head.version, Version::HTTP_2 | Version::HTTP_3) =>
        {
            return target_text(&format!("/{}", text.as_str())).ok_or(INVALID);
        }
        Some(text) if !text.as_str().is_empty() => text.as_str(),
        // An absolute form without a path, or extended CONNECT without one.
        _ if head.uri.authority().is_some() && head.method != Method::CONNECT => "/",
        _ => return Err(INVALID),
    };
    // The parser removes a fragment, but accepts characters that are not allowed in URLs, and `*`.
    if text == "*" && head.method == Method::OPTIONS {
        return Ok(text.to_owned());
    }
    target_text(text).ok_or(INVALID)
}

/// Returns a path and query as they are forwarded: octets that are not ASCII percent-encoded, since programs
/// differ in what they do with raw ones.
fn target_text(text: &str) -> Option<String> {
    let is_sendable = |byte: u8| (byte.is_ascii_graphic() && byte != b'#') || !byte.is_ascii();
    let is_path = text.starts_with('/') && text.bytes().all(is_sendable);
    is_path.then(|| percent_encode(text.as_bytes(), &AsciiSet::EMPTY).to_string())
}

/// Returns whether the target has octets that are not ASCII, which are not allowed in URLs (RFC 3986 §2).
pub(crate) fn has_raw_octets(head: &request::Parts) -> bool {
    head.uri.path_and_query().is_some_and(|text| !text.as_str().is_ascii())
}

/// Returns the requested host (RFC 9112 §3.2, RFC 9113 §8.3.1, RFC 9114 §4.3.1).
fn host(head: &request::Parts, is_http1: bool) -> Result<Option<HeaderValue>, RequestRejection> {
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
    malformed::check_host(&host)?;
    Ok(Some(host))
}

/// Returns the framing of the body (RFC 9112 §6.3).
fn framing(head: &request::Parts, is_http1: bool) -> Result<BodyFraming, RequestRejection> {
    let length = malformed::content_length(&head.headers)?;
    let mut codings = head.headers.get_all(header::TRANSFER_ENCODING).iter();
    let (coding, another) = (codings.next(), codings.next());
    match (coding, length) {
        (None, Some(length)) => Ok(BodyFraming::Length(length)),
        (None, None) if is_http1 => Ok(BodyFraming::Nothing),
        (None, None) => Ok(BodyFraming::Open),
        (Some(_), Some(_)) => Err(bad("Content-Length and Transfer-Encoding contradict.")),
        (Some(_), None) if head.version == Version::HTTP_10 => {
            Err(bad("HTTP/1.0 does not support Transfer-Encoding."))
        }
        (Some(coding), None) => {
            match another.is_none() && coding.as_bytes().eq_ignore_ascii_case(b"chunked") {
                true => Ok(BodyFraming::Open),
                false => Err(refused(
                    StatusCode::NOT_IMPLEMENTED,
                    "The only supported transfer coding is chunked.",
                )),
            }
        }
    }
}

fn expects_continue(head: &request::Parts) -> Result<bool, RequestRejection> {
    let mut expectations = head.headers.get_all(header::EXPECT).iter().peekable();
    // RFC 9110 §10.1.1: HTTP/1.0 has no interim responses.
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
