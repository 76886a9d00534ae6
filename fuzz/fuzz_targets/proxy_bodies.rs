//! Arbitrary octets behind the head of a request to the proxy, and as the first flight of a client: where
//! a body ends does not depend on how it was cut, and what was told of a flight stays so.
#![no_main]

use eyas_relay::body::Body;
use eyas_relay::client_hello::{FirstFlight, first_flight};
use eyas_relay::handshake::{Handshake, Request, Step};
use libfuzzer_sys::fuzz_target;

mod reach;

use reach::Reach;

static REACH: Reach<4> = Reach::new([
    "a chunked body that ends",
    "a chunked body that makes no sense",
    "a ClientHello",
    "early data",
]);

fn body(fields: &str) -> Body {
    let mut handshake = Handshake::new(None);
    handshake.put(format!("PUT http://a/ HTTP/1.1\r\n{fields}\r\n").as_bytes());
    match handshake.step() {
        Step::Ask(Request::Forward { body, .. }) => body,
        other => panic!("{other:?}"),
    }
}

fn taken(mut body: Body, bytes: &[u8], cut: usize) -> (usize, bool, bool) {
    let mut taken = 0;
    for piece in bytes.chunks(cut.max(1)) {
        let some = body.take(piece);
        taken += some;
        if some < piece.len() {
            break;
        }
    }
    (taken, body.is_complete(), body.is_broken())
}

fuzz_target!(|input: (u8, u16, &[u8])| {
    REACH.begin();
    let (cut, length, bytes) = input;
    for body in
        [body("Transfer-Encoding: chunked\r\n"), body(&format!("Content-Length: {length}\r\n"))]
    {
        let whole = taken(body.clone(), bytes, bytes.len());
        assert_eq!(whole, taken(body.clone(), bytes, usize::from(cut)));
        assert_eq!(whole, taken(body, bytes, 1));
    }
    match taken(body("Transfer-Encoding: chunked\r\n"), bytes, bytes.len()) {
        (_, true, _) => REACH.hit("a chunked body that ends"),
        (_, _, true) => REACH.hit("a chunked body that makes no sense"),
        _ => {}
    }
    let told = first_flight(bytes);
    match told {
        FirstFlight::ClientHello => REACH.hit("a ClientHello"),
        FirstFlight::EarlyData => REACH.hit("early data"),
        FirstFlight::Other | FirstFlight::Partial => {}
    }
    let earlier = first_flight(&bytes[..usize::from(cut).min(bytes.len())]);
    match earlier {
        FirstFlight::Other => assert_eq!(told, FirstFlight::Other),
        FirstFlight::EarlyData => {
            assert!(matches!(told, FirstFlight::EarlyData | FirstFlight::Other))
        }
        FirstFlight::ClientHello | FirstFlight::Partial => {}
    }
});
