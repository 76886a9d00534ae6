//! The `Authorization` field of a request.

use base64::{Engine as _, prelude::BASE64_STANDARD};
use http::HeaderValue;

/// Returns `Basic` credentials (RFC 7617); `None` if the name contains a colon, which would end it
/// (§2).
pub(super) fn basic(name: &[u8], password: &[u8]) -> Option<HeaderValue> {
    if name.contains(&b':') {
        return None;
    }
    let pair = [name, b":", password].concat();
    sensitive(format!("Basic {}", BASE64_STANDARD.encode(pair)))
}

/// Returns a `Bearer` token (RFC 6750 §2.1); `None` if it is not valid in a header field.
pub(super) fn bearer(token: &str) -> Option<HeaderValue> {
    sensitive(format!("Bearer {token}"))
}

/// Marks the value as sensitive, so that it appears in neither logs nor HPACK tables.
fn sensitive(text: String) -> Option<HeaderValue> {
    let mut value = HeaderValue::try_from(text).ok()?;
    value.set_sensitive(true);
    Some(value)
}
