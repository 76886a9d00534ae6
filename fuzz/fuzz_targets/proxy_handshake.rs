//! Arbitrary octets of a proxy client: the parsed request does not depend on how they were split, and its
//! rewritten head parses to the same request. The same octets as a SOCKS5 datagram.
#![no_main]

use eyas::TargetHost;
use eyas_proxy::internals::datagram;
use eyas_relay::destination::RequestRefusal;
use eyas_relay::handshake::{ClientCredentials, HandshakeRequest, HandshakeStep, ProxyHandshake};
use libfuzzer_sys::fuzz_target;

mod reach;

use reach::Reach;

static REACH: Reach<6> = Reach::new([
    "a rejected client",
    "a SOCKS destination",
    "an HTTP CONNECT destination",
    "a forwarded request",
    "an association",
    "a datagram with a destination",
]);

/// The replies, the request, why the client was rejected, and the unread rest.
type Transcript = (Vec<u8>, Option<HandshakeRequest>, Option<String>, Option<Vec<u8>>);

fn authenticate(given: &ClientCredentials) -> Result<Option<String>, RequestRefusal> {
    match (&given.name[..], &given.password[..]) {
        (b"a", b"b") => Ok(Some("a".to_owned())),
        _ => Err(RequestRefusal::NoUser),
    }
}

fn handshake(with_users: bool, bytes: &[u8], cuts: &[u8]) -> Transcript {
    let mut handshake = ProxyHandshake::new(with_users);
    let (mut replies, mut request, mut rejection) = (Vec::new(), None, None);
    let (mut rest, mut cuts) = (bytes, cuts.iter().cycle());
    while !rest.is_empty() {
        let length = cuts.next().map_or(rest.len(), |cut| usize::from(*cut).clamp(1, rest.len()));
        let (piece, after) = rest.split_at(length);
        rest = after;
        handshake.receive(piece);
        loop {
            let step = match handshake.step() {
                HandshakeStep::Authenticate(given) => handshake.authenticated(authenticate(&given)),
                step => step,
            };
            match step {
                HandshakeStep::More => break,
                HandshakeStep::Authenticate(_) => unreachable!("there is an answer"),
                HandshakeStep::Send(bytes) => replies.extend(bytes),
                HandshakeStep::Request(parsed) => request = Some(parsed),
                HandshakeStep::Close(bytes, why) => {
                    replies.extend(bytes);
                    rejection = Some(why.to_string());
                }
            }
        }
    }
    let rest = request.is_some().then(|| handshake.into_rest().to_vec());
    (replies, request, rejection, rest)
}

fuzz_target!(|input: (bool, Vec<u8>, &[u8])| {
    REACH.begin();
    let (with_users, cuts, bytes) = input;
    let whole = handshake(with_users, bytes, &[]);
    assert_eq!(whole, handshake(with_users, bytes, &cuts));
    assert_eq!(whole, handshake(with_users, bytes, &[1]));
    let (_, request, rejection, _) = whole;
    assert!(request.is_none() || rejection.is_none());
    match (&request, bytes.first()) {
        (Some(HandshakeRequest::Connect(_)), Some(4 | 5)) => REACH.hit("a SOCKS destination"),
        (Some(HandshakeRequest::Connect(_)), _) => REACH.hit("an HTTP CONNECT destination"),
        (Some(HandshakeRequest::Forward { .. }), _) => REACH.hit("a forwarded request"),
        (Some(HandshakeRequest::Associate { .. }), _) => REACH.hit("an association"),
        (None, _) if rejection.is_some() => REACH.hit("a rejected client"),
        _ => {}
    }
    if let Ok((to, data)) = datagram::read(bytes) {
        REACH.hit("a datagram with a destination");
        if let TargetHost::Literal(ip, _) = to.host {
            let rewritten = datagram::write((ip, to.port).into(), data);
            assert_eq!(datagram::read(&rewritten), Ok((to, data)));
        }
    }
    // The forwarded head is itself a valid request with the same meaning.
    if let Some(HandshakeRequest::Forward { destination, head, body }) = request {
        let head = String::from_utf8_lossy(&head).into_owned();
        let (line, fields) = head.split_once("\r\n").expect("a request line");
        let (method, path) = line.split_once(' ').expect("a target");
        let rewritten = format!("{method} http://{destination}{path}\r\n{fields}");
        let (_, request, rejection, _) = handshake(false, rewritten.as_bytes(), &[]);
        match (request, rejection.as_deref()) {
            (Some(HandshakeRequest::Forward { destination: other, body: same, .. }), _) => {
                assert_eq!((other, same), (destination, body));
            }
            // The rewritten head is longer by two fields.
            (None, Some(why)) => assert!(why.contains("too long"), "{why}: {rewritten}"),
            other => panic!("{other:?}: {rewritten}"),
        }
    }
});
