//! Arbitrary octets after the head of a request to the proxy, and as the first flight of a client: the end of
//! a body does not depend on how it was split, and a verdict about a flight is final.
#![no_main]

use eyas_proxy::internals::{FirstFlight, first_flight};
use eyas_relay::body::BodyDelimiter;
use eyas_relay::handshake::{HandshakeRequest, HandshakeStep, ProxyHandshake};
use libfuzzer_sys::fuzz_target;

mod reach;

use reach::Reach;

static REACH: Reach<4> = Reach::new([
    "a chunked body that ends",
    "an invalid chunked body",
    "a ClientHello",
    "early data",
]);

fn body(fields: &str) -> BodyDelimiter {
    let mut handshake = ProxyHandshake::new(false);
    handshake.receive(format!("PUT http://a/ HTTP/1.1\r\n{fields}\r\n").as_bytes());
    match handshake.step() {
        HandshakeStep::Request(HandshakeRequest::Forward { body, .. }) => body,
        other => panic!("{other:?}"),
    }
}

fn consume(mut body: BodyDelimiter, bytes: &[u8], cut: usize) -> (usize, bool, bool) {
    let mut consumed = 0;
    for piece in bytes.chunks(cut.max(1)) {
        let length = body.read(piece);
        consumed += length;
        if length < piece.len() {
            break;
        }
    }
    (consumed, body.is_complete(), body.is_broken())
}

fuzz_target!(|input: (u8, u16, &[u8])| {
    REACH.begin();
    let (cut, length, bytes) = input;
    for body in
        [body("Transfer-Encoding: chunked\r\n"), body(&format!("Content-Length: {length}\r\n"))]
    {
        let whole = consume(body.clone(), bytes, bytes.len());
        assert_eq!(whole, consume(body.clone(), bytes, usize::from(cut)));
        assert_eq!(whole, consume(body, bytes, 1));
    }
    match consume(body("Transfer-Encoding: chunked\r\n"), bytes, bytes.len()) {
        (_, true, _) => REACH.hit("a chunked body that ends"),
        (_, _, true) => REACH.hit("an invalid chunked body"),
        _ => {}
    }
    let verdict = first_flight(bytes);
    match verdict {
        FirstFlight::ClientHello => REACH.hit("a ClientHello"),
        FirstFlight::EarlyData => REACH.hit("early data"),
        FirstFlight::Other | FirstFlight::Partial => {}
    }
    let earlier = first_flight(&bytes[..usize::from(cut).min(bytes.len())]);
    match earlier {
        FirstFlight::Other => assert_eq!(verdict, FirstFlight::Other),
        FirstFlight::EarlyData => {
            assert!(matches!(verdict, FirstFlight::EarlyData | FirstFlight::Other))
        }
        FirstFlight::ClientHello | FirstFlight::Partial => {}
    }
});
