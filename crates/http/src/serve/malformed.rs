//! Requests that are malformed in their version of HTTP. The server answers them itself, with 400,
//! and a gateway refuses them whatever server it is behind.

use eyas::race::target::parse_port;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, Version, header, uri::Authority};

/// Fields about one connection of HTTP/1 (RFC 9110 §7.6.1).
pub(super) const CONNECTION_SPECIFIC: [HeaderName; 5] = [
    header::CONNECTION,
    HeaderName::from_static("keep-alive"),
    HeaderName::from_static("proxy-connection"),
    header::TRANSFER_ENCODING,
    header::UPGRADE,
];

/// Why a request is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Malformed(pub &'static str);

/// Checks what the parsers of the three versions let pass.
pub(super) fn check<B>(request: &Request<B>) -> Result<(), Malformed> {
    check_connection_fields(request.version(), request.headers())?;
    if is_multiplexed(request.version()) {
        content_length(request.headers())?;
    }
    check_target(request)?;
    check_hosts(request)
}

pub(super) fn is_multiplexed(version: Version) -> bool {
    matches!(version, Version::HTTP_2 | Version::HTTP_3)
}

/// Rejects connection-specific fields in HTTP/2 and HTTP/3 (RFC 9113 §8.2.2, RFC 9114 §4.2).
pub fn check_connection_fields(version: Version, headers: &HeaderMap) -> Result<(), Malformed> {
    if !is_multiplexed(version) {
        return Ok(());
    }
    if headers.keys().any(|name| CONNECTION_SPECIFIC.contains(name)) {
        return Err(Malformed("HTTP/2 and HTTP/3 must not have connection-specific fields."));
    }
    let mut codings = headers.get_all(header::TE).iter();
    match codings.any(|value| !value.as_bytes().eq_ignore_ascii_case(b"trailers")) {
        true => Err(Malformed("TE must be trailers in HTTP/2 and HTTP/3.")),
        false => Ok(()),
    }
}

/// Returns the value of `Content-Length`, which must be a single decimal number (RFC 9110 §8.6).
pub fn content_length(headers: &HeaderMap) -> Result<Option<u64>, Malformed> {
    const INVALID: Malformed = Malformed("Content-Length must be one number.");
    let mut values = headers.get_all(header::CONTENT_LENGTH).iter();
    let Some(value) = values.next() else { return Ok(None) };
    if values.next().is_some() || !value.as_bytes().iter().all(u8::is_ascii_digit) {
        return Err(INVALID);
    }
    let length = value.to_str().ok().and_then(|value| value.parse().ok());
    length.map(Some).ok_or(INVALID)
}

/// Checks a host with its port, as in `Host` and `:authority`: without user information (RFC 9113
/// §8.3.1, RFC 9114 §4.3.1).
pub fn check_host(host: &HeaderValue) -> Result<(), Malformed> {
    let authority = Authority::try_from(host.as_bytes());
    check_authority(&authority.map_err(|_| INVALID_HOST)?)
}

const INVALID_HOST: Malformed = Malformed("The host is invalid.");

fn check_authority(authority: &Authority) -> Result<(), Malformed> {
    let (text, host) = (authority.as_str(), authority.host());
    let port = text.strip_prefix(host);
    let is_port =
        |port: &str| port.strip_prefix(':').is_some_and(|port| parse_port(port).is_some());
    let has_valid_port = port.is_some_and(|port| port.is_empty() || is_port(port));
    let has_sign = text.contains(['@', '"', '\\']);
    match !host.is_empty() && !has_sign && has_valid_port {
        true => Ok(()),
        false => Err(INVALID_HOST),
    }
}

/// Checks the form of the request target (RFC 9112 §3.2): a path; an absolute URL, which every
/// server has to accept; `*` for OPTIONS; a host and port for CONNECT alone.
fn check_target<B>(request: &Request<B>) -> Result<(), Malformed> {
    let (uri, method) = (request.uri(), request.method());
    if *method == Method::CONNECT {
        return Ok(());
    }
    if uri.scheme_str().is_some_and(|scheme| !matches!(scheme, "http" | "https")) {
        return Err(Malformed("Only http and https are supported."));
    }
    let has_authority = uri.authority().is_some();
    let is_valid = match uri.path_and_query().map(|path| path.as_str()) {
        Some("*") => *method == Method::OPTIONS,
        Some(path) if path.starts_with('/') => true,
        // An absolute URL without a path, which may have a query. `:path` has one (RFC 9113 §8.3.1).
        Some(path) => {
            let is_url = uri.scheme().is_some() && !is_multiplexed(request.version());
            is_url && (path.is_empty() || path.starts_with('?'))
        }
        None => uri.scheme().is_some() && has_authority,
    };
    match is_valid {
        true => Ok(()),
        false => Err(Malformed("The request target is not a path.")),
    }
}

/// Checks `Host` (RFC 9112 §3.2) and `:authority`, which must name the same host if there are both
/// (RFC 9113 §8.3.1, RFC 9114 §4.3.1). In HTTP/1.1 the target has precedence over `Host` (§3.2.2).
fn check_hosts<B>(request: &Request<B>) -> Result<(), Malformed> {
    let mut fields = request.headers().get_all(header::HOST).iter();
    let (field, another) = (fields.next(), fields.next());
    if another.is_some() || (field.is_none() && request.version() == Version::HTTP_11) {
        return Err(Malformed("A request must have one Host field."));
    }
    let authority = request.uri().authority();
    if let Some(field) = field {
        // The value is empty where the URL has no authority.
        if !field.is_empty() {
            check_host(field)?;
        }
        if is_multiplexed(request.version())
            && let Some(authority) = authority
            && !field.as_bytes().eq_ignore_ascii_case(authority.as_str().as_bytes())
        {
            return Err(Malformed("Host and :authority name different hosts."));
        }
    }
    if let Some(authority) = authority {
        check_authority(authority)?;
    } else if field.is_none() && is_multiplexed(request.version()) {
        return Err(Malformed("The request has no host."));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(method: &str, uri: &str, version: Version, fields: &[(&str, &[u8])]) -> bool {
        let mut request = Request::builder().method(method).uri(uri).version(version);
        for (name, value) in fields {
            request = request.header(*name, HeaderValue::from_bytes(value).expect("a value"));
        }
        check(&request.body(()).expect("a request")).is_ok()
    }

    #[test]
    fn targets_have_the_form_that_their_method_wants() {
        for (method, uri, valid) in [
            ("GET", "/", true),
            ("GET", "/a?b", true),
            ("GET", "//a/b", true),
            ("GET", "http://a.example/x", true),
            ("GET", "http://a.example", true),
            ("GET", "http://a.example?x=1", true),
            ("GET", "https://a.example/", true),
            ("GET", "ftp://a.example/", false),
            ("GET", "a.example", false),
            ("GET", "a.example:80", false),
            ("POST", "a.example:80", false),
            ("CONNECT", "a.example:80", true),
            ("OPTIONS", "*", true),
            ("GET", "*", false),
            ("OPTIONS", "/", true),
        ] {
            let host: &[(&str, &[u8])] = &[("host", b"a.example")];
            assert_eq!(of(method, uri, Version::HTTP_11, host), valid, "{method} {uri}");
        }
    }

    #[test]
    fn there_is_one_valid_host() {
        for (fields, valid) in [
            (&[][..], false),
            (&[("host", &b"a.example"[..])], true),
            (&[("host", b"a.example:8080")], true),
            (&[("host", b"[::1]:80")], true),
            (&[("host", b"a.example:+80")], false),
            (&[("host", b"a.example:")], false),
            (&[("host", b"")], true),
            (&[("host", b"a"), ("host", b"a")], false),
            (&[("host", b"a b")], false),
            (&[("host", b"u@a")], false),
            (&[("host", b"a:x")], false),
            (&[("host", b"a:70000")], false),
            (&[("host", b"a/b")], false),
            (&[("host", b"a,b")], true),
            (&[("host", b"\xff")], false),
        ] {
            assert_eq!(of("GET", "/", Version::HTTP_11, fields), valid, "{fields:?}");
            let old = fields.is_empty() || valid;
            assert_eq!(of("GET", "/", Version::HTTP_10, fields), old, "{fields:?}");
        }
        // The target has precedence in HTTP/1.1; elsewhere both have to agree.
        let other: &[(&str, &[u8])] = &[("host", b"b.example")];
        assert!(of("GET", "http://a.example/", Version::HTTP_11, other));
        for version in [Version::HTTP_2, Version::HTTP_3] {
            assert!(!of("GET", "https://a.example/", version, other));
            assert!(of("GET", "https://a.example/", version, &[("host", b"A.Example")]));
            assert!(of("GET", "https://a.example/", version, &[]));
            assert!(!of("GET", "https://u@a.example/", version, &[]));
            assert!(!of("GET", "/", version, &[]));
            assert!(of("GET", "/", version, &[("host", b"a.example")]));
        }
    }

    #[test]
    fn fields_of_other_versions_are_malformed() {
        let fields: [(&str, &[u8]); 12] = [
            ("connection", b"close"),
            ("connection", b""),
            ("transfer-encoding", b"chunked"),
            ("upgrade", b"websocket"),
            ("keep-alive", b"1"),
            ("proxy-connection", b"close"),
            ("te", b"gzip"),
            ("te", b"trailers, gzip"),
            ("content-length", b"+1"),
            ("content-length", b"1, 1"),
            ("content-length", b""),
            ("content-length", b"18446744073709551616"),
        ];
        for field in fields {
            for version in [Version::HTTP_2, Version::HTTP_3] {
                assert!(!of("GET", "https://a.example/", version, &[field]), "{}", field.0);
            }
        }
        assert!(of("GET", "https://a.example/", Version::HTTP_3, &[("te", b"Trailers")]));
        assert!(!of("GET", "https://a.example?q", Version::HTTP_2, &[]));
        let host: (&str, &[u8]) = ("host", b"a");
        assert!(of("GET", "/", Version::HTTP_11, &[host, ("connection", b"close")]));
    }
}
