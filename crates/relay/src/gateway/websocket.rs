//! WebSockets (RFC 6455): what is asked, and whether the upstream agreed to that.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderValue, Method, Version, header, request};
use sha1::{Digest as _, Sha1};

use super::fields;

/// RFC 6455 §1.3.
const GUID: &[u8] = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/// Whether a request of HTTP/1.1 asks for a WebSocket. No other upgrade is passed on: `h2c` would lead past
/// all that is looked at here.
pub(super) fn is_asked(head: &request::Parts) -> bool {
    let headers = &head.headers;
    let mut protocols = fields::names(headers, &header::UPGRADE);
    head.version == Version::HTTP_11
        && head.method == Method::GET
        && protocols.next().is_some_and(|name| name.eq_ignore_ascii_case("websocket"))
        && protocols.next().is_none()
        && fields::lists(headers, &header::CONNECTION, "upgrade")
        && headers.get_all(header::SEC_WEBSOCKET_KEY).iter().count() == 1
        && !headers.contains_key(header::CONTENT_LENGTH)
        && !headers.contains_key(header::TRANSFER_ENCODING)
}

/// Asks for a WebSocket.
pub(super) fn ask(headers: &mut HeaderMap) {
    headers.insert(header::CONNECTION, HeaderValue::from_static("Upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
}

/// A key for a client that has none: over HTTP/2 there are no keys (RFC 8441 §5). None without randomness.
pub(super) fn new_key() -> Option<HeaderValue> {
    let mut nonce = [0; 16];
    let random = eyas::rustls::crypto::ring::default_provider().secure_random;
    random.fill(&mut nonce).ok()?;
    HeaderValue::try_from(STANDARD.encode(nonce)).ok()
}

/// Whether an upstream that switched did so to what was asked with this key (RFC 6455 §4.1).
pub(super) fn is_agreed(key: Option<&HeaderValue>, headers: &HeaderMap) -> bool {
    let Some(key) = key else { return false };
    let hash = Sha1::new().chain_update(key.as_bytes()).chain_update(GUID).finalize();
    let accept = headers.get(header::SEC_WEBSOCKET_ACCEPT);
    fields::lists(headers, &header::UPGRADE, "websocket")
        && accept.is_some_and(|accept| accept.as_bytes() == STANDARD.encode(hash).as_bytes())
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
        assert!(is_agreed(Some(&key), &headers));
        assert!(!is_agreed(Some(&HeaderValue::from_static("other")), &headers));
        headers.remove("upgrade");
        assert!(!is_agreed(Some(&key), &headers));
    }

    #[test]
    fn other_upgrades_are_not_websockets() {
        let asked = |upgrade: &str, connection: &str, method: &str| {
            let request = Request::builder().method(method).header("upgrade", upgrade);
            let request = request.header("connection", connection).header("sec-websocket-key", "x");
            is_asked(&request.body(()).unwrap().into_parts().0)
        };
        assert!(asked("websocket", "keep-alive, Upgrade", "GET"));
        assert!(!asked("h2c", "upgrade", "GET"));
        assert!(!asked("websocket, h2c", "upgrade", "GET"));
        assert!(!asked("websocket", "close", "GET"));
        assert!(!asked("websocket", "upgrade", "POST"));
    }
}
