//! WebSockets (RFC 6455): the request for one, and whether the upstream accepted it.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue, Method, Version, header, request};
use sha1::{Digest as _, Sha1};

use crate::fields;

/// RFC 6455 §1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Returns whether an HTTP/1.1 request is for a WebSocket.
pub(crate) fn is_requested(head: &request::Parts) -> bool {
    let headers = &head.headers;
    let mut protocols = fields::list_elements(headers, &header::UPGRADE);
    head.version == Version::HTTP_11
        && head.method == Method::GET
        && protocols.next().is_some_and(|name| name.eq_ignore_ascii_case("websocket"))
        && protocols.next().is_none()
        && fields::list_contains(headers, &header::CONNECTION, "upgrade")
        && headers.get_all(header::SEC_WEBSOCKET_KEY).iter().count() == 1
        && has_no_body(headers)
}

/// Some embedded clients say `Content-Length: 0`, which is no body either.
fn has_no_body(headers: &HeaderMap) -> bool {
    let is_zero = |value: &HeaderValue| {
        !value.is_empty() && value.as_bytes().iter().all(|digit| *digit == b'0')
    };
    headers.get_all(header::CONTENT_LENGTH).iter().all(is_zero)
        && !headers.contains_key(header::TRANSFER_ENCODING)
}

/// Adds the fields that request a WebSocket.
pub(crate) fn request_upgrade(headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
}

/// Returns whether a request has these fields.
pub(crate) fn is_upgrade(headers: &HeaderMap) -> bool {
    headers.get(header::UPGRADE).is_some_and(|protocol| protocol == "websocket")
}

/// Removes the fields that extended CONNECT does without (RFC 8441 §5).
pub(crate) fn to_extended_connect(headers: &mut HeaderMap) {
    for name in [header::CONNECTION, header::UPGRADE, header::SEC_WEBSOCKET_KEY] {
        headers.remove(name);
    }
}

/// Adds the fields with which a server would have accepted a request with these fields over HTTP/1.1.
pub(crate) fn to_accepted(request: &HeaderMap, headers: &mut HeaderMap) {
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    let accept = request.get(header::SEC_WEBSOCKET_KEY).map(accept);
    if let Some(Ok(accept)) = accept.map(HeaderValue::try_from) {
        headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    }
}

/// Returns the proof that a server has understood a request with this key (RFC 6455 §4.2.2).
fn accept(key: &HeaderValue) -> String {
    let hash = Sha1::new().chain_update(key.as_bytes()).chain_update(GUID).finalize();
    STANDARD.encode(hash)
}

/// Returns a key, since clients over HTTP/2 and HTTP/3 have none (RFC 8441 §5), or `None` without randomness.
pub(crate) fn new_key() -> Option<HeaderValue> {
    let mut nonce = [0; 16];
    let random = eyas::rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut nonce).ok()?;
    HeaderValue::try_from(STANDARD.encode(nonce)).ok()
}

/// Returns whether a response with 101 accepts the request with this key (RFC 6455 §4.1).
pub(crate) fn is_accepted(key: Option<&HeaderValue>, headers: &HeaderMap) -> bool {
    let Some(key) = key else { return false };
    let given = headers.get(header::SEC_WEBSOCKET_ACCEPT);
    fields::list_contains(headers, &header::UPGRADE, "websocket")
        && given.is_some_and(|given| given.as_bytes() == accept(key).as_bytes())
}

#[cfg(test)]
mod tests {
    use http::Request;

    use super::*;

    #[test]
    fn the_handshake_matches_the_example_of_the_rfc() {
        let key = HeaderValue::from_static("dGhlIHNhbXBsZSBub25jZQ==");
        let mut headers = HeaderMap::new();
        headers.insert("upgrade", HeaderValue::from_static("WebSocket"));
        let accept = HeaderValue::from_static("s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
        headers.insert("sec-websocket-accept", accept);
        assert!(is_accepted(Some(&key), &headers));
        assert!(!is_accepted(Some(&HeaderValue::from_static("other")), &headers));
        headers.remove("upgrade");
        assert!(!is_accepted(Some(&key), &headers));
    }

    #[test]
    fn a_handshake_has_no_body() {
        let is_websocket = |field: &str, value: &str| {
            let request = Request::get("/").header("upgrade", "websocket");
            let request = request.header("connection", "upgrade").header("sec-websocket-key", "x");
            is_requested(&request.header(field, value).body(()).unwrap().into_parts().0)
        };
        assert!(is_websocket("content-length", "0") && is_websocket("content-length", "00"));
        assert!(!is_websocket("content-length", "1") && !is_websocket("content-length", ""));
        assert!(!is_websocket("transfer-encoding", "chunked"));
    }

    #[test]
    fn other_upgrades_are_not_websockets() {
        let is_websocket = |upgrade: &str, connection: &str, method: &str| {
            let request = Request::builder().method(method).header("upgrade", upgrade);
            let request = request.header("connection", connection).header("sec-websocket-key", "x");
            is_requested(&request.body(()).unwrap().into_parts().0)
        };
        assert!(is_websocket("websocket", "keep-alive, Upgrade", "GET"));
        assert!(!is_websocket("h2c", "upgrade", "GET"));
        assert!(!is_websocket("websocket, h2c", "upgrade", "GET"));
        assert!(!is_websocket("websocket", "close", "GET"));
        assert!(!is_websocket("websocket", "upgrade", "POST"));
    }
}
