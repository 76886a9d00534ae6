use eyas::race::target::TargetHost;
use proptest::prelude::*;

use super::*;

/// Returns the only user.
fn users() -> Option<ClientCredentials> {
    Some(ClientCredentials { name: b"ada".to_vec(), password: b"lace".to_vec() })
}

/// The replies of a handshake, its outcome, and the data that was left unread.
#[derive(Debug, PartialEq)]
struct Outcome {
    replies: Vec<u8>,
    request: Option<HandshakeRequest>,
    refusal: Option<RequestRefusal>,
    rest: Option<Bytes>,
}

fn outcome(users: Option<ClientCredentials>, pieces: &[&[u8]]) -> Outcome {
    let mut handshake = ProxyHandshake::new(users.is_some());
    let authenticate = |given: &ClientCredentials| match users.as_ref() == Some(given) {
        true => Ok(Some(String::from_utf8_lossy(&given.name).into_owned())),
        false => Err(RequestRefusal::NoUser),
    };
    let mut outcome = Outcome { replies: Vec::new(), request: None, refusal: None, rest: None };
    for piece in pieces {
        handshake.receive(piece);
        loop {
            let step = match handshake.step() {
                HandshakeStep::Authenticate(given) => handshake.authenticated(authenticate(&given)),
                step => step,
            };
            match step {
                HandshakeStep::More => break,
                HandshakeStep::Authenticate(_) => unreachable!("once"),
                HandshakeStep::Send(bytes) => outcome.replies.extend(bytes),
                HandshakeStep::Request(request) => outcome.request = Some(request),
                HandshakeStep::Close(bytes, why) => {
                    outcome.replies.extend(bytes);
                    outcome.refusal = Some(why);
                }
            }
        }
        assert!(handshake.unread.len() <= MAX_HEAD + piece.len() || outcome.request.is_some());
    }
    outcome.rest = outcome.request.is_some().then(|| handshake.into_rest());
    outcome
}

fn request(bytes: &[u8]) -> (HandshakeRequest, Vec<u8>) {
    let outcome = outcome(None, &[bytes]);
    (
        outcome.request.unwrap_or_else(|| panic!("{:?}", outcome.refusal)),
        outcome.rest.unwrap_or_default().to_vec(),
    )
}

fn refused(users: Option<ClientCredentials>, bytes: &[u8]) -> (Vec<u8>, RequestRefusal) {
    let outcome = outcome(users, &[bytes]);
    (outcome.replies, outcome.refusal.expect("it is refused"))
}

fn to(destination: &str) -> HandshakeRequest {
    let (host, port) = destination.rsplit_once(':').expect("a port");
    HandshakeRequest::Connect(
        Destination::parse(host, port.parse().expect("a port")).expect("a host"),
    )
}

#[test]
fn socks5_destinations_are_parsed() {
    let greeting = [5, 2, 0, 2];
    let cases: [(&[u8], &str); 4] = [
        (&[5, 1, 0, 1, 192, 0, 2, 1, 1, 187], "192.0.2.1:443"),
        (b"\x05\x01\x00\x03\x0bexample.org\x00\x50", "example.org:80"),
        (b"\x05\x01\x00\x03\x09192.0.2.1\x00\x50", "192.0.2.1:80"),
        (
            &[5, 1, 0, 4, 0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 22],
            "[2001:db8::1]:22",
        ),
    ];
    for (request, expected) in cases {
        let outcome = outcome(None, &[&greeting, request, b"more"]);
        assert_eq!(outcome.replies, [5, 0]);
        assert_eq!(outcome.request, Some(to(expected)));
        assert_eq!(outcome.rest.as_deref(), Some(&b"more"[..]));
    }
}

#[test]
fn socks5_requires_a_password_if_there_are_users() {
    let request = b"\x05\x01\x00\x03\x01a\x00\x50";
    let right = outcome(users(), &[&[5, 1, 2], b"\x01\x03ada\x04lace", request]);
    assert_eq!((right.replies, right.request), (vec![5, 2, 1, 0], Some(to("a:80"))));
    let wrong = refused(users(), b"\x05\x01\x02\x01\x03ada\x04lack");
    assert_eq!(wrong, (vec![5, 2, 1, 1], RequestRefusal::NoUser));
    assert_eq!(refused(users(), &[5, 1, 0]), (vec![5, 0xff], RequestRefusal::NoUser));
}

#[test]
fn socks5_refuses_unsupported_commands() {
    let code = |request: &[u8]| {
        let (replies, why) = refused(None, &[&[5, 1, 0][..], request].concat());
        (replies[3], why.name())
    };
    assert_eq!(code(&[5, 2, 0, 1, 1, 1, 1, 1, 0, 80]), (7, "unsupported"));
    assert_eq!(code(&[5, 9, 0, 1, 1, 1, 1, 1, 0, 80]), (7, "unsupported"));
    assert_eq!(code(&[5, 1, 0, 9]), (8, "address-kind"));
    assert_eq!(code(&[5, 1, 0, 1, 1, 1, 1, 1, 0, 0]), (1, "malformed"));
    assert_eq!(code(b"\x05\x01\x00\x03\x02\xff\xff\x00\x50"), (1, "malformed"));
}

#[test]
fn socks5_associates_with_a_port_or_without() {
    let associate = |message: &[u8]| request(&[&[5, 1, 0][..], message].concat());
    let without = associate(b"\x05\x03\x00\x01\0\0\0\0\0\0x");
    assert_eq!(without, (HandshakeRequest::Associate { port: None }, b"x".to_vec()));
    let (with, _) = associate(b"\x05\x03\x00\x03\x01a\x01\x02");
    assert_eq!(with, HandshakeRequest::Associate { port: Some(258) });
}

#[test]
fn refusals_have_the_codes_of_rfc_1928() {
    let mut handshake = ProxyHandshake::new(false);
    handshake.receive(b"\x05\x01\x00\x05\x01\x00\x03\x01a\x00\x50");
    while !matches!(handshake.step(), HandshakeStep::Request(_)) {}
    let text = String::new;
    for (why, code) in [
        (RequestRefusal::NotAllowed(text()), 2),
        (RequestRefusal::NetworkUnreachable(text()), 3),
        (RequestRefusal::HostUnreachable(text()), 4),
        (RequestRefusal::Refused(text()), 5),
        (RequestRefusal::TimedOut(text()), 6),
        (RequestRefusal::Failed(text()), 1),
    ] {
        assert_eq!(handshake.refused(&why)[..], [5, code, 0, 1, 0, 0, 0, 0, 0, 0]);
    }
    let bound = "[2001:db8::7]:258".parse().ok();
    assert_eq!(handshake.granted(bound)[..4], [5, 0, 0, 4]);
    assert_eq!(handshake.granted(bound)[19..], [7, 1, 2]);
}

#[test]
fn socks4_and_socks4a_destinations_are_parsed() {
    let with_more = request(b"\x04\x01\x00\x50\xc0\x00\x02\x01me\0x");
    assert_eq!(with_more, (to("192.0.2.1:80"), b"x".to_vec()));
    assert_eq!(request(b"\x04\x01\x01\xbb\0\0\0\x07me\0example.org\0").0, to("example.org:443"));
    assert_eq!(refused(None, b"\x04\x02\x00\x50\xc0\x00\x02\x01\0").0[..2], [0, 91]);
    assert_eq!(
        refused(users(), b"\x04\x01\x00\x50\xc0\x00\x02\x01ada\0").1,
        RequestRefusal::NoUser
    );
    let long = [b"\x04\x01\x00\x50\xc0\x00\x02\x01", &[b'a'; 300][..]].concat();
    assert_eq!(refused(None, &long).1, RequestRefusal::TooLong);
}

#[test]
fn connect_takes_host_and_port() {
    let head = b"CONNECT example.org:443 HTTP/1.1\r\nHost: example.org:443\r\n\r\nhello";
    assert_eq!(request(head), (to("example.org:443"), b"hello".to_vec()));
    assert_eq!(request(b"CONNECT [::1]:22 HTTP/1.0\r\n\r\n").0, to("[::1]:22"));
    for target in [
        "example.org",
        "example.org:",
        "example.org:99999",
        "example.org:+443",
        ":443",
        "http://a/",
    ] {
        let (reply, why) = refused(None, format!("CONNECT {target} HTTP/1.1\r\n\r\n").as_bytes());
        assert_eq!(why.name(), "malformed", "{target}");
        assert!(reply.starts_with(b"HTTP/1.1 400 Bad Request\r\n"), "{target}");
    }
}

#[test]
fn a_url_is_requested_from_its_host() {
    let request = b"POST http://u:p@example.org:8080?q=1#top HTTP/1.1\r\nHost: elsewhere\r\n\
        Proxy-Connection: keep-alive\r\nConnection: keep-alive, X-Hop\r\nX-Hop: 1\r\n\
        Proxy-Authorization: Basic eA==\r\nAccept: */*\r\nContent-Length: 2\r\n\r\nhi";
    let (request, rest) = self::request(request);
    let HandshakeRequest::Forward { destination, head, body } = request else {
        panic!("{request:?}")
    };
    assert_eq!(destination.to_string(), "example.org:8080");
    assert_eq!(
        String::from_utf8_lossy(&head),
        "POST /?q=1 HTTP/1.1\r\nHost: example.org:8080\r\nAccept: */*\r\nContent-Length: 2\r\n\
         Connection: close\r\n\r\n"
    );
    assert_eq!((body, rest), (BodyDelimiter::of_length(2), b"hi".to_vec()));
    let HandshakeRequest::Forward { destination, .. } =
        self::request(b"GET http://[::1]/x HTTP/1.1\r\n\r\n").0
    else {
        panic!("it is to be forwarded");
    };
    assert_eq!(destination.to_string(), "[::1]:80");
}

//= hostile proxy
//# a request that two parsers read differently
//= bound: 400
#[test]
fn ambiguous_requests_are_refused() {
    for fields in [
        "Content-Length: 1\r\nContent-Length: 1",
        "Content-Length: 1, 1",
        "Content-Length: +1",
        "Content-Length: 1\r\nTransfer-Encoding: chunked",
        "Transfer-Encoding: gzip, chunked",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked",
        "Content-Length : 1",
        " folded: 1",
        "Content-Length: 1\rTransfer-Encoding: chunked",
    ] {
        let head = format!("POST http://a/ HTTP/1.1\r\n{fields}\r\n\r\n");
        let (reply, _) = refused(None, head.as_bytes());
        assert!(
            reply.starts_with(b"HTTP/1.1 400 ") || reply.starts_with(b"HTTP/1.1 501 "),
            "{fields}"
        );
    }
}

#[test]
fn http_1_0_has_no_transfer_codings() {
    let head = b"POST http://a/ HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(refused(None, head).1.name(), "malformed");
    let HandshakeRequest::Forward { body, .. } = request(b"POST http://a/ HTTP/1.0\r\n\r\n").0
    else {
        panic!("it is to be forwarded");
    };
    assert_eq!(body, BodyDelimiter::none());
}

#[test]
fn lines_may_end_without_a_carriage_return() {
    let expected = (to("a:1"), b"\r\nhello".to_vec());
    for head in ["CONNECT a:1 HTTP/1.1\nHost: a\n\n", "CONNECT a:1 HTTP/1.1\r\nHost: a\n\r\n"] {
        assert_eq!(request(format!("{head}\r\nhello").as_bytes()), expected, "{head:?}");
        assert_eq!(request(format!("\r\n\r\n{head}\r\nhello").as_bytes()), expected, "{head:?}");
    }
    let HandshakeRequest::Forward { head, .. } = request(b"GET http://a/ HTTP/1.1\nA: b\n\n").0
    else {
        panic!("it is to be forwarded");
    };
    assert_eq!(&head[..], b"GET / HTTP/1.1\r\nHost: a\r\nA: b\r\nConnection: close\r\n\r\n");
    assert_eq!(refused(None, b"\r\n\r\n\r\rGET").1.name(), "malformed");
}

/// What the destination reads is what the rules have judged.
#[test]
fn the_host_is_sent_as_it_was_understood() {
    for (url, host) in [
        ("http://EXAMPLE.org/", "example.org"),
        ("http://Example.ORG:0080/", "example.org:80"),
        ("http://u:p@192.0.2.1:/", "192.0.2.1"),
        ("http://[2001:DB8:0::1]:81/", "[2001:db8::1]:81"),
        ("http://[::ffff:192.0.2.1]/", "192.0.2.1"),
    ] {
        let head = format!("GET {url} HTTP/1.1\r\nHost: other.test\r\n\r\n");
        let HandshakeRequest::Forward { head, .. } = request(head.as_bytes()).0 else {
            panic!("it is to be forwarded");
        };
        let head = String::from_utf8_lossy(&head).into_owned();
        assert!(head.contains(&format!("\r\nHost: {host}\r\n")), "{url}: {head}");
        assert!(!head.contains("other.test"), "{head}");
    }
    for url in ["http://a:+80/", "http://a:-1/", "http://a: 80/", "http://a:8x/"] {
        let head = format!("GET {url} HTTP/1.1\r\n\r\n");
        assert_eq!(refused(None, head.as_bytes()).1.name(), "malformed", "{url}");
    }
}

#[test]
fn http_requires_a_password_if_there_are_users() {
    let with = |field: &str| format!("CONNECT a:1 HTTP/1.1\r\n{field}\r\n").into_bytes();
    let right = outcome(users(), &[&with("Proxy-Authorization: basic YWRhOmxhY2U=\r\n")]);
    assert_eq!(right.request, Some(to("a:1")));
    for field in ["", "Proxy-Authorization: Basic YWRhOmxhY2s=\r\n", "Proxy-Authorization: x\r\n"] {
        let (reply, why) = refused(users(), &with(field));
        assert_eq!(why, RequestRefusal::NoUser);
        let reply = String::from_utf8_lossy(&reply).into_owned();
        assert!(
            reply.starts_with("HTTP/1.1 407 ") && reply.contains("\r\nProxy-Authenticate: Basic")
        );
    }
}

/// The zone of an address selects the interface, and is not sent.
#[test]
fn link_local_destinations_have_a_zone() {
    for (zone, named) in [("%lo", "[fe80::1%lo]"), ("%25lo", "[fe80::1%25lo]")] {
        let connect = format!("CONNECT [fe80::1{zone}]:80 HTTP/1.1\r\n\r\n");
        let request = outcome(None, &[connect.as_bytes()]).request.expect("it is accepted");
        let HandshakeRequest::Connect(to) = request else { panic!("{request:?}") };
        assert_eq!(to.host, TargetHost::Name(named.into()));
        let here = to.on_this_host().expect("lo exists");
        assert_eq!(here, Destination::parse("fe80::1%1", 80).expect("a destination"));
        let get = format!("GET http://[fe80::1{zone}]:81/x HTTP/1.1\r\nHost: x\r\n\r\n");
        let request = outcome(None, &[get.as_bytes()]).request.expect("it is accepted");
        let HandshakeRequest::Forward { destination, head, .. } = request else {
            panic!("{request:?}")
        };
        assert_eq!(destination.on_this_host().expect("lo exists").to_string(), "[fe80::1%1]:81");
        assert!(head.starts_with(b"GET /x HTTP/1.1\r\nHost: [fe80::1]:81\r\n"), "{head:?}");
    }
    for unknown in ["fe80::1%nosuch0", "[fe80::1%25nosuch0]", "fe80::1%4000000000"] {
        let cause = Destination::parse(unknown, 80).expect("it may exist elsewhere");
        let cause = cause.on_this_host().expect_err(unknown).to_string();
        assert!(cause.contains("no interface"), "{cause}");
    }
    assert!(Destination::parse("2001:db8::1%lo", 80).is_err());
    assert!(Destination::parse("fe80::1%", 80).is_err());
}

/// No search list applies to a name with a dot at the end (RFC 1034 §3.1), whichever protocol names it.
#[test]
fn a_dot_at_the_end_makes_a_name_absolute() {
    let socks5: &[u8] = b"\x05\x01\x00\x03\x06a.test\x00\x50";
    let socks5_dot: &[u8] = b"\x05\x01\x00\x03\x07a.test.\x00\x50";
    let socks4: &[u8] = b"\x04\x01\x00\x50\x00\x00\x00\x01\x00a.test\x00";
    let socks4_dot: &[u8] = b"\x04\x01\x00\x50\x00\x00\x00\x01\x00a.test.\x00";
    for (messages, absolute) in [
        (&[&[5, 1, 0], socks5][..], false),
        (&[&[5, 1, 0], socks5_dot], true),
        (&[socks4], false),
        (&[socks4_dot], true),
        (&[b"CONNECT a.test:80 HTTP/1.1\r\n\r\n"], false),
        (&[b"CONNECT a.test.:80 HTTP/1.1\r\n\r\n"], true),
        (&[b"GET http://a.test/ HTTP/1.1\r\nHost: x\r\n\r\n"], false),
        (&[b"GET http://a.test./ HTTP/1.1\r\nHost: x\r\n\r\n"], true),
    ] {
        let request = outcome(None, messages).request.expect("it is accepted");
        let to = request.destination().expect("one");
        let dot = if absolute { "." } else { "" };
        assert_eq!((to.absolute, to.to_string()), (absolute, format!("a.test{dot}:80")));
        assert_eq!(to.host, TargetHost::Name("a.test".into()), "rules know one spelling");
        if let HandshakeRequest::Forward { head, .. } = &request {
            let expected = format!("GET / HTTP/1.1\r\nHost: a.test{dot}\r\n");
            assert!(head.starts_with(expected.as_bytes()), "as curl does: {head:?}");
        }
    }
    let address = Destination::parse("192.0.2.1.", 80).expect("an address");
    assert!(!address.absolute);
}

#[test]
fn a_long_head_is_refused() {
    let (reply, why) = refused(None, &[b'A'; MAX_HEAD]);
    assert_eq!(why, RequestRefusal::TooLong);
    assert!(reply.starts_with(b"HTTP/1.1 431 "));
    let fields = "A: b\r\n".repeat(101);
    let head = format!("CONNECT a:1 HTTP/1.1\r\n{fields}\r\n");
    assert_eq!(refused(None, head.as_bytes()).1, RequestRefusal::TooLong);
}

#[test]
fn other_protocols_are_disconnected() {
    assert_eq!(refused(None, &[22, 3, 1]).0, b"");
    assert_eq!(refused(None, b"\0").1.name(), "malformed");
    assert!(refused(None, b"GET / HTTP/1.1\r\n\r\n").1.to_string().contains("this is a proxy"));
    assert_eq!(refused(None, b"GET https://a/ HTTP/1.1\r\n\r\n").1.name(), "unsupported");
}

fn first_bytes() -> impl Strategy<Value = Vec<u8>> {
    let seeds: Vec<Vec<u8>> = vec![
        b"\x05\x02\x00\x02\x05\x01\x00\x03\x0bexample.org\x00\x50hello".to_vec(),
        b"\x05\x01\x02\x01\x03ada\x04lace\x05\x01\x00\x01\x01\x02\x03\x04\x00\x50".to_vec(),
        b"\x04\x01\x01\xbb\0\0\0\x07me\0example.org\0hello".to_vec(),
        b"CONNECT a:1 HTTP/1.1\r\nProxy-Authorization: Basic YWRhOmxhY2U=\r\n\r\nhello".to_vec(),
        b"PUT http://a:1/x HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello".to_vec(),
    ];
    (prop::sample::select(seeds), prop::option::of((any::<prop::sample::Index>(), any::<u8>())))
        .prop_map(|(mut bytes, change)| {
            if let Some((at, byte)) = change {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            bytes
        })
}

proptest! {
    //= hostile proxy
    //# other protocols, endless heads, split anywhere
    //= bound: `MAX_HEAD`
    #[test]
    fn splitting_the_input_changes_nothing(
        bytes in prop_oneof![first_bytes(), any::<Vec<u8>>()],
        cuts in prop::collection::vec(1..9_usize, 1..8),
        with_users: bool,
    ) {
        let users = || with_users.then(users).flatten();
        let whole = outcome(users(), &[&bytes]);
        let mut pieces = Vec::new();
        let (mut rest, mut lengths) = (&bytes[..], cuts.iter().cycle());
        while !rest.is_empty() {
            let length = lengths.next().map_or(1, |length| (*length).min(rest.len()));
            let (piece, after) = rest.split_at(length);
            pieces.push(piece);
            rest = after;
        }
        prop_assert_eq!(outcome(users(), &pieces), whole);
    }
}
