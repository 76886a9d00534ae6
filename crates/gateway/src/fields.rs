//! The fields that a gateway forwards.
//!
//! Connection-specific fields are removed (RFC 9110 §7.6.1), and so are fields that two programs could interpret
//! differently: names that applications take for other names, and fields that only the gateway may add.

use http::{HeaderMap, HeaderName, HeaderValue, header};

use crate::forwarded;

/// Fields that are removed whether or not `Connection` names them (RFC 9110 §7.6.1), with those that authenticate a
/// client to the next proxy alone (§11.7) and that of the former upgrade to HTTP/2 (RFC 7540 §3.2.1).
const HOP_BY_HOP: [HeaderName; 10] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::PROXY_AUTHENTICATE,
    header::PROXY_AUTHORIZATION,
    HeaderName::from_static("proxy-authentication-info"),
    header::TE,
    header::TRANSFER_ENCODING,
    header::UPGRADE,
    HeaderName::from_static("http2-settings"),
];

/// Fields of requests that `Connection` cannot remove: "a sender MUST NOT send a connection option corresponding to
/// a field that is intended for all recipients" (RFC 9110 §7.6.1), and a client behind a proxy could otherwise remove
/// what the proxy added.
const MEANT_FOR_UPSTREAM: [HeaderName; 20] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::CONTENT_RANGE,
    header::AUTHORIZATION,
    header::COOKIE,
    header::CACHE_CONTROL,
    header::DATE,
    header::EXPECT,
    header::IF_MATCH,
    header::IF_MODIFIED_SINCE,
    header::IF_NONE_MATCH,
    header::IF_RANGE,
    header::IF_UNMODIFIED_SINCE,
    header::MAX_FORWARDS,
    header::ORIGIN,
    header::RANGE,
    header::REFERER,
    header::VIA,
];

/// Fields that are not allowed in trailers (RFC 9110 §6.5.1): they concern framing, routing, authentication or
/// the interpretation of the message.
const NOT_IN_TRAILERS: [HeaderName; 14] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::CONTENT_TYPE,
    header::CONTENT_ENCODING,
    header::CONTENT_RANGE,
    header::TRAILER,
    header::AUTHORIZATION,
    header::COOKIE,
    header::SET_COOKIE,
    header::CACHE_CONTROL,
    header::EXPECT,
    header::MAX_FORWARDS,
    header::RANGE,
    header::VIA,
];

/// Copies the fields of a request that are forwarded: without its connection-specific fields, its framing and its
/// `Host`, which `head` adds again, and without those about the client, unless it is trusted. `Cookie` fields are
/// joined (RFC 9113 §8.2.3).
pub(crate) fn copy_request(from: &HeaderMap, to: &mut HeaderMap, is_trusted: bool) {
    let mut named = named_by_connection(from);
    named.retain(|name| !MEANT_FOR_UPSTREAM.contains(name) && !forwarded::is_claim(name));
    let may_pass = |name: &HeaderName| {
        !HOP_BY_HOP.contains(name)
            && !named.contains(name)
            && is_unambiguous(name)
            && (is_trusted || !forwarded::is_claim(name))
            && *name != header::CONTENT_LENGTH
            && *name != header::HOST
            // In CGI it becomes HTTP_PROXY, a variable that programs trust ("httpoxy").
            && name.as_str() != "proxy"
    };
    for (name, value) in from.iter().filter(|(name, _)| may_pass(name)) {
        to.append(name.clone(), value.clone());
    }
    join_cookies(to);
}

/// Removes the fields of a response that are not forwarded.
pub(crate) fn filter_response(headers: &mut HeaderMap) {
    // It names ports of the upstream, which clients cannot reach.
    headers.remove(header::ALT_SVC);
    if !headers.keys().any(|name| HOP_BY_HOP.contains(name)) {
        return;
    }
    if headers.contains_key(header::TRANSFER_ENCODING) {
        // RFC 9112 §6.3: it overrides a length, which must not be forwarded.
        headers.remove(header::CONTENT_LENGTH);
    }
    for name in named_by_connection(headers) {
        // They are for all recipients, as in MEANT_FOR_UPSTREAM.
        if name != header::CONTENT_LENGTH && name != header::SET_COOKIE {
            headers.remove(name);
        }
    }
    for name in &HOP_BY_HOP {
        headers.remove(name);
    }
}

/// Returns the fields of an interim response that are forwarded. It has no content (RFC 9110 §15.2).
pub(crate) fn filter_interim(from: &HeaderMap) -> HeaderMap {
    let mut to = from.clone();
    filter_response(&mut to);
    to.remove(header::CONTENT_LENGTH);
    to
}

/// Returns the trailers that are forwarded.
pub(crate) fn filter_trailers(from: HeaderMap) -> HeaderMap {
    let mut to = HeaderMap::with_capacity(from.len());
    move_fields(from, &mut to, |name| {
        !HOP_BY_HOP.contains(name)
            && !NOT_IN_TRAILERS.contains(name)
            && is_unambiguous(name)
            && !forwarded::is_claim(name)
    });
    to
}

/// Moves the fields with these names from one map to another.
fn move_fields(from: HeaderMap, to: &mut HeaderMap, may_pass: impl Fn(&HeaderName) -> bool) {
    // The further values of a field come without its name.
    let mut passing = None;
    for (name, value) in from {
        if let Some(name) = name {
            passing = may_pass(&name).then_some(name);
        }
        if let Some(name) = &passing {
            to.append(name.clone(), value);
        }
    }
}

/// Returns the fields that `Connection` names.
fn named_by_connection(headers: &HeaderMap) -> Vec<HeaderName> {
    // The most frequent options are not fields.
    let options = list_elements(headers, &header::CONNECTION);
    let others = options.filter(|name| {
        !name.eq_ignore_ascii_case("close") && !name.eq_ignore_ascii_case("keep-alive")
    });
    others.filter_map(|name| name.parse().ok()).collect()
}

/// Returns whether every program interprets a name in the same way. CGI, WSGI and the like replace `-` by `_`, some of
/// them any punctuation, so that a field with `_` in its name is taken for another one (RFC 9110 §17.10; nginx removes
/// those, too).
fn is_unambiguous(name: &HeaderName) -> bool {
    name.as_str().bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Joins the `Cookie` fields that HTTP/2 and HTTP/3 may split.
fn join_cookies(headers: &mut HeaderMap) {
    if headers.get_all(header::COOKIE).iter().nth(1).is_none() {
        return;
    }
    let crumbs: Vec<&[u8]> =
        headers.get_all(header::COOKIE).iter().map(HeaderValue::as_bytes).collect();
    if let Ok(cookie) = HeaderValue::from_bytes(&crumbs.join(&b"; "[..])) {
        headers.insert(header::COOKIE, cookie);
    }
}

/// Returns the elements of a field that is a list (RFC 9110 §5.6.1) of tokens: a quoted comma would divide one.
pub(crate) fn list_elements<'a>(
    headers: &'a HeaderMap,
    field: &HeaderName,
) -> impl Iterator<Item = &'a str> {
    let values = headers.get_all(field).iter();
    let lists = values.filter_map(|value| value.to_str().ok());
    lists.flat_map(|list| list.split(',')).map(str::trim).filter(|element| !element.is_empty())
}

/// Returns whether a field that is a list of tokens contains this one, in any case.
pub(crate) fn list_contains(headers: &HeaderMap, field: &HeaderName, token: &str) -> bool {
    list_elements(headers, field).any(|element| element.eq_ignore_ascii_case(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(fields: &[(&'static str, &'static str)]) -> HeaderMap {
        let field = |(name, value): &(&'static str, &'static str)| {
            (HeaderName::from_bytes(name.as_bytes()).unwrap(), HeaderValue::from_static(value))
        };
        let mut headers = HeaderMap::new();
        for (name, value) in fields.iter().map(field) {
            headers.append(name, value);
        }
        headers
    }

    fn copied(from: HeaderMap, is_trusted: bool) -> HeaderMap {
        let mut to = HeaderMap::new();
        copy_request(&from, &mut to, is_trusted);
        to
    }

    fn names_of(headers: &HeaderMap) -> Vec<&str> {
        headers.keys().map(HeaderName::as_str).collect()
    }

    #[test]
    fn hop_by_hop_fields_are_removed() {
        let request = map(&[
            ("connection", "close, X-Hop"),
            ("connection", "x-other"),
            ("x-hop", "1"),
            ("x-other", "1"),
            ("keep-alive", "timeout=5"),
            ("proxy-authorization", "Basic eDp5"),
            ("te", "gzip"),
            ("upgrade", "h2c"),
            ("http2-settings", "AAMAAABk"),
            ("transfer-encoding", "chunked"),
            ("content-length", "3"),
            ("proxy", "evil:8080"),
            ("accept", "*/*"),
        ]);
        assert_eq!(names_of(&copied(request, false)), ["accept"]);
        let mut response = map(&[
            ("connection", "close, x-hop"),
            ("x-hop", "1"),
            ("alt-svc", "h3=\":443\""),
            ("content-length", "3"),
            ("transfer-encoding", "chunked"),
            ("upgrade", "h2c"),
            ("server", "x"),
        ]);
        filter_response(&mut response);
        assert_eq!(names_of(&response), ["server"]);
    }

    #[test]
    fn the_connection_field_cannot_remove_essential_fields() {
        let request = map(&[
            ("connection", "authorization, Cookie, range, x-forwarded-for, x-mine"),
            ("authorization", "Basic eDp5"),
            ("cookie", "a=b"),
            ("range", "bytes=0-"),
            ("x-forwarded-for", "198.51.100.1"),
            ("x-mine", "1"),
        ]);
        let all = ["authorization", "cookie", "range", "x-forwarded-for"];
        assert_eq!(names_of(&copied(request.clone(), true)), all);
        assert_eq!(names_of(&copied(request, false)), all[..3]);
        let mut response = map(&[
            ("connection", "content-length, Set-Cookie, x-hop"),
            ("content-length", "3"),
            ("set-cookie", "a=b"),
            ("x-hop", "1"),
        ]);
        filter_response(&mut response);
        let mut kept = names_of(&response);
        kept.sort_unstable();
        assert_eq!(kept, ["content-length", "set-cookie"]);
    }

    #[test]
    fn ambiguous_field_names_are_removed() {
        let request = map(&[
            ("x_forwarded_for", "192.0.2.1"),
            ("content_length", "5"),
            ("x.y", "1"),
            ("x-y", "1"),
        ]);
        assert_eq!(names_of(&copied(request, true)), ["x-y"]);
    }

    //= hostile gateway
    //# a client that claims to be somebody else
    //= bound: its forwarding fields are removed
    #[test]
    fn forwarding_fields_of_clients_are_removed() {
        let request = map(&[
            ("forwarded", "for=192.0.2.1"),
            ("x-forwarded-for", "192.0.2.1"),
            ("x-forwarded-prefix", "/admin"),
            ("x-real-ip", "192.0.2.1"),
            ("user-agent", "x"),
        ]);
        assert_eq!(names_of(&copied(request.clone(), false)), ["user-agent"]);
        assert_eq!(copied(request, true).len(), 5);
    }

    #[test]
    fn cookie_crumbs_are_joined() {
        let request = map(&[("cookie", "a=b"), ("accept", "*/*"), ("cookie", "c=d")]);
        let headers = copied(request, false);
        assert_eq!(headers.get_all("cookie").iter().collect::<Vec<_>>(), ["a=b; c=d"]);
    }

    #[test]
    fn several_values_of_a_field_are_forwarded_together() {
        let request = map(&[("accept", "a"), ("te", "x"), ("te", "y"), ("accept", "b")]);
        let headers = copied(request, false);
        assert_eq!(headers.get_all("accept").iter().collect::<Vec<_>>(), ["a", "b"]);
        assert_eq!(headers.len(), 2);
    }

    #[test]
    fn an_interim_response_has_no_length() {
        let early_hints = map(&[("link", "</a>"), ("content-length", "3"), ("keep-alive", "x")]);
        assert_eq!(names_of(&filter_interim(&early_hints)), ["link"]);
    }

    #[test]
    fn trailers_contain_no_framing() {
        let trailers = map(&[
            ("content-length", "5"),
            ("transfer-encoding", "chunked"),
            ("host", "b"),
            ("x-forwarded-for", "192.0.2.1"),
            ("x_sum", "1"),
            ("grpc-status", "0"),
        ]);
        assert_eq!(names_of(&filter_trailers(trailers)), ["grpc-status"]);
    }
}
