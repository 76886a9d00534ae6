//! Header fields that depend on the version.

use http::{
    HeaderMap, HeaderValue, Request, Uri,
    header::{CONNECTION, CONTENT_LENGTH, HOST, HeaderName, TE, TRANSFER_ENCODING, UPGRADE},
};
use http_body::Body as _;

use crate::Body;

/// Connection-specific fields, which HTTP/2 and 3 forbid (RFC 9113 §8.2.2, RFC 9114 §4.2).
const CONNECTION_FIELDS: [HeaderName; 5] = [
    CONNECTION,
    TRANSFER_ENCODING,
    UPGRADE,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
];

/// Removes fields that are not allowed in HTTP/2 and 3; the authority is in the URI there.
pub(super) fn strip_connection_fields(headers: &mut HeaderMap) {
    for name in &CONNECTION_FIELDS {
        headers.remove(name);
    }
    headers.remove(HOST);
    if headers.get(TE).is_some_and(|value| value != "trailers") {
        headers.remove(TE);
    }
}

/// Sets `Host` from the URI unless the caller has set one.
pub(super) fn set_host(request: &mut Request<Body>) {
    if request.headers().contains_key(HOST) {
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
    {
        request.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
}

fn is_body_expected(method: &http::Method) -> bool {
    matches!(method.as_str(), "POST" | "PUT" | "PATCH")
}

/// Returns the `origin-form` (RFC 9112 §3.2.1): only path and query.
pub(super) fn origin_form(uri: &Uri) -> Uri {
    uri.path_and_query().map_or_else(|| Uri::from_static("/"), |path| path.clone().into())
}
