//! Arbitrary octets of a client of the proxy: what it asks for does not depend on how they were cut,
//! and is a destination that can be asked for again. The same octets as a datagram of SOCKS5.
#![no_main]

use std::sync::Arc;

use eyas::Host;
use eyas_relay::associate::datagram;
use eyas_relay::handshake::{Handshake, Request, Step};
use eyas_relay::users::Users;
use libfuzzer_sys::fuzz_target;

mod reach;

use reach::Reach;

static REACH: Reach<6> = Reach::new([
    "a client that is left",
    "a destination by SOCKS",
    "a destination by HTTP CONNECT",
    "a request that goes on",
    "an association",
    "a datagram with a destination",
]);

/// What was said, what was asked for, why the client was left, and what stayed unread.
type Talk = (Vec<u8>, Option<Request>, Option<String>, Option<Vec<u8>>);

fn talk(users: Option<Arc<Users>>, bytes: &[u8], cuts: &[u8]) -> Talk {
    let mut handshake = Handshake::new(users);
    let (mut said, mut asked, mut left) = (Vec::new(), None, None);
    let (mut rest, mut cuts) = (bytes, cuts.iter().cycle());
    while !rest.is_empty() {
        let length = cuts.next().map_or(rest.len(), |cut| usize::from(*cut).clamp(1, rest.len()));
        let (piece, after) = rest.split_at(length);
        rest = after;
        handshake.put(piece);
        loop {
            match handshake.step() {
                Step::More => break,
                Step::Say(bytes) => said.extend(bytes),
                Step::Ask(request) => asked = Some(request),
                Step::Leave(bytes, why) => {
                    said.extend(bytes);
                    left = Some(why.to_string());
                }
            }
        }
    }
    let rest = asked.is_some().then(|| handshake.into_rest().to_vec());
    (said, asked, left, rest)
}

fuzz_target!(|input: (bool, Vec<u8>, &[u8])| {
    REACH.begin();
    let (with_users, cuts, bytes) = input;
    let users = || with_users.then(|| Arc::new(Users::parse("a:b\n").expect("users")));
    let whole = talk(users(), bytes, &[]);
    assert_eq!(whole, talk(users(), bytes, &cuts));
    assert_eq!(whole, talk(users(), bytes, &[1]));
    let (_, asked, left, _) = whole;
    assert!(asked.is_none() || left.is_none());
    match (&asked, bytes.first()) {
        (Some(Request::Connect(_)), Some(4 | 5)) => REACH.hit("a destination by SOCKS"),
        (Some(Request::Connect(_)), _) => REACH.hit("a destination by HTTP CONNECT"),
        (Some(Request::Forward { .. }), _) => REACH.hit("a request that goes on"),
        (Some(Request::Associate { .. }), _) => REACH.hit("an association"),
        (None, _) if left.is_some() => REACH.hit("a client that is left"),
        _ => {}
    }
    if let Ok((to, data)) = datagram::read(bytes) {
        REACH.hit("a datagram with a destination");
        if let Host::Literal(ip, _) = to.host {
            let again = datagram::write((ip, to.port).into(), data);
            assert_eq!(datagram::read(&again), Ok((to, data)));
        }
    }
    // The head that goes on is itself a request that is understood in one way.
    if let Some(Request::Forward { destination, head, body }) = asked {
        let head = String::from_utf8_lossy(&head).into_owned();
        let (line, fields) = head.split_once("\r\n").expect("a request line");
        let (method, path) = line.split_once(' ').expect("a target");
        let again = format!("{method} http://{destination}{path}\r\n{fields}");
        let (_, asked, left, _) = talk(None, again.as_bytes(), &[]);
        match (asked, left.as_deref()) {
            (Some(Request::Forward { destination: other, body: same, .. }), _) => {
                assert_eq!((other, same), (destination, body));
            }
            // It has become longer by two fields.
            (None, Some(why)) => assert!(why.contains("too long"), "{why}: {again}"),
            other => panic!("{other:?}: {again}"),
        }
    }
});
