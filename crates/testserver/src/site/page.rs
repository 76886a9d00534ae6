//! The page at `/`, which shows the protocol that it was loaded over.

use http::{HeaderValue, StatusCode, Version, header};

use super::{
    SiteClient,
    reply::{self, SiteReply},
};

const TEMPLATE: &str = include_str!("page.html");

/// Returns the page, which is self-contained and has no scripts.
pub(super) fn respond(client: &SiteClient, version: Version) -> SiteReply {
    let (protocol, carrier) = match (version, client.peer.secure) {
        (Version::HTTP_3, _) => ("HTTP/3", "QUIC, with TLS 1.3 inside"),
        (Version::HTTP_2, true) => ("HTTP/2", "TCP and TLS"),
        (Version::HTTP_2, false) => ("HTTP/2", "TCP, in clear text"),
        (Version::HTTP_10, true) => ("HTTP/1.0", "TCP and TLS"),
        (Version::HTTP_10, false) => ("HTTP/1.0", "TCP, in clear text"),
        (_, true) => ("HTTP/1.1", "TCP and TLS"),
        (_, false) => ("HTTP/1.1", "TCP, in clear text"),
    };
    let hint = match (version, &client.allowance.alt_svc) {
        (Version::HTTP_3, _) => "UDP gets through: nothing faster is available here.",
        (_, Some(field)) if field.as_bytes().windows(3).any(|three| three == b"h3=") => {
            "This server also supports HTTP/3 and has announced it with Alt-Svc. Load the page again: a \
             browser that trusts the certificate may then use QUIC."
        }
        _ => "This server does not announce HTTP/3.",
    };
    let class = protocol.replace(['/', '.'], "-").to_ascii_lowercase();
    let html = TEMPLATE
        .replace("{{protocol}}", protocol)
        .replace("{{class}}", &class)
        .replace("{{carrier}}", carrier)
        .replace("{{hint}}", hint)
        .replace("{{remote}}", &client.peer.remote.to_string());
    let mut reply = reply::typed(StatusCode::OK, "text/html; charset=utf-8", html);
    // A cached page would name a protocol used earlier.
    reply.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}
