use http::Request;

use super::*;

fn head(method: &str, uri: &str, version: Version, fields: &[(&str, &[u8])]) -> request::Parts {
    let mut request = Request::builder().method(method).uri(uri).version(version);
    for (name, value) in fields {
        request = request.header(*name, HeaderValue::from_bytes(value).unwrap());
    }
    request.body(()).unwrap().into_parts().0
}

fn http1(method: &str, uri: &str, fields: &[(&str, &[u8])]) -> Result<ValidRequest, u16> {
    let host: (&str, &[u8]) = ("host", b"a.example");
    let fields: Vec<_> = [host].iter().chain(fields).copied().collect();
    validate(&head(method, uri, Version::HTTP_11, &fields), false).map_err(|no| no.status.as_u16())
}

fn http2(uri: &str, fields: &[(&str, &[u8])]) -> Result<ValidRequest, u16> {
    let three = validate(&head("POST", uri, Version::HTTP_3, fields), false);
    let two = validate(&head("POST", uri, Version::HTTP_2, fields), false);
    assert_eq!(two, three);
    two.map_err(|no| no.status.as_u16())
}

const URL: &str = "https://a.example/p?q";

#[test]
fn ordinary_requests_are_accepted() {
    let valid = http1("GET", "/p?q=%0d%0a//..", &[("te", b"trailers, gzip")]).unwrap();
    assert_eq!(valid.target, "/p?q=%0d%0a//..");
    assert_eq!(valid.host.unwrap(), "a.example");
    assert_eq!(valid.framing, BodyFraming::Nothing);
    assert!(valid.accepts_trailers && !valid.expects_continue);
    let valid = http2(URL, &[("content-length", b"7"), ("expect", b"100-Continue")]).unwrap();
    assert_eq!((valid.target.as_str(), valid.framing), ("/p?q", BodyFraming::Length(7)));
    assert!(valid.expects_continue);
    assert_eq!(http2(URL, &[]).unwrap().framing, BodyFraming::Open);
    let chunked = http1("PUT", "/", &[("transfer-encoding", b"Chunked")]).unwrap();
    assert_eq!(chunked.framing, BodyFraming::Open);
    assert_eq!(http1("OPTIONS", "*", &[]).unwrap().target, "*");
    assert_eq!(http1("GET", "http://a.example", &[]).unwrap().target, "/");
}

#[test]
fn targets_become_paths_in_ascii() {
    for (method, uri, target) in [
        ("GET", "http://a.example", "/"),
        ("GET", "http://a.example?x=1", "/?x=1"),
        ("GET", "http://a.example/?x=1", "/?x=1"),
        ("GET", "http://a.example?", "/?"),
        ("GET", "http://a.example?/a/..", "/?/a/.."),
        ("GET", "/caf\u{e9}?\u{4e2d}", "/caf%C3%A9?%E4%B8%AD"),
        ("GET", "http://a.example?\u{e9}", "/?%C3%A9"),
        ("GET", "/%e9%2F", "/%e9%2F"),
        ("GET", "/a\"{|}b", "/a\"{|}b"),
        ("OPTIONS", "*", "*"),
    ] {
        assert_eq!(
            http1(method, uri, &[]).map(|valid| valid.target).as_deref(),
            Ok(target),
            "{uri}"
        );
        let head = head(method, uri, Version::HTTP_11, &[]);
        assert_eq!(has_raw_octets(&head), !uri.is_ascii());
    }
}

#[test]
fn only_a_single_decimal_length_is_accepted() {
    for length in [&b"+5"[..], b"5, 5", b"5,6", b"-1", b"0x5", b"", b"5 5", b"18446744073709551616"]
    {
        assert_eq!(http1("POST", "/", &[("content-length", length)]), Err(400), "{length:?}");
        assert_eq!(http2(URL, &[("content-length", length)]), Err(400), "{length:?}");
    }
    let twice: [(&str, &[u8]); 2] = [("content-length", b"5"), ("content-length", b"5")];
    assert_eq!(http1("POST", "/", &twice), Err(400));
}

#[test]
fn codings_other_than_chunked_are_refused() {
    for coding in
        [&b"gzip, chunked"[..], b"chunked, chunked", b"identity", b"xchunked", b"\x0bchunked"]
    {
        let Ok(value) = HeaderValue::from_bytes(coding) else { continue };
        let coding = value.as_bytes();
        assert_eq!(http1("POST", "/", &[("transfer-encoding", coding)]), Err(501), "{coding:?}");
    }
    let twice: [(&str, &[u8]); 2] =
        [("transfer-encoding", b"chunked"), ("transfer-encoding", b"chunked")];
    assert_eq!(http1("POST", "/", &twice), Err(501));
    let both: [(&str, &[u8]); 2] = [("transfer-encoding", b"chunked"), ("content-length", b"5")];
    assert_eq!(http1("POST", "/", &both), Err(400));
    let old = head("POST", "/", Version::HTTP_10, &[("transfer-encoding", b"chunked")]);
    assert_eq!(validate(&old, false).unwrap_err().status, 400);
}

#[test]
fn hop_by_hop_fields_are_malformed_in_http2_and_3() {
    let fields: [(&str, &[u8]); 6] = [
        ("connection", b"close"),
        ("transfer-encoding", b"chunked"),
        ("upgrade", b"websocket"),
        ("keep-alive", b"1"),
        ("proxy-connection", b"close"),
        ("te", b"gzip"),
    ];
    for field in fields {
        assert_eq!(http2(URL, &[field]), Err(400), "{}", field.0);
    }
    assert!(http2(URL, &[("te", b"trailers")]).unwrap().accepts_trailers);
}

#[test]
fn values_that_http1_would_change_are_refused() {
    for value in [&b" x"[..], b"x ", b"\tx", b"x\t"] {
        assert_eq!(http2(URL, &[("x-y", value)]), Err(400), "{value:?}");
    }
    assert!(http2(URL, &[("x-y", b"x y")]).is_ok());
}

#[test]
fn contradictory_or_invalid_hosts_are_refused() {
    assert_eq!(http2(URL, &[("host", b"b.example")]), Err(400));
    assert!(http2(URL, &[("host", b"A.EXAMPLE")]).is_ok());
    assert_eq!(http1("GET", "http://b.example/", &[]), Err(400));
    assert_eq!(http1("GET", "/", &[("host", b"a.example")]), Err(400));
    assert_eq!(http2("/", &[]), Err(400));
    for host in
        [&b""[..], b"a b", b"u@a", b"a:x", b"a:70000", b"a:", b"a/b", b"a?b", b"a\"b", b"a,b c"]
    {
        let head = head("GET", "/", Version::HTTP_11, &[("host", host)]);
        assert!(validate(&head, false).is_err(), "{}", String::from_utf8_lossy(host));
    }
    let old = head("GET", "/", Version::HTTP_10, &[]);
    assert_eq!(validate(&old, false).unwrap().host, None);
}

#[test]
fn targets_are_paths() {
    assert_eq!(http1("GET", "*", &[]), Err(400));
    assert_eq!(http1("GET", "ftp://a.example/", &[]), Err(400));
    assert_eq!(http1("TRACE", "/", &[]), Err(405));
    assert_eq!(http1("CONNECT", "a.example:443", &[]), Err(501));
}

#[test]
fn unknown_expectations_fail() {
    assert_eq!(http1("PUT", "/", &[("expect", b"100-continue, x")]), Err(417));
}

mod arbitrary {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        /// Every accepted request has a target and a host that are single tokens in an HTTP/1 head.
        #[test]
        fn an_accepted_request_cannot_inject_lines(
            path in "/[ -~\u{80}-\u{ff}]{0,12}",
            host in "[!-~]{0,12}",
            length in prop::option::of("[ -~]{0,4}"),
        ) {
            let request = Request::builder().method("POST").uri(path.as_str());
            let mut request = request.version(Version::HTTP_3).header("host", host.as_str());
            if let Some(length) = &length {
                request = request.header("content-length", length.as_str());
            }
            let Ok(request) = request.body(()) else { return Ok(()) };
            let Ok(valid) = validate(&request.into_parts().0, false) else { return Ok(()) };
            prop_assert!(valid.target.bytes().all(|byte| byte.is_ascii_graphic()));
            let host = valid.host.expect("HTTP/3 names one");
            prop_assert!(host.as_bytes().iter().all(u8::is_ascii_graphic));
            prop_assert!(!host.as_bytes().contains(&b'@') && !host.as_bytes().contains(&b'"'));
            if let Some(length) = length {
                prop_assert_eq!(Some(valid.framing), length.parse().ok().map(BodyFraming::Length));
            }
        }
    }
}
