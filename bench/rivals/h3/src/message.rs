//! The messages that all stacks exchange.

use bytes::Bytes;
use http::{Method, Request, Response};

use crate::{Failure, Transfer};

/// The content of a small response.
pub const SMALL: &[u8] = b"hello";

/// A part of a large content.
static PIECE: [u8; 64 * 1024] = [b'x'; 64 * 1024];

/// The fields of a request beside four pseudo-header fields: 20 in all.
const REQUEST_FIELDS: [(&str, &str); 16] = [
    ("user-agent", "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"),
    ("accept", "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"),
    ("accept-language", "en-US,en;q=0.5"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("cookie", "session=0123456789abcdef0123456789abcdef; theme=dark"),
    ("referer", "https://www.example.com/articles/2026/11/index.html"),
    ("upgrade-insecure-requests", "1"),
    ("sec-fetch-dest", "document"),
    ("sec-fetch-mode", "navigate"),
    ("sec-fetch-site", "same-origin"),
    ("sec-fetch-user", "?1"),
    ("sec-gpc", "1"),
    ("priority", "u=0, i"),
    ("te", "trailers"),
    ("if-none-match", "\"5e9f2c-1a2b-62c4f2b8a3d80\""),
    ("x-request-context", "a1b2c3d4-e5f6-47a8-9b0c-d1e2f3a4b5c6"),
];

/// The fields of a response beside `:status`: 20 in all.
const RESPONSE_FIELDS: [(&str, &str); 19] = [
    ("content-type", "text/html; charset=utf-8"),
    ("server", "example/1.29.3"),
    ("date", "Sun, 29 Nov 2026 12:00:00 GMT"),
    ("last-modified", "Sat, 28 Nov 2026 08:21:13 GMT"),
    ("etag", "\"5e9f2c-1a2b-62c4f2b8a3d80\""),
    ("cache-control", "public, max-age=3600, stale-while-revalidate=60"),
    ("vary", "accept-encoding, origin"),
    ("accept-ranges", "bytes"),
    ("age", "217"),
    ("via", "1.1 cache-fra19, 1.1 cache-ber04"),
    ("x-cache", "HIT, MISS"),
    ("x-request-id", "7f3ad9a2-5b0e-4f3e-9a9c-2d1f0e6b8c47"),
    ("strict-transport-security", "max-age=31536000; includeSubDomains; preload"),
    ("content-security-policy", "default-src 'self'; img-src * data:; frame-ancestors 'none'"),
    ("x-content-type-options", "nosniff"),
    ("x-frame-options", "DENY"),
    ("referrer-policy", "strict-origin-when-cross-origin"),
    ("permissions-policy", "geolocation=(), camera=(), microphone=()"),
    ("alt-svc", "h3=\":443\"; ma=86400"),
];

/// Returns the head of a request.
pub fn request(transfer: Transfer) -> Result<Request<()>, Failure> {
    let (method, path) = match transfer {
        Transfer::Small => (Method::GET, "articles/2026/11/a-page-of-its-own".to_owned()),
        Transfer::Down(bytes) => (Method::GET, format!("down/{bytes}")),
        Transfer::Up(_) => (Method::POST, "up".to_owned()),
    };
    let uri = format!("https://www.example.com/{path}");
    let mut request = Request::builder().method(method).uri(uri);
    for (name, value) in REQUEST_FIELDS {
        request = request.header(name, value);
    }
    Ok(request.body(())?)
}

/// Returns the head of a response, and the length of its content.
pub fn response(path: &str) -> Result<(Response<()>, u64), Failure> {
    let mut response = Response::builder();
    for (name, value) in RESPONSE_FIELDS {
        response = response.header(name, value);
    }
    let length = path.strip_prefix("/down/").map_or(Ok(SMALL.len() as u64), str::parse)?;
    Ok((response.body(())?, length))
}

/// Yields a content of this length in parts.
pub fn content(length: u64) -> impl Iterator<Item = Bytes> {
    let mut left = length;
    std::iter::from_fn(move || {
        let next = left.min(PIECE.len() as u64);
        left -= next;
        let source = if length == SMALL.len() as u64 { SMALL } else { &PIECE[..] };
        (next > 0).then(|| Bytes::from_static(&source[..next as usize]))
    })
}
