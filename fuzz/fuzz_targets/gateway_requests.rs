//! Arbitrary requests to the gateway, as octets of HTTP/1 or as fields of HTTP/2 and HTTP/3: the upstream
//! receives one unambiguous request (RFC 9112 §11), which states exactly what the gateway knows about the
//! client, and which another gateway understands in the same way.
#![no_main]

use std::net::SocketAddr;
use std::sync::LazyLock;

use arbitrary::Arbitrary;
use eyas_gateway::Gateway;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Version, request};
use libfuzzer_sys::fuzz_target;

mod reach;

use reach::Reach;

static REACH: Reach<9> = Reach::new([
    "a rejected request",
    "an unsupported transfer coding",
    "a forwarded HTTP/1 request",
    "a forwarded HTTP/2 or HTTP/3 request",
    "a body of a known length",
    "a body in chunks",
    "a field that is removed because Connection names it",
    "a claim of a trusted proxy",
    "a cookie of several crumbs",
]);

static GATEWAY: LazyLock<Gateway> = LazyLock::new(|| {
    let upstream = "http://127.0.0.1:3000".parse().expect("an upstream");
    let trusted = "10.0.0.0/8".parse().expect("a network");
    Gateway::builder(upstream).trust(trusted).build().expect("a gateway")
});

#[derive(Arbitrary, Debug)]
struct Input<'a> {
    request: Head<'a>,
    is_trusted: bool,
    is_over: bool,
}

#[derive(Arbitrary, Debug)]
enum Head<'a> {
    /// A complete HTTP/1 request head.
    Octets(&'a [u8]),
    /// The parsed parts of a request of any version.
    Parts { version: u8, method: u8, uri: Uri<'a>, fields: Vec<(Name<'a>, Value<'a>)> },
}

#[derive(Arbitrary, Debug)]
enum Uri<'a> {
    Default,
    Path,
    Other(&'a str),
}

#[derive(Arbitrary, Debug)]
enum Name<'a> {
    Known(u8),
    Other(&'a [u8]),
}

#[derive(Arbitrary, Debug)]
enum Value<'a> {
    Known(u8),
    Number(u16),
    Other(&'a [u8]),
}

const METHODS: [Method; 6] =
    [Method::GET, Method::POST, Method::PUT, Method::OPTIONS, Method::TRACE, Method::CONNECT];
const VERSIONS: [Version; 4] =
    [Version::HTTP_10, Version::HTTP_11, Version::HTTP_2, Version::HTTP_3];
const NAMES: [&str; 24] = [
    "host",
    "content-length",
    "transfer-encoding",
    "connection",
    "te",
    "expect",
    "upgrade",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "proxy",
    "trailer",
    "cookie",
    "via",
    "forwarded",
    "x-forwarded-for",
    "x-forwarded-host",
    "x-forwarded-proto",
    "x-real-ip",
    "x_forwarded_for",
    "early-data",
    "http2-settings",
    "x-a",
    "x-b",
];
const VALUES: [&str; 16] = [
    "a.example",
    "chunked",
    "gzip, chunked",
    "close",
    "x-a, close",
    "x-b, host, cookie",
    "trailers",
    "100-continue",
    "websocket",
    "0",
    "5",
    "5, 5",
    "a=b",
    "",
    "192.0.2.9",
    "for=192.0.2.9;proto=https",
];
/// Hop-by-hop fields, which are not forwarded.
const HOP_BY_HOP: [&str; 8] = [
    "connection",
    "keep-alive",
    "proxy-connection",
    "proxy-authorization",
    "proxy-authenticate",
    "upgrade",
    "http2-settings",
    "proxy",
];
const CLAIMS: [&str; 4] = ["forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto"];

fn pick<T>(list: &[T], number: u8) -> &T {
    &list[usize::from(number) % list.len()]
}

/// Parses an HTTP/1 head with the library that our servers use.
fn read(octets: &[u8]) -> Option<(request::Parts, usize)> {
    let mut fields = [httparse::EMPTY_HEADER; 64];
    let mut head = httparse::Request::new(&mut fields);
    let httparse::Status::Complete(length) = head.parse(octets).ok()? else { return None };
    let version = if head.version? == 0 { Version::HTTP_10 } else { Version::HTTP_11 };
    let mut request = Request::builder().method(head.method?).uri(head.path?).version(version);
    for field in head.headers {
        request = request.header(field.name, HeaderValue::from_bytes(field.value).ok()?);
    }
    Some((request.body(()).ok()?.into_parts().0, length))
}

fn parts(head: &Head) -> Option<request::Parts> {
    let (version, method, uri, fields) = match head {
        Head::Octets(octets) => return read(octets).map(|(parts, _)| parts),
        Head::Parts { version, method, uri, fields } => (version, method, uri, fields),
    };
    let uri = match uri {
        Uri::Default => "https://a.example/p?q",
        Uri::Path => "/p",
        Uri::Other(text) => text,
    };
    let request = Request::builder().method(pick(&METHODS, *method)).uri(uri);
    let mut request = request.version(*pick(&VERSIONS, *version));
    for (name, value) in fields.iter().take(32) {
        let name = match name {
            Name::Known(number) => pick(&NAMES, *number).as_bytes(),
            Name::Other(octets) => octets,
        };
        let value = match value {
            Value::Known(number) => HeaderValue::from_static(pick::<&str>(&VALUES, *number)),
            Value::Number(number) => HeaderValue::from(*number),
            Value::Other(octets) => HeaderValue::from_bytes(octets).ok()?,
        };
        request = request.header(name, value);
    }
    Some(request.body(()).ok()?.into_parts().0)
}

/// Returns the octets of the forwarded request.
fn encode(onward: &Request<()>) -> Vec<u8> {
    let mut octets = format!("{} {} HTTP/1.1\r\n", onward.method(), onward.uri()).into_bytes();
    for (name, value) in onward.headers() {
        octets.extend([name.as_str().as_bytes(), b": ", value.as_bytes(), b"\r\n"].concat());
    }
    octets.extend(b"\r\n");
    octets
}

fn all<'a>(headers: &'a HeaderMap, name: &str) -> Vec<&'a [u8]> {
    headers.get_all(name).iter().map(HeaderValue::as_bytes).collect()
}

fn check_fields(from: &request::Parts, onward: &Request<()>, client: Option<SocketAddr>) {
    let headers = onward.headers();
    let lengths = all(headers, "content-length");
    let codings = all(headers, "transfer-encoding");
    assert!(lengths.len() + codings.len() <= 1, "{headers:?}");
    if let [length] = lengths[..] {
        assert!(!length.is_empty() && length.iter().all(u8::is_ascii_digit), "{headers:?}");
        let number = |text: &[u8]| String::from_utf8_lossy(text).parse::<u64>().ok();
        let declared =
            all(&from.headers, "content-length").first().map_or(Some(0), |text| number(text));
        assert!(
            number(length).is_some() && number(length) == declared,
            "{declared:?} became {headers:?}"
        );
        REACH.hit("a body of a known length");
    }
    if let [coding] = codings[..] {
        assert_eq!(coding, b"chunked");
        REACH.hit("a body in chunks");
    }
    assert_eq!(all(headers, "host").len(), 1, "{headers:?}");
    assert!(all(headers, "cookie").len() <= 1, "{headers:?}");
    if all(&from.headers, "cookie").len() > 1 {
        REACH.hit("a cookie of several crumbs");
    }
    assert!(all(headers, "te").iter().all(|te| *te == b"trailers"), "{headers:?}");
    for name in HOP_BY_HOP {
        assert!(!headers.contains_key(name), "{name} is forwarded: {headers:?}");
    }
    for name in headers.keys() {
        let is_plain = |octet: u8| octet.is_ascii_alphanumeric() || octet == b'-';
        assert!(name.as_str().bytes().all(is_plain), "{name} is forwarded");
    }
    for named in ["x-a", "x-b"] {
        let is_named = |list: &[u8]| {
            let list = String::from_utf8_lossy(list).to_ascii_lowercase();
            list.split(',').any(|option| option.trim() == named)
        };
        if from.headers.contains_key(named)
            && all(&from.headers, "connection").into_iter().any(is_named)
        {
            assert!(!headers.contains_key(named), "{named} is forwarded: {headers:?}");
            REACH.hit("a field that is removed because Connection names it");
        }
    }
    check_claims(from, headers, client);
}

/// Checks the claims about the client: what the gateway knows, after the claims of a trusted proxy.
fn check_claims(from: &request::Parts, headers: &HeaderMap, client: Option<SocketAddr>) {
    let node = client.map_or("unknown".to_owned(), |client| client.ip().to_string());
    for name in CLAIMS {
        let [value] = all(headers, name)[..] else { panic!("not one {name}: {headers:?}") };
        let value = String::from_utf8_lossy(value);
        if client.is_some() {
            let last = value.rsplit(", ").next().unwrap_or_default();
            match name {
                "forwarded" => assert!(last.starts_with(&format!("for={node};")), "{value}"),
                "x-forwarded-for" => assert_eq!(last, node),
                _ => {}
            }
            if from.headers.contains_key(name) {
                REACH.hit("a claim of a trusted proxy");
            }
        } else if name == "forwarded" {
            assert!(value.starts_with("for=unknown;host="), "{value}");
        } else if name == "x-forwarded-for" {
            assert_eq!(value, node);
        }
    }
    assert!(client.is_some() || !headers.contains_key("x-real-ip"));
}

/// Checks that another gateway understands the request in the same way.
fn check_second_gateway(onward: &Request<()>, received: request::Parts, is_over: bool) {
    let (host, framing) = (all(onward.headers(), "host"), ["content-length", "transfer-encoding"]);
    let second =
        GATEWAY.upstream_request(received, None, is_over).expect("a forwarded request is accepted");
    assert_eq!((second.method(), second.uri()), (onward.method(), onward.uri()));
    assert_eq!(all(second.headers(), "host"), host);
    for name in framing {
        assert_eq!(all(second.headers(), name), all(onward.headers(), name), "{name}");
    }
}

fuzz_target!(|input: Input| {
    REACH.begin();
    let Some(from) = parts(&input.request) else { return };
    let client: Option<SocketAddr> =
        input.is_trusted.then(|| "10.1.2.3:4".parse().expect("an address"));
    let onward = match GATEWAY.upstream_request(from.clone(), client, input.is_over) {
        Ok(onward) => onward,
        Err(StatusCode::NOT_IMPLEMENTED) if from.headers.contains_key("transfer-encoding") => {
            return REACH.hit("an unsupported transfer coding");
        }
        Err(_) => return REACH.hit("a rejected request"),
    };
    REACH.hit(match from.version {
        Version::HTTP_10 | Version::HTTP_11 => "a forwarded HTTP/1 request",
        _ => "a forwarded HTTP/2 or HTTP/3 request",
    });
    assert_eq!(onward.method(), from.method);
    check_fields(&from, &onward, client);
    let octets = encode(&onward);
    let (received, length) = read(&octets).expect("the upstream can parse the request");
    assert_eq!(length, octets.len(), "nothing follows the head");
    let names = |headers: &HeaderMap| -> Vec<HeaderName> {
        headers.iter().map(|(name, _)| name.clone()).collect()
    };
    assert_eq!(names(&received.headers), names(onward.headers()));
    check_second_gateway(&onward, received, false);
});
