//! Header fields that depend on the version.

use http::uri::Authority;
use http::{
    HeaderValue, Request, Uri,
    header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderName, TE, TRANSFER_ENCODING, UPGRADE},
};
use http_body::Body as _;

use crate::{Body, Error, Kind};

/// Connection-specific fields, which HTTP/2 and 3 forbid (RFC 9113 §8.2.2, RFC 9114 §4.2).
const CONNECTION_FIELDS: [HeaderName; 5] = [
    CONNECTION,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// The fields that the caller does not want to be added, as an extension of a request.
#[derive(Clone, Debug, Default)]
pub(crate) struct Omitted(pub(crate) Vec<HeaderName>);

impl Omitted {
    /// Returns whether a field must not be added to this request.
    fn has<B>(request: &Request<B>, name: &HeaderName) -> bool {
        request.extensions().get::<Self>().is_some_and(|omitted| omitted.0.contains(name))
    }
}

/// Changes the fields to those of HTTP/2 and 3: connection-specific ones are not allowed there, and
/// `Host` is the authority (RFC 9113 §8.3.1, RFC 9114 §4.3.1).
pub(super) fn multiplex(request: &mut Request<Body>) -> Result<(), Error> {
    let headers = request.headers_mut();
    for name in &CONNECTION_FIELDS {
        headers.remove(name);
    }
    if headers.get(TE).is_some_and(|value| value != "trailers") {
        headers.remove(TE);
    }
    let Some(host) = headers.remove(HOST) else { return Ok(()) };
    // CONNECT has no scheme, and its authority is its target, not what the caller calls the host.
    if request.uri().scheme().is_none() {
        return Ok(());
    }
    let refuse = || Error::new(Kind::Request, format!("{host:?} cannot be sent as Host"));
    let mut parts = std::mem::take(request.uri_mut()).into_parts();
    parts.authority = Some(Authority::try_from(host.as_bytes()).map_err(|_| refuse())?);
    *request.uri_mut() = Uri::from_parts(parts).map_err(|_| refuse())?;
    Ok(())
}

/// Sets `Host` from the URI unless the caller has set one, or wants none.
pub(super) fn set_host(request: &mut Request<Body>) {
    if request.headers().contains_key(HOST) || Omitted::has(request, &HOST) {
        return;
    }
    if let Some(value) = request.uri().authority().and_then(|authority| {
        // User information goes into the Authorization field, never into Host.
        let host = authority.as_str().rsplit('@').next().unwrap_or_default();
        HeaderValue::from_str(host).ok()
    }) {
        request.headers_mut().insert(HOST, value);
    }
}

/// Sets `Content-Length` if the length of the body is known and meaningful (RFC 9110 §8.6).
pub(super) fn set_content_length(request: &mut Request<Body>) {
    let length = request.body().size_hint().exact();
    let is_meaningful = |length: u64| length > 0 || is_body_expected(request.method());
    if let Some(length) = length.filter(|length| is_meaningful(*length))
        && !request.headers().contains_key(CONTENT_LENGTH)
        && !request.headers().contains_key(TRANSFER_ENCODING)
        && !Omitted::has(request, &CONTENT_LENGTH)
    {
        request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
}

fn is_body_expected(method: &http::Method) -> bool {
    matches!(method.as_str(), "POST" | "PUT" | "PATCH" | "QUERY")
}

/// Returns the `origin-form` (RFC 9112 §3.2.1): only path and query.
pub(super) fn origin_form(uri: &Uri) -> Uri {
    uri.path_and_query().map_or_else(|| Uri::from_static("/"), |path| path.clone().into())
}
