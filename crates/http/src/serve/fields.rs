//! The fields of responses: those that are added to all, and those that are removed.

use std::time::SystemTime;

use http::{HeaderMap, HeaderName, Method, Request, StatusCode, Version, header};

use super::{
    content::Content,
    date,
    malformed::{CONNECTION_SPECIFIC, is_multiplexed},
    reply::{Reply, failure, with_server_fields},
    shared::Shared,
};

/// The properties of a request that affect its response.
pub(super) struct RequestInfo {
    pub(super) version: Version,
    pub(super) is_head: bool,
    pub(super) is_connect: bool,
}

impl RequestInfo {
    pub(super) fn from_request<B>(shared: &Shared, request: &Request<B>) -> Self {
        Self {
            version: request.version(),
            is_head: request.method() == Method::HEAD,
            // An extended CONNECT has content (RFC 8441 §4), and with tunnels the content is what
            // passes through the tunnel.
            is_connect: request.method() == Method::CONNECT && !shared.is_tunnel(request),
        }
    }
}

/// Completes a reply so that it can be sent.
pub(super) fn complete(shared: &Shared, info: &RequestInfo, mut reply: Reply) -> Reply {
    if reply.status().is_informational() && !is_upgrade(info, reply.status()) {
        tracing::error!(status = %reply.status(), "the service returned an interim response as the final one");
        reply = with_server_fields(failure());
    }
    // The service may return an upstream's version, which the protocols must not use.
    *reply.version_mut() = Version::HTTP_11;
    drop_connection_fields(info.version, reply.headers_mut());
    let headers = reply.headers_mut();
    // hyper adds it over HTTP/1.
    if is_multiplexed(info.version)
        && !headers.contains_key(header::DATE)
        && let Some(now) = date::field(SystemTime::now())
    {
        headers.insert(header::DATE, now);
    }
    if info.version != Version::HTTP_3
        && let Some(alt_svc) = &shared.alt_svc
        && !headers.contains_key(header::ALT_SVC)
    {
        headers.insert(header::ALT_SVC, alt_svc.clone());
    }
    set_length(info, &mut reply);
    reply
}

/// Returns whether this is an upgrade, which only HTTP/1.1 has (RFC 9110 §7.8).
fn is_upgrade(info: &RequestInfo, status: StatusCode) -> bool {
    status == StatusCode::SWITCHING_PROTOCOLS && info.version == Version::HTTP_11
}

fn drop_connection_fields(version: Version, headers: &mut HeaderMap) {
    if !headers.keys().any(|name| CONNECTION_SPECIFIC.contains(name)) {
        return;
    }
    // The protocol itself decides how a message ends.
    headers.remove(header::TRANSFER_ENCODING);
    // They are an error over HTTP/2 (RFC 9113 §8.2.2) and HTTP/3 (RFC 9114 §4.2).
    if !is_multiplexed(version) {
        return;
    }
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|names| names.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    for name in named.iter().chain(&CONNECTION_SPECIFIC) {
        headers.remove(name);
    }
}

/// Sets `Content-Length` if the length of the content is known, whatever the service has set.
fn set_length(info: &RequestInfo, reply: &mut Reply) {
    let status = reply.status();
    let has_no_length = status.is_informational()
        || status == StatusCode::NO_CONTENT
        || (info.is_connect && status.is_success());
    if has_no_length || status == StatusCode::NOT_MODIFIED {
        *reply.body_mut() = Content::Empty;
        if has_no_length {
            reply.headers_mut().remove(header::CONTENT_LENGTH);
        }
        return;
    }
    let is_from_service = matches!(reply.body(), Content::Service(_));
    match reply.body().remaining() {
        // A service that omits the content states the length for GET in its own field.
        Some(0) if info.is_head && is_from_service => {}
        Some(length) => {
            reply.headers_mut().insert(header::CONTENT_LENGTH, length.into());
        }
        None => {}
    }
}

#[cfg(test)]
mod tests {
    use http::{HeaderValue, Response};

    use super::*;

    fn info(version: Version) -> RequestInfo {
        RequestInfo { version, is_head: false, is_connect: false }
    }

    #[test]
    fn hop_by_hop_fields_are_removed() {
        let fields = [
            ("connection", "close, x-hop"),
            ("keep-alive", "timeout=5"),
            ("upgrade", "h2c"),
            ("x-hop", "1"),
            ("x-end", "1"),
            ("transfer-encoding", "chunked"),
        ];
        let all: HeaderMap = fields
            .iter()
            .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_static(value)))
            .collect();
        for (version, left) in [(Version::HTTP_11, 5), (Version::HTTP_2, 1), (Version::HTTP_3, 1)] {
            let mut headers = all.clone();
            drop_connection_fields(version, &mut headers);
            assert_eq!(headers.len(), left, "{version:?}");
            assert!(headers.contains_key("x-end") && !headers.contains_key("transfer-encoding"));
        }
    }

    #[test]
    fn content_length_is_the_actual_length() {
        let reply = |status, value: &'static str| {
            let mut reply = Response::new(Content::Full("four".into()));
            *reply.status_mut() = status;
            let value = HeaderValue::from_static(value);
            reply.headers_mut().insert(header::CONTENT_LENGTH, value);
            reply
        };
        let length = |info: &RequestInfo, mut reply: Reply| {
            set_length(info, &mut reply);
            reply.headers().get(header::CONTENT_LENGTH).cloned()
        };
        let get = info(Version::HTTP_2);
        assert_eq!(length(&get, reply(StatusCode::OK, "9")).unwrap(), "4");
        assert_eq!(length(&get, reply(StatusCode::NO_CONTENT, "4")), None);
        assert_eq!(length(&get, reply(StatusCode::NOT_MODIFIED, "9")).unwrap(), "9");
        let connect = RequestInfo { is_connect: true, ..get };
        assert_eq!(length(&connect, reply(StatusCode::OK, "4")), None);
    }
}
